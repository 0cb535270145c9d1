"""Weights and settings of fairseq checkpoints, read without running what is in them.

A `.pt` file is a pickle, and a pickle is a program. Four things keep it from running: the container is checked
first; every name that the pickle asks for must be on a short list; torch's `weights_only` unpickler builds
tensors and plain containers only; and the names that are not torch's own give an `Inert` object, so nothing is
imported. This is the only place of the toolkit that opens such files.
"""

from __future__ import annotations

import hashlib
import os
import pickletools
import threading
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias

import torch
from torch import Tensor
from torch.serialization import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals

from data.errors import CheckpointError, printable

Scalar: TypeAlias = str | int | float | bool | None
Setting: TypeAlias = Scalar | list[Scalar]

MAX_BYTES = 64 << 30  # of a file; the largest fairseq translation model in public, 12B parameters, has 47 GB
MAX_PICKLE_BYTES = 16 << 20  # of the pickle, tensors apart; the largest models need some 2 MB
MAX_TUPLES = 50_000  # bounds nesting: hashing a tuple about 100,000 deep overflows the C stack

_LEGACY_HEAD = bytes.fromhex("80028a0a6cfc9c46f9206aa850192e")  # torch's magic number, pickled
_LEGACY_PICKLES = 5  # magic number, version, platform, the object, the storage keys
_LOOKS_LIKE = {
    b"version https://git-lfs": "a Git-LFS pointer, not the file itself: run `git lfs pull`",
    b"<!doctype html": "an HTML page, not a checkpoint: download the file itself",
    b"<html": "an HTML page, not a checkpoint: download the file itself",
    b"\x1f\x8b": "a gzip archive: unpack it and name the .pt file inside",
    b"bzh": "a bzip2 archive: unpack it and name the .pt file inside",
}
_DAMAGED = "the file is damaged or cut short: copy or download it again"

