"""The report of a lexicon that has been counted from more text than a page holds."""

from __future__ import annotations

from heapq import nlargest
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING

from align.lexicon_readers import read_examples
from data.bitext import Pair
from eval.report.build import MAX_PAIRS, LexiconEntry, Report, System

if TYPE_CHECKING:
    from collections.abc import Iterator

    from align.lexicon import Entry
    from align.lexicon_examples import Example

MAX_ENTRIES = 30_000
"""Entries of a page, the most frequent ones."""


def lexicon_report(path: str) -> tuple[Report, list[str]]:
    """The report of a lexicon in JSONL with its examples, and what had to be left out of it, in words.

    Raises:
        DataError: see `align.lexicon_readers.read_examples`.
    """
    total = 0

    def counted() -> Iterator[tuple[Entry, list[Example]]]:
        nonlocal total
        for item in read_examples(path):
            total += 1
            yield item

    kept = nlargest(MAX_ENTRIES, counted(), key=lambda item: item[0].count)
    wanted = dict.fromkeys(example for _, examples in kept for example in examples)
    shown = sorted(islice(wanted, MAX_PAIRS), key=attrgetter("line"))
    places = {example: place for place, example in enumerate(shown)}
    entries = []
    for e, examples in kept:
        at = [places[example] for example in examples if example in places]
        entries.append(LexiconEntry(e.source, e.target, e.count, e.source_count, e.target_count, at))
    pairs = [Pair(example.line - 1, example.source, example.target) for example in shown]
    links = [example.links for example in shown]
    system = System(path, "", links, {"links": sum(map(len, links))})
    facts = [f"{total:,} entries", f"{len(pairs):,} example sentences"]
    notes = []
    if len(kept) < total:
        notes.append(f"the {len(kept):,} most frequent of {total:,} entries")
    if len(shown) < len(wanted):
        notes.append(f"the first {len(shown):,} of {len(wanted):,} example sentences, most frequent entries first")
    return Report("Bilingual lexicon", facts, pairs, [system], lexicon=entries), notes
