"""Rows of results as an aligned text table for people, or as JSON or TSV for programs.

A row is a flat dictionary, and all rows have the same keys. AER and the like stay fractions of 1 in JSON and
TSV and are percentages in the text table. What is undefined is None in a row, `null` in JSON, an empty field
in TSV and `–` in the text table; there is never a `nan`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isfinite
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Row = Mapping[str, object]
Format = Literal["table", "json", "tsv"]
FORMATS: tuple[Format, ...] = get_args(Format)
UNDEFINED = "–"
SIGNIFICANT = 0.05
"""A p-value below it gets a `*` in the text table."""


def render(rows: Sequence[Row], form: Format, columns: Sequence[str] | None = None) -> str:
    """`rows` in one of the `FORMATS`, with the line end.

    Args:
        rows: values are text, numbers, booleans or None. The text table moves `signature` below the grid.
        form: how to write them.
        columns: the keys that the text table shows (all of them by default); JSON and TSV hold every key.
    """
    defined = [{key: _defined(value) for key, value in row.items()} for row in rows]
    if form == "json":
        return json.dumps(defined, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    if form == "tsv":
        return _tsv(defined)
    return _table(defined, columns)


def _defined(value: object) -> object:
    return None if isinstance(value, float) and not isfinite(value) else value


def _tsv(rows: Sequence[Row]) -> str:
    lines = [list(rows[0])] if rows else []
    lines += [["" if value is None else _one_line(str(value)) for value in row.values()] for row in rows]
    return "".join("\t".join(line) + "\n" for line in lines)


def _table(rows: Sequence[Row], columns: Sequence[str] | None) -> str:
    if not rows:
        return ""
    keys = [key for key in (columns or rows[0]) if key != "signature"]
    signatures = [_one_line(str(row["signature"])) for row in rows if "signature" in row]
    if len(set(signatures)) == 1:
        notes = [f"signature: {signatures[0]}"]
    else:
        notes = [f"signature {number}: {text}" for number, text in enumerate(signatures, 1)]
    if len(notes) > 1:
        rows = [{"#": number, **row} for number, row in enumerate(rows, 1)]
        keys.insert(0, "#")
    cells = [[cell(key, row[key]) for row in rows] for key in keys]  # by column
    grid = [
        _aligned(TITLES.get(key, key), column, right=any(isinstance(row[key], int | float) for row in rows))
        for key, column in zip(keys, cells, strict=True)
    ]
    lines = ["  ".join(line).rstrip() for line in zip(*grid, strict=True)]
    return "\n".join([*lines, *notes]) + "\n"


def _aligned(title: str, column: Sequence[str], *, right: bool) -> list[str]:
    width = max(map(len, (title, *column)))
    return [text.rjust(width) if right else text.ljust(width) for text in (title, *column)]


def cell(key: str, value: object) -> str:
    if value is None:
        return UNDEFINED
    if isinstance(value, int | float) and key in _SHOWN:
        return _SHOWN[key](value)
    return f"{value:.3f}" if isinstance(value, float) else _one_line(str(value))


def _percentage(value: float) -> str:
    return f"{100 * value:.1f}"


def _amount(value: float) -> str:
    """Three digits are enough to compare costs."""
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def _starred(p_value: float) -> str:
    return f"{p_value:.3f}{'*' if p_value < SIGNIFICANT else ' '}"


def _one_line(text: str) -> str:
    """`text` with control characters escaped, tabs and line ends among them."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


_SHOWN: dict[str, Callable[[float], str]] = {
    **dict.fromkeys(("passes", "seconds"), _amount),
    **dict.fromkeys(("aer", "aer_low", "aer_high", "precision", "recall", "f1", "f_alpha"), _percentage),
    "p_value": _starred,
}
TITLES = {
    "aer": "AER %",
    "aer_low": "95% low",
    "aer_high": "95% high",
    "precision": "precision %",
    "recall": "recall %",
    "f1": "F1 %",
    "f_alpha": "F-alpha %",
    "p_value": "p ",
}
