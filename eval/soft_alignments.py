"""Soft alignments as `run --matrices FILE.jsonl` writes them: words, links and a matrix, one pair a line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from data.bitext import Pair
from data.errors import DataError
from data.streams import read_lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from data.links import Links


@dataclass(frozen=True)
class SoftAlignment:
    """One pair: its words, its links, the scores [J, I] that they were taken from, and how all was made."""

    pair: Pair
    links: Links
    matrix: NDArray[np.float64]
    signature: str


def is_soft(path: str | Path) -> bool:
    """Whether a name is that of a file of soft alignments."""
    return str(path).endswith((".jsonl", ".jsonl.gz"))


def read_soft(path: str | Path) -> Iterator[SoftAlignment]:
    """The soft alignments of a file, line n for pair n.

    Raises:
        DataError: a line that is no JSON, lacks a field, or whose links or matrix do not fit its words.
    """
    for number, text in read_lines(path):
        try:
            yield _parse(text, number - 1)
        except ValueError as error:
            raise DataError(f"{error}; expected a line of `run --matrices`", path, number) from None
        except RecursionError:
            raise DataError("nested too deeply; expected a line of `run --matrices`", path, number) from None


def _parse(text: str, index: int) -> SoftAlignment:
    record = json.loads(text, parse_constant=_no_number)
    if not isinstance(record, dict):
        raise ValueError("not a JSON object")
    source, target = _words(record, "src"), _words(record, "tgt")
    signature = record.get("method", "")
    if not isinstance(signature, str):
        raise ValueError("`method` is no text")
    return SoftAlignment(
        Pair(index, source, target),
        frozenset(_link(item, len(source), len(target)) for item in _list(record, "links")),
        _matrix(_list(record, "matrix"), len(target), len(source)),
        signature,
    )


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number")


def _list(record: dict[str, Any], key: str) -> list[Any]:
    value = record.get(key)
    if not isinstance(value, list):
        raise ValueError(f"no list `{key}`")
    return value


def _words(record: dict[str, Any], key: str) -> tuple[str, ...]:
    words = _list(record, key)
    if not all(isinstance(word, str) and word for word in words):
        raise ValueError(f"`{key}` holds something else than words")
    return tuple(words)


def _link(item: Any, source: int, target: int) -> tuple[int, int]:
    match item:
        case [int(i), int(j), *_] if 0 <= i < source and 0 <= j < target:
            return i, j
    raise ValueError(f"link {json.dumps(item)[:40]} is not within {source} source and {target} target words")


def _matrix(rows: list[Any], target: int, source: int) -> NDArray[np.float64]:
    fits = len(rows) == target and all(isinstance(row, list) and len(row) == source for row in rows)
    if not fits or not all(isinstance(cell, int | float) for row in rows for cell in row):
        raise ValueError(f"`matrix` is not {target} rows (target words) of {source} numbers (source words)")
    try:
        return np.array(rows, np.float64).reshape(target, source)
    except OverflowError:
        raise ValueError("`matrix` holds a number too large") from None
