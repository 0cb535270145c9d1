"""Lexicon counts of a shard, collected while it is aligned; `nmt-align lexicon --merge FOLDER` adds them up."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from align.lexicon import MemoryTable, count, linked_words
from align.lexicon_formats import write_lexicon
from align.lexicon_input import UNIT, LinkedPair
from data.bitext import Pair

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from align.batch.shard import Record

WEIGHTS = ("links", "scores")
"""What a link counts: 1, or its score."""
DIGITS = 4
"""Digits after the point of scores and matrices: fewer than float32 can tell apart."""


def write_counts(path: Path, records: Iterable[Record], weights: str) -> None:
    """Count what the links of `records` join, exactly as `nmt-align lexicon` counts the merged files.

    Raises:
        AlignError: a write that failed.
    """
    table = MemoryTable()
    count(chain.from_iterable(map(linked_words, _linked(records, weights))), table)
    write_lexicon(table.lexicon(), str(path), "tsv")


def _linked(records: Iterable[Record], weights: str) -> Iterator[LinkedPair]:
    for record in records:
        scores = {link: round(round(score, DIGITS) * UNIT) for link, score in record.scores.items()}
        counted = dict.fromkeys(scores, UNIT) if weights == "links" else {k: v for k, v in scores.items() if v}
        yield LinkedPair(Pair(record.id, record.source, record.target), counted)
