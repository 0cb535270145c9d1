"""The one family of errors that the toolkit raises on purpose.

Library code raises; the command line turns the class into an exit code (see `align.cli`).
"""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class AlignError(Exception):
    """Base of all errors raised on purpose. `exit_code` is what the command ends with."""

    exit_code = 1


class UsageError(AlignError):
    """An option or argument that cannot be meant as given."""

    exit_code = 2


class ModelError(AlignError):
    """A model that cannot be used, or that lacks what a method needs."""


class CheckpointError(ModelError):
    """A weights file that is damaged, unsafe, or does not fit its dictionaries."""


class DataError(AlignError):
    """Bad input text or links.

    Args:
        message: what is wrong and what was expected.
        path: the file, `-` for standard input.
        line: 1-based line number.
        column: 1-based column, in characters (in bytes where the text is not UTF-8).
    """

    def __init__(
        self,
        message: str,
        path: str | Path | None = None,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        place = ":".join(str(part) for part in (path, line, column) if part is not None)
        super().__init__(f"{place}: {message}" if place else message)
        self.path, self.line, self.column = path, line, column


def printable(text: str, limit: int = 60) -> str:
    """`text` quoted for a message: control characters escaped, cut at `limit` characters."""
    shown = text if len(text) <= limit else text[: limit - 1] + "…"
    return "'" + "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown) + "'"


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UsageError:
    """The error for a name that is not one of `known`, with a suggestion where one is close."""
    names = sorted(known)
    close = get_close_matches(name, names, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return UsageError(f"unknown {kind} {printable(name)}{hint} (known: {', '.join(names)})")
