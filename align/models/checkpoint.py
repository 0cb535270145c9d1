"""Weights and settings of fairseq checkpoints, read without running what is in them.

A `.pt` file is a pickle, and a pickle is a program. Four things keep it from running: the container is
checked first; every name that the pickle asks for must be on a short list; torch's `weights_only` unpickler
builds tensors and plain containers only; and the names that are not torch's own give an `Inert` object, so
nothing is imported. No other module of the toolkit opens such files.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias

import torch
from torch import Tensor
from torch.serialization import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals

from align.models.container import DAMAGED, check_container, listed
from data.errors import CheckpointError, printable

Scalar: TypeAlias = str | int | float | bool | None
Setting: TypeAlias = Scalar | list[Scalar]


class Inert:
    """Stands in for any object of a checkpoint that is not a tensor or a plain container.

    It takes whatever arguments the file passes, keeps `state` where that is a dict, and does nothing.
    """

    __slots__ = ("state",)
    state: dict[object, object]

    def __new__(cls, *_: object) -> Inert:
        self = super().__new__(cls)
        self.state = {}
        return self

    def __setstate__(self, state: object) -> None:
        if type(state) is dict:
            self.state = state


def _plain_dict(*_: object) -> dict[object, object]:
    """For `defaultdict`: the file sets items on the result, which torch allows on exact dicts only."""
    return {}


def _torch_names() -> Iterator[str]:
    """What weights consist of, out of torch's own (longer) list."""
    yield from ("collections.OrderedDict", "_codecs.encode", "torch.Size", "torch.device")
    yield from (f"torch._utils._rebuild_{kind}" for kind in ("tensor", "tensor_v2", "parameter"))
    yield from (f"torch.{kind}Storage" for kind in ("Double", "Float", "Half", "BFloat16"))
    yield from (f"torch.{kind}Storage" for kind in ("Long", "Int", "Short", "Char", "Byte", "Bool"))


def _inert_names() -> Iterator[str]:
    """What else fairseq checkpoints name: settings, meters, numpy values, omegaconf trees and their types."""
    yield from ("argparse.Namespace", "typing.Any")
    yield from (f"builtins.{kind}" for kind in ("dict", "list", "str", "int", "float", "bool"))
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
_ALLOWED = {"collections.defaultdict", *_torch_names(), *_inert_names()}
_ALLOW_LIST_LOCK = threading.Lock()


@dataclass(frozen=True)
class Checkpoint:
    """What a fairseq checkpoint says about one model.

    Attributes:
        path: the file.
        weights: parameters by fairseq's names, on the CPU; half precision is widened to float32, float64 and
            integers stay. Tied weights are one tensor under several names. Values are not checked here.
        config: settings of task and model by fairseq's argument names (`encoder_embed_dim`); `arch` and
            `task` are the registered names. Only plain scalars and flat lists of them.
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
            are not known to be harmless, or lacks weights or settings.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            check_container(file, size, _ALLOWED)
            file.seek(0)
            state = _unpickle(file)
            file.seek(0)
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        if type(state) is not dict:
            raise CheckpointError("holds no dict of 'model' and settings: not a fairseq checkpoint")
        return Checkpoint(path, _weights(state, size), _config(state), sha256)
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from error
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror or error}") from error
    except Exception as error:  # whatever zipfile, torch or the file's own tricks raise
        # torch advises to switch the safety off, and only after this mark says what is wrong
        reason = str(error).rpartition("WeightsUnpickler error:")[2].strip().partition("\n")[0]
        kind = type(error).__name__
        raise CheckpointError(
            f"{path}: {DAMAGED}, or it is no fairseq checkpoint ({kind}: {printable(reason, 120)})"
        ) from error


# Reading


def _unpickle(file: IO[bytes]) -> Any:
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
    """The tensors of `state["model"]`, widened; together they have no more bytes than the file's `size`."""
    model = state.get("model")
    if not isinstance(model, dict) or not model:
        raise CheckpointError(f"has no weights under 'model' (it has: {listed(map(str, state))})")
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
            half = tensor.is_floating_point() and tensor.element_size() < 4
            widened[key] = tensor.detach().float() if half else tensor.detach()
        weights[name] = widened[key]
    return weights


def _is_plain(tensor: object) -> bool:
    """Whether it is a dense real tensor in main memory, and no subclass."""
    return (
        isinstance(tensor, Tensor)
        and type(tensor) in (Tensor, torch.nn.Parameter)
        and tensor.layout is torch.strided
        and tensor.device.type == "cpu"
        and not tensor.is_complex()
    )


