"""A look at a checkpoint file before it is read: what kind of file it is, and which objects it asks for."""

from __future__ import annotations

import io
import pickletools
import zipfile
from collections.abc import Iterable, Set
from typing import IO, Any

from data.errors import CheckpointError, printable

MAX_BYTES = 64 << 30  # of a file; the largest public fairseq translation model, 12B parameters, has 47 GB
MAX_PICKLE_BYTES = 16 << 20  # of the pickle without its tensors; large models need some 2 MB
MAX_TUPLES = 50_000  # bounds nesting: hashing a tuple nested 200,000 deep overflows the C stack

_LEGACY_HEAD = bytes.fromhex("80028a0a6cfc9c46f9206aa850192e")  # torch's magic number, pickled
_LEGACY_PICKLES = 5  # magic number, version, platform, the object, the storage keys
_LOOKS_LIKE = {
    b"version https://git-lfs": "a Git-LFS pointer, not the file itself: run `git lfs pull`",
    b"<!doctype html": "an HTML page: download the file itself",
    b"<html": "an HTML page: download the file itself",
    b"\x1f\x8b": "a gzip archive: unpack it and name the .pt file inside",
    b"bzh": "a bzip2 archive: unpack it and name the .pt file inside",
}
DAMAGED = "is damaged or cut short: copy or download it again"
_TOO_LARGE = "has a pickle larger or deeper than any fairseq checkpoint's"


def check_container(file: IO[bytes], size: int, allowed: Set[str]) -> None:
    """Refuse what is not a sound zip or old-style checkpoint, or asks for objects that are not `allowed`.

    Args:
        file: open at its start, `size` bytes long.
        allowed: dotted names of classes and functions, as Python 3 spells them.

    Raises:
        CheckpointError: says what the file looks like, or lists the names; without its path.
    """
    if size > MAX_BYTES:
        raise CheckpointError(f"has {size} bytes, more than the limit of {MAX_BYTES}")
    head = file.read(64)
    if not head:
        raise CheckpointError("the file is empty")
    for start, meaning in _LOOKS_LIKE.items():
        if head.lstrip().lower().startswith(start):
            raise CheckpointError(f"is {meaning}")
    if head.startswith(b"PK\x03\x04"):
        _check_zip(file, size, allowed)
    elif head.startswith(b"\x80"):
        file.seek(0)
        legacy = head.startswith(_LEGACY_HEAD)
        _check_names(file, _LEGACY_PICKLES if legacy else 1, allowed)
        if not legacy:
            raise CheckpointError("is a pickle, but not one that torch.save wrote")
    elif head[8:9] == b"{":
        raise CheckpointError("is a safetensors file, without settings: name fairseq's own .pt file")
    else:
        raise CheckpointError(f"is not a checkpoint that torch.save wrote (it starts with {head[:8]!r})")


def _check_zip(file: IO[bytes], size: int, allowed: Set[str]) -> None:
    """Refuse a zip that torch.save would not write, and a damaged one."""
    try:
        archive = zipfile.ZipFile(file)
    except zipfile.BadZipFile as error:
        raise CheckpointError(f"{DAMAGED} (the directory at the end of the zip is missing or broken)") from error
    with archive:
        entries = archive.infolist()
        names = [entry.filename for entry in entries]
        root = names[0].partition("/")[0] if names else ""
        if f"{root}/constants.pkl" in names:
            raise CheckpointError("is a TorchScript archive, which holds code: name fairseq's own .pt file")
        if f"{root}/data.pkl" not in names:
            raise CheckpointError("is a zip, but not one that torch.save wrote (no data.pkl)")
        parts = [name.split("/") for name in names]
        for fault, found in {
            "a name twice": len(set(names)) < len(names),
            "entries outside its one folder": any(p[0] != root or ".." in p or "\\" in p[-1] for p in parts),
            "compressed or encrypted entries": any(e.compress_type or e.flag_bits & 1 for e in entries),
            # torch leaves the tensor of an entry marked as a folder uninitialised, without an error
            "folders": any(e.is_dir() or e.external_attr & 0x10 for e in entries),
            "more bytes than the file": sum(e.file_size for e in entries) > size,
            "something before its first entry": min(e.header_offset for e in entries) > 0,
        }.items():
            if found:
                raise CheckpointError(f"is a zip that holds {fault}, which torch.save never writes")
        if archive.getinfo(f"{root}/data.pkl").file_size > MAX_PICKLE_BYTES:
            raise CheckpointError(_TOO_LARGE)
        _check_names(io.BytesIO(archive.read(f"{root}/data.pkl")), 1, allowed)
        if damaged := archive.testzip():  # torch itself does not look at the checksums
            raise CheckpointError(f"{DAMAGED} (wrong checksum of {printable(damaged)})")


def _check_names(file: IO[bytes], pickles: int, allowed: Set[str]) -> None:
    """Disassemble the next `pickles` pickles of `file`, without executing; refuse names not `allowed`."""
    names: set[str] = set()
    protocol = 2
    for _ in range(pickles):
        start, tuples = file.tell(), 0
        # STACK_GLOBAL takes module and name from the stack: the last two strings, also by way of the memo
        strings, pushed, memo = ["?", "?"], None, list[str | None]()
        for opcode, argument, position in pickletools.genops(file):
            value: Any = argument
            if (position or 0) - start > MAX_PICKLE_BYTES or tuples > MAX_TUPLES:
                raise CheckpointError(_TOO_LARGE)
            if opcode.name in ("GLOBAL", "INST"):
                names.add(_spelled(*value.split(" ", 1)))
            elif opcode.name == "STACK_GLOBAL":
                names.add(_spelled(*strings[-2:]))
            elif opcode.name == "MEMOIZE":
                memo.append(pushed)
            elif opcode.name == "PROTO":
                protocol = max(protocol, value)
            else:
                recalled = opcode.name == "BINGET" and value < len(memo)
                pushed = memo[value] if recalled else value if isinstance(value, str) else None
                strings = [*strings, pushed][-2:] if pushed else strings
            tuples += opcode.name.startswith("TUPLE")
    if unknown := names - allowed:
        raise CheckpointError(
            "asks for Python objects that are not known to be harmless, so it was not loaded: "
            f"{listed(unknown)}. If you trust its source, open it in a sandbox and save again only 'model' "
            "and 'args' or 'cfg'"
        )
    if protocol > 2:
        raise CheckpointError(f"uses pickle protocol {protocol}: save it again with torch.save's default, 2")


def _spelled(module: str, name: str) -> str:
    """The dotted name, with Python 2's names for builtins (which protocol 2 uses) brought up to date."""
    module = "builtins" if module == "__builtin__" else module
    return f"{module}.{'int' if (module, name) == ('builtins', 'long') else name}"


def listed(names: Iterable[str], limit: int = 10) -> str:
    """At most `limit` of the names, in order, safe to print."""
    ordered = sorted(names)
    more = f" and {len(ordered) - limit} more" if len(ordered) > limit else ""
    return ", ".join(printable(name, 120) for name in ordered[:limit]) + more
