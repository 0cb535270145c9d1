"""Pickles that run code when an ordinary unpickler opens them: each creates the file `canary`.

`TRICKS` maps a name to a function from the canary's path to (pickle, name of the global it abuses).
"""

from __future__ import annotations

import os
import pickle
import zipfile
from pathlib import Path
from typing import Any


class Call:
    """Pickles as the call `function(*arguments)`."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return self.call


class SetState:
    """Writes the canary when its state is restored (opcode BUILD)."""

    def __init__(self, canary: Path) -> None:
        self.canary = str(canary)

    def __setstate__(self, state: dict[str, str]) -> None:
        Path(state["canary"]).touch()


def touch(canary: str) -> str:
    Path(canary).touch()
    return "done"


def text(value: str) -> bytes:
    """The opcode that pushes `value`."""
    return b"X" + len(value.encode()).to_bytes(4, "little") + value.encode()


def shell(canary: Path) -> str:
    return f": > '{canary}'"


def python(canary: Path) -> str:
    return f"open({str(canary)!r}, 'w').close()"


def reduce(canary: Path) -> tuple[bytes, str]:
    return pickle.dumps({"model": {}, "args": Call(os.system, shell(canary))}, 2), "posix.system"


def stack_global(canary: Path) -> tuple[bytes, str]:
    return pickle.dumps(["before", Call(os.system, shell(canary))], 4), "posix.system"


def stack_global_by_memo(canary: Path) -> tuple[bytes, str]:
    names = b"\x8c\x05posix\x94\x8c\x06system\x94" + text("decoy") + text("more")
    return b"\x80\x04" + names + b"h\x00h\x01\x93" + text(shell(canary)) + b"\x85R.", "posix.system"


def global_eval(canary: Path) -> tuple[bytes, str]:
    return b"\x80\x02c__builtin__\neval\n" + text(python(canary)) + b"\x85R.", "builtins.eval"


def inst(canary: Path) -> tuple[bytes, str]:
    return b"(" + text(python(canary)) + b"ibuiltins\nexec\n.", "builtins.exec"


def build(canary: Path) -> tuple[bytes, str]:
    return pickle.dumps(SetState(canary), 2), "hostile.SetState"


def nested(canary: Path) -> tuple[bytes, str]:
    return pickle.dumps(Call(pickle.loads, reduce(canary)[0]), 2), "pickle.loads"


def renamed_module(canary: Path) -> tuple[bytes, str]:
    """Python 2's `commands`, which unpicklers of protocol 2 look up in `subprocess`."""
    return b"\x80\x02ccommands\ngetoutput\n" + text(shell(canary)) + b"\x85R.", "commands.getoutput"


def behind_harmless_names(canary: Path) -> tuple[bytes, str]:
    """Attributes of a harmless class: `Namespace.__init__.__globals__` leads to everything."""
    harmless = b"cargparse\nNamespace\n0cbuiltins\ngetattr\n0"
    return b"\x80\x02" + harmless + global_eval(canary)[0][2:], "builtins.getattr"


TRICKS = {
    trick.__name__: trick
    for trick in (
        reduce,
        stack_global,
        stack_global_by_memo,
        global_eval,
        inst,
        build,
        nested,
        renamed_module,
        behind_harmless_names,
    )
}


def write_zip(path: Path, pickled: bytes, **entries: bytes) -> Path:
    """A zip as torch.save lays it out, around any pickle; `entries` are further files by name (`data_0`)."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickled)
        archive.writestr("archive/byteorder", b"little")
        for name, content in entries.items():
            archive.writestr("archive/" + name.replace("_", "/"), content)
        archive.writestr("archive/version", b"3\n")
    return path