def _config(state: Mapping[object, Any]) -> dict[str, Setting]:
    """Settings of task and model. Paths (`user_dir`, `data`) are dropped: they are never followed."""
    if state.get("args") is not None:
        config = _settings(state["args"])
    elif state.get("cfg") is not None:
        groups = _mapping(state["cfg"])
        task, model = _settings(groups.get("task")), _settings(groups.get("model"))
        # a model that is a Namespace repeats its task and arch as plain settings
        config = {"task": task.get("_name"), "arch": model.get("_name")} | task | model
    else:
        raise CheckpointError("has no settings, neither 'args' nor 'cfg': save it with one of them")
    if not isinstance(config.get("arch"), str):
        raise CheckpointError("its settings don't name an architecture ('arch')")
    return {name: value for name, value in config.items() if name not in ("_name", "user_dir", "data")}


def _settings(group: object) -> dict[str, Setting]:
    """Plain values of one group; `encoder.embed_dim` becomes `encoder_embed_dim`, as on the command line."""
    nodes: dict[Any, object] = {}
    for name, node in _mapping(group).items():
        if name in ("encoder", "decoder", "quant_noise", "langtoks") and _mapping(node):
            nodes |= {f"{name}_{key}": value for key, value in _mapping(node).items() if key != "_name"}
        else:
            nodes[name] = node
    settings = {name: _value(node) for name, node in nodes.items() if type(name) is str}
    return {name: value for name, value in settings.items() if _is_setting(value)}


def _mapping(node: object) -> Mapping[Any, object]:
    """The items of a dict, Namespace or omegaconf DictConfig; of anything else none."""
    if isinstance(node, Inert):
        node = node.state.get("_content", node.state)
    return node if isinstance(node, dict) else {}


def _value(node: object) -> Any:
    """What an omegaconf node stands for, lists with their elements; anything else as it is."""
    if isinstance(node, Inert):
        node = node.state.get("_val", node.state.get("_content", node))
    if not isinstance(node, list | tuple):
        return node
    return [item.state.get("_val", item) if isinstance(item, Inert) else item for item in node]


def _is_setting(value: object) -> bool:
    """A scalar or a flat list of them; not omegaconf's `???` (missing) and `${...}` (a reference)."""
    if isinstance(value, str) and (value == "???" or "${" in value):
        return False
    items = value if isinstance(value, list) else [value]
    return all(item is None or type(item) in (str, int, float, bool) for item in items)


# Checks against the architecture and the dictionaries


def check_finite(weights: Mapping[str, Tensor], path: Path) -> None:
    """Raise CheckpointError, naming the tensors, if any of `weights` holds NaN or infinity."""
    if bad := [name for name, tensor in weights.items() if not tensor.isfinite().all()]:
        raise CheckpointError(f"{path}: NaN or infinity in {listed(bad)}: did the training diverge?")


def check_shapes(weights: Mapping[str, Tensor], expected: Mapping[str, Sequence[int]], path: Path) -> None:
    """Raise CheckpointError unless `weights` has exactly the `expected` names, each with its shape."""
    both = weights.keys() & expected.keys()
    shapes = {name: (tuple(weights[name].shape), tuple(expected[name])) for name in both}
    faults = {
        "missing": expected.keys() - both,
        "unexpected": weights.keys() - both,
        "wrong shape": [f"{name} {has}, not {want}" for name, (has, want) in shapes.items() if has != want],
    }
    if any(faults.values()):
        told = "; ".join(f"{what}: {listed(names)}" for what, names in faults.items() if names)
        raise CheckpointError(f"{path}: the weights do not fit the architecture; {told}")


def check_embedding(
    name: str, weights: Mapping[str, Tensor], dictionary_size: int, dictionary_path: Path, path: Path
) -> None:
    """Raise CheckpointError unless `weights[name]` [V, D] has V = `dictionary_size` rows."""
    if name not in weights:
        raise CheckpointError(f"{path}: has no tensor {name}, so it is not the kind of model expected")
    shape = tuple(weights[name].shape)
    if len(shape) != 2 or shape[0] != dictionary_size:
        raise CheckpointError(
            f"{path}: tensor {name} has shape {shape}, but the dictionary {dictionary_path} makes "
            f"{dictionary_size} entries: name the dictionary that the model was trained with"
        )