_TORCH_NAMES = frozenset(
    ["collections.OrderedDict", "_codecs.encode", "torch.Size", "torch.device"]
    + ["torch._utils._rebuild_" + kind for kind in ("tensor", "tensor_v2", "parameter")]
    + [
        f"torch.{kind}Storage"
        for kind in ("Double", "Float", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Byte", "Bool")
    ]
)


class Inert:
    """Stands in for any object of a checkpoint that is not a tensor or a plain container.

    It takes whatever arguments the file passes, keeps `state` where that is a dict, and does nothing.
    """

    __slots__ = ("state",)

    def __new__(cls, *_: object) -> Inert:
        self = super().__new__(cls)
        self.state: dict[object, object] = {}
        return self

    def __setstate__(self, state: object) -> None:
        if type(state) is dict:
            self.state = state


def _plain_dict(*_: object) -> dict[object, object]:
    """For `defaultdict`: the file sets items on the result, which torch allows on exact dicts only."""
    return {}


def _inert_names() -> Iterator[str]:
    """The names outside torch that fairseq checkpoints use, as torch's unpickler spells them."""
    yield from ("argparse.Namespace", "typing.Any", "builtins.dict", "builtins.list")
    yield from (f"builtins.{kind}" for kind in ("str", "int", "float", "bool"))  # types of omegaconf fields
    for module in ("fairseq.meters", "fairseq.logging.meters"):
        yield from (f"{module}.{kind}Meter" for kind in ("Average", "Sum", "Time", "Stopwatch"))
    for module in ("numpy.core.multiarray", "numpy._core.multiarray"):  # numpy 1, numpy 2
        yield from (f"{module}.scalar", f"{module}._reconstruct")
    yield from ("numpy.dtype", "numpy.ndarray")
    yield from ("omegaconf.dictconfig.DictConfig", "omegaconf.listconfig.ListConfig")
    yield from ("omegaconf.base.Metadata", "omegaconf.base.ContainerMetadata")
    yield from (f"omegaconf.nodes.{kind}Node" for kind in ("Any", "String", "Integer", "Float", "Boolean"))


_STAND_INS: list[Callable[..., object] | tuple[Callable[..., object], str]] = [
    (_plain_dict, "collections.defaultdict"),
    *((Inert, name) for name in _inert_names()),
]
_ALLOWED = _TORCH_NAMES | {"collections.defaultdict", *_inert_names()}
_ALLOW_LIST_LOCK = threading.Lock()


@dataclass(frozen=True)
class Checkpoint:
    """What a fairseq checkpoint says about one model.

    Attributes:
        path: the file.
        weights: parameters by fairseq's names, on the CPU; half precision is widened to float32, float64 and
            integers stay. All are finite. Tied weights are one tensor under several names.
        config: the flat settings of task and model by fairseq's argument names (`encoder_embed_dim`);
            `arch` and `task` are the registered names. Plain scalars and flat lists of them only.
        sha256: of the whole file, 64 hexadecimal digits.
    """

    path: Path
    weights: dict[str, Tensor]
    config: dict[str, Setting]
    sha256: str


def read_checkpoint(path: str | Path) -> Checkpoint:
    """Read a checkpoint that `fairseq-train` wrote (`args` up to 0.10, `cfg` since; zip or older format).

    Raises:
        CheckpointError: the file can't be read, is not a checkpoint, is damaged, asks for Python objects that
            are not known to be harmless, or holds weights that are missing or not finite.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            _check_container(file)
            state = _unpickle(file)
            file.seek(0)
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            if type(state) is not dict:
                raise CheckpointError("holds no dict of 'model' and settings: not a fairseq checkpoint")
            weights = _weights(state, os.fstat(file.fileno()).st_size)
            return Checkpoint(path, weights, _config(state), sha256)
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from error
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror or error}") from error
    except Exception as error:  # whatever zipfile, torch or the file's own tricks raise
        # torch puts advice to switch the safety off before this mark; the reason comes after it
        reason = str(error).rpartition("WeightsUnpickler error:")[2].strip().partition("\n")[0]
        raise CheckpointError(
            f"{path}: {_DAMAGED}, if it is a fairseq checkpoint at all ({type(error).__name__}: "
            f"{printable(reason, 120)})"
        ) from error


# Before reading: the container and the names


def _check_container(file: IO[bytes]) -> None:
    """Refuse what is not a sound zip or old-style checkpoint, or names objects that are not allowed."""
    size = os.fstat(file.fileno()).st_size
    if size > MAX_BYTES:
        raise CheckpointError(f"has {size} bytes, more than the limit of {MAX_BYTES}")
    head = file.read(64)
    if not head:
        raise CheckpointError("the file is empty")
    for start, meaning in _LOOKS_LIKE.items():
        if head.lstrip().lower().startswith(start):
            raise CheckpointError(f"is {meaning}")
    if head[8:9] == b"{":
        raise CheckpointError(
            "is a safetensors file, which has no fairseq settings: name fairseq's own .pt file"
        )
    if head.startswith(b"PK\x03\x04"):
        _check_zip(file, size)
    elif head.startswith(b"\x80"):
        file.seek(0)
        _check_names(file, _LEGACY_PICKLES if head.startswith(_LEGACY_HEAD) else 1)
        if not head.startswith(_LEGACY_HEAD):
            raise CheckpointError("is a pickle, but not one that torch.save wrote, or it is cut short")
    else:
        raise CheckpointError(f"is not a checkpoint that torch.save wrote (it starts with {head[:8]!r})")
    file.seek(0)


def _check_zip(file: IO[bytes], size: int) -> None:
    """Refuse a zip that torch.save would not write: compressed, several roots, duplicates, overlaps, damage."""
    try:
        archive = zipfile.ZipFile(file)
    except zipfile.BadZipFile as error:
        raise CheckpointError(f"{_DAMAGED} (the directory at the end of the zip is missing)") from error
    with archive:
        entries = archive.infolist()
        names = [entry.filename for entry in entries]
        root = names[0].partition("/")[0] if names else ""
        if f"{root}/constants.pkl" in names:
            raise CheckpointError("is a TorchScript archive, which holds code: name fairseq's own .pt file")
        if f"{root}/data.pkl" not in names:
            raise CheckpointError("is a zip, but not one that torch.save wrote (it has no data.pkl)")
        for fault, found in {
            "a name twice": len(set(names)) < len(names),
            "entries outside its one folder": any(
                name.partition("/")[0] != root or ".." in name.split("/") or "\\" in name for name in names
            ),
            "compressed or encrypted entries": any(e.compress_type or e.flag_bits & 1 for e in entries),
            "more bytes than the file": sum(e.file_size for e in entries) > size,
            "something before its first entry": min(e.header_offset for e in entries) > 0,
        }.items():
            if found:
                raise CheckpointError(f"is a zip that holds {fault}, which torch.save never writes: refused")
        with archive.open(f"{root}/data.pkl") as pickled:
            _check_names(pickled, 1)
        if damaged := archive.testzip():  # torch itself does not look at the checksums
            raise CheckpointError(f"{_DAMAGED} (wrong checksum of {printable(damaged)})")


def _check_names(file: IO[bytes], pickles: int) -> None:
    """Disassemble the next `pickles` pickles of `file`, executing nothing, and refuse names not allowed."""
    unknown: set[str] = set()
    protocol = 2
    for _ in range(pickles):
        start, tuples = file.tell(), 0
        strings: list[str] = []  # as STACK_GLOBAL takes module and name from the stack
        memo: dict[int, str] = {}
        for opcode, argument, position in pickletools.genops(file):
            if (position or 0) - start > MAX_PICKLE_BYTES or tuples > MAX_TUPLES:
                raise CheckpointError("its pickle is larger or deeper than any fairseq checkpoint's: refused")
            if opcode.name in ("GLOBAL", "INST"):
                unknown.add(_spelled(*argument.split(" ", 1)))
            elif opcode.name == "STACK_GLOBAL":
                unknown.add(_spelled(*(["?", "?", *strings][-2:])))
            elif opcode.name == "MEMOIZE" and strings:
                memo[len(memo)] = strings[-1]
            elif opcode.name == "PROTO":
                protocol = max(protocol, argument)
            elif isinstance(argument, str):
                strings.append(argument)
            tuples += opcode.name.startswith("TUPLE")
    unknown -= _ALLOWED
    if unknown:
        raise CheckpointError(
            f"asks for Python objects that are not known to be harmless, and was not loaded: "
            f"{_listed(unknown)}. If you trust its source, open it in a sandbox and save again only 'model' "
            f"and 'args' or 'cfg'"
        )
    if protocol > 2:
        raise CheckpointError(f"uses pickle protocol {protocol}: save it again with torch.save's default, 2")


def _spelled(module: str, name: str) -> str:
    """The dotted name, with Python 2's names for builtins (which protocol 2 uses) brought up to date."""
    module = "builtins" if module == "__builtin__" else module
    return f"{module}.{'int' if (module, name) == ('builtins', 'long') else name}"


# Reading


def _unpickle(file: IO[bytes]) -> object:
    """The content of the file with `Inert` in place of everything that isn't torch's.

    torch has one allow-list for the whole process, so what the host program has put there is set aside (the
    file must not use it) and put back. Another thread that loads by that list at this very moment, outside
    this module, may miss its entries for as long as this takes.
    """
    with _ALLOW_LIST_LOCK:
        of_host = get_safe_globals()
        clear_safe_globals()
        try:
            with safe_globals(_STAND_INS):
                return torch.load(file, map_location="cpu", weights_only=True)
        finally:
            add_safe_globals(of_host)


# After reading


def _weights(state: Mapping[object, Any], size: int) -> dict[str, Tensor]:
    """The tensors of `state["model"]`, checked and widened; together no more bytes than the file's `size`."""
    model = state.get("model")
    if not isinstance(model, dict) or not model:
        raise CheckpointError(f"has no weights under 'model' (it has: {_listed(map(str, state))})")
    weights: dict[str, Tensor] = {}
    widened: dict[tuple[object, ...], Tensor] = {}  # tied weights are stored once and stay one tensor
    claimed = 0
    for name, tensor in model.items():
        if type(name) is not str or not _is_plain(tensor):
            raise CheckpointError(f"'model' entry {printable(str(name))} is not a plain tensor under a name")
        key = (tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride())
        if key not in widened:
            claimed += tensor.numel() * tensor.element_size()
            if claimed > size:
                raise CheckpointError(f"tensor {printable(name)} claims more data than the file holds")
            widened[key] = _widened(name, tensor.detach())
        weights[name] = widened[key]
    return weights


def _is_plain(tensor: object) -> bool:
    return (
        type(tensor) in (Tensor, torch.nn.Parameter)
        and isinstance(tensor, Tensor)
        and tensor.layout is torch.strided
        and tensor.device.type == "cpu"
        and not tensor.is_complex()
    )


def _widened(name: str, tensor: Tensor) -> Tensor:
    if not tensor.is_floating_point():
        return tensor
    if not tensor.isfinite().all():
        raise CheckpointError(
            f"tensor {printable(name)} holds NaN or infinity: the training run has diverged"
        )
    return tensor.float() if tensor.element_size() < 4 else tensor


def _config(state: Mapping[object, Any]) -> dict[str, Setting]:
    """Settings of task and model. Paths (`user_dir`, `data`) are dropped: they are never followed."""
    if state.get("args") is not None:
        config = _settings(state["args"])
    elif state.get("cfg") is not None:
        groups = _mapping(state["cfg"])
        task, model = _settings(groups.get("task")), _settings(groups.get("model"))
        # a model's own `task` or `arch` (from a Namespace) is the same name, said twice
        config = {"task": task.get("_name"), "arch": model.get("_name")} | task | model
    else:
        raise CheckpointError("has no settings, neither 'args' nor 'cfg': save it with one of them")
    if not isinstance(config.get("arch"), str):
        raise CheckpointError("its settings don't name an architecture ('arch')")
    return {name: value for name, value in config.items() if name not in ("_name", "user_dir", "data")}


def _settings(group: object) -> dict[str, Setting]:
    """Plain values of one group; `encoder.embed_dim` becomes `encoder_embed_dim`, as on the command line."""
    settings: dict[str, Setting] = {}
    for name, node in _mapping(group).items():
        if name in ("encoder", "decoder", "quant_noise"):
            nested = {f"{name}_{inner}": value for inner, value in _mapping(node).items() if inner != "_name"}
        else:
            nested = {name: node}
        for key, inner_node in nested.items():
            value = _value(inner_node)
            if type(key) is str and _is_setting(value):
                settings[key] = value
    return settings


def _value(node: object) -> Any:
    """What an omegaconf node stands for, lists with their elements; anything else as it is."""
    if isinstance(node, Inert):
        node = node.state.get("_val", node.state.get("_content", node))
    return [_value(item) for item in node] if isinstance(node, list | tuple) else node


def _mapping(node: object) -> Mapping[Any, object]:
    """The items of a dict, Namespace or omegaconf DictConfig; of anything else none."""
    if isinstance(node, Inert):
        node = node.state.get("_content", node.state)
    return node if isinstance(node, dict) else {}


def _is_setting(value: object) -> bool:
    """A scalar or a flat list of them; not omegaconf's `???` (missing) and `${...}` (a reference)."""
    if isinstance(value, str) and (value == "???" or "${" in value):
        return False
    items = value if isinstance(value, list) else [value]
    return all(item is None or type(item) in (str, int, float, bool) for item in items)


# Checks against the architecture and the dictionaries


def check_shapes(weights: Mapping[str, Tensor], expected: Mapping[str, Sequence[int]], path: Path) -> None:
    """Raise CheckpointError unless `weights` has exactly the `expected` names, each with its shape."""
    faults = [
        f"{_listed(names)} {what}"
        for what, names in (
            ("missing", expected.keys() - weights.keys()),
            ("unexpected", weights.keys() - expected.keys()),
        )
        if names
    ]
    faults += [
        f"{name} has shape {tuple(weights[name].shape)} instead of {tuple(shape)}"
        for name, shape in expected.items()
        if name in weights and tuple(weights[name].shape) != tuple(shape)
    ][:10]
    if faults:
        raise CheckpointError(f"{path}: the weights do not fit the architecture: {'; '.join(faults)}")


def check_embedding(name: str, tensor: Tensor, dictionary_size: int, dictionary_path: str | Path) -> None:
    """Raise CheckpointError unless the embedding `tensor` [V, D] has one row for each dictionary entry."""
    if tensor.dim() != 2 or tensor.shape[0] != dictionary_size:
        raise CheckpointError(
            f"tensor {name} has shape {tuple(tensor.shape)}, but the dictionary {dictionary_path} makes "
            f"{dictionary_size} entries: name the dictionary that the model was trained with"
        )


def _listed(names: Iterable[str], limit: int = 10) -> str:
    """At most `limit` of the names, in order, safe to print."""
    ordered = sorted(names)
    more = f" and {len(ordered) - limit} more" if len(ordered) > limit else ""
    return ", ".join(printable(name, 80) for name in ordered[:limit]) + more
