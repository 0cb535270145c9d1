"""What a report shows, and its compact form for the page.

The page holds numbers in base 64, one character a digit, so that thousands of pairs stay a few megabytes: positions of
links take as many digits as the longer sentence needs, a cell of a soft alignment takes one.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from eval.text import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from data.bitext import Pair
    from data.links import GoldAlignment, Links

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_"
BASE = len(ALPHABET)
MAX_PAIRS = 2000
BUDGET = 8_000_000
"""Characters of links and heat maps in a page; links take at most half of them."""

_CHARACTERS = np.frombuffer(ALPHABET.encode("ascii"), np.uint8)


@dataclass(frozen=True)
class System:
    """One alignment of all pairs.

    Attributes:
        name: of the method or the file.
        details: what tells it from others of that name, for people.
        links: of each pair.
        row: its scores and the like, with the keys of the tables of `compare` and `score`.
        soft: from the number of a pair, from 0, to shares in 0..1, [J, I]. Systems with the same soft alignments
            share the function, and the page holds them once.
        soft_note: what the shares are.
    """

    name: str
    details: str
    links: Sequence[Links]
    row: Mapping[str, object]
    soft: Callable[[int], NDArray[np.float64]] | None = None
    soft_note: str = ""


@dataclass(frozen=True)
class LexiconEntry:
    """A pair of words with its counts, and the numbers of the pairs, from 0, that show it; "" is no word."""

    source: str
    target: str
    count: float
    source_count: float
    target_count: float
    pairs: Sequence[int]


@dataclass(frozen=True)
class Report:
    """All that a page shows.

    Attributes:
        title: of the page.
        facts: what was aligned with what, one short text each.
        pairs: the words that links count.
        systems: best first.
        gold: of each pair, if there is any.
        cards: for names of systems, what there is to know about the method: labels and texts.
        lexicon: entries to show instead of those that the links of `pairs` give.
        interactions: for places in `pairs`, how two source words act together on each target word, [J, I, I], in nats.
    """

    title: str
    facts: Sequence[str]
    pairs: Sequence[Pair]
    systems: Sequence[System]
    gold: Sequence[GoldAlignment] | None = None
    cards: Mapping[str, Sequence[tuple[str, str]]] = field(default_factory=dict)
    lexicon: Sequence[LexiconEntry] | None = None
    interactions: Mapping[int, NDArray[np.float64]] = field(default_factory=dict)


def payload(report: Report, max_pairs: int = MAX_PAIRS, budget: int = BUDGET) -> tuple[dict[str, object], list[str]]:
    """The data of the page as JSON takes them, and what had to be left out of it, in words.

    Systems come in before others when they are the best of their name, then the second best of each name, and so on:
    every method has its place in the page before the many variants of a good one.
    """
    pairs = report.pairs[:max_pairs]
    sizes = [(len(pair.source), len(pair.target)) for pair in pairs]
    order = sorted(range(len(report.systems)), key=_places(report.systems).__getitem__)
    links: dict[int, list[str]] = {}
    used = 0
    for number in order:
        shown = report.systems[number].links[: len(pairs)]
        packed = [pack_links(found, size) for found, size in zip(shown, sizes, strict=True)]
        used += sum(map(len, packed))
        if links and used > budget // 2:
            break
        links[number] = packed
    matrices, soft_of = _pack_matrices(report.systems, list(links), sizes, budget - used)
    found: dict[str, object] = {
        "alphabet": ALPHABET,
        "pairs": [_pair(pair, report.gold[k] if report.gold else None) for k, pair in enumerate(pairs)],
        "matrices": matrices,
        "systems": [
            _system(system, links.get(number), soft_of.get(number)) for number, system in enumerate(report.systems)
        ],
    }
    if report.interactions:
        found["interactions"] = {k: pack_interactions(x) for k, x in report.interactions.items() if k < len(pairs)}
    if report.lexicon is not None:
        found["lexicon"] = [(visible(e.source), visible(e.target), *astuple(e)[2:]) for e in report.lexicon]
    return found, _left_out(report, len(pairs), len(links), len(soft_of))


def _places(systems: Sequence[System]) -> list[tuple[int, int]]:
    """For each system its rank among those of its name, and among all."""
    seen: dict[str, int] = {}
    places = []
    for rank, system in enumerate(systems):
        seen[system.name] = seen.get(system.name, 0) + 1
        places.append((seen[system.name], rank))
    return places


def _pack_matrices(
    systems: Sequence[System], order: Sequence[int], sizes: Sequence[tuple[int, int]], room: int
) -> tuple[list[list[str]], dict[int, int]]:
    """As many different soft alignments as there is room for, and which of them each system has."""
    most = room // max(1, sum(i * j for i, j in sizes))
    index: dict[object, int] = {}
    matrices: list[list[str]] = []
    soft_of: dict[int, int] = {}
    for number in order:
        soft = systems[number].soft
        if soft is None:
            continue
        if soft not in index and len(matrices) < most:
            index[soft] = len(matrices)
            matrices.append([pack_matrix(soft(k)) for k in range(len(sizes))])
        if soft in index:
            soft_of[number] = index[soft]
    return matrices, soft_of


def pack_links(links: Links, size: tuple[int, int]) -> str:
    """Positions of sorted links, source first, in as many digits of `ALPHABET` each as the longer sentence needs."""
    width = 1
    while BASE**width < max(size):
        width += 1
    places = [BASE**k for k in reversed(range(width))]
    return "".join(ALPHABET[n // place % BASE] for link in sorted(links) for n in link for place in places)


def pack_matrix(shares: NDArray[np.float64]) -> str:
    """Shares in 0..1, [J, I], row by row, each as the nearest of 64 levels."""
    return _CHARACTERS[np.rint(shares * (BASE - 1)).astype(np.int64)].tobytes().decode("ascii")


def pack_interactions(pairs: NDArray[np.float64]) -> dict[str, object]:
    """Symmetric [J, I, I] as the greatest amount and, for each target word, the cells below the diagonal.

    Cells go row by row, each as the nearest of 63 levels from minus to plus the greatest amount; the middle one is 0.
    """
    half = BASE // 2 - 1
    most = float(abs(pairs).max(initial=0))
    levels = np.rint(pairs / (most or 1) * half).astype(np.int64) + half
    below = np.tril_indices(pairs.shape[1], -1)
    return {"most": most, "cells": [_CHARACTERS[row[below]].tobytes().decode("ascii") for row in levels]}


def _pair(pair: Pair, gold: GoldAlignment | None) -> dict[str, object]:
    size = (len(pair.source), len(pair.target))
    record: dict[str, object] = {
        "line": pair.id + 1,
        "source": [visible(word) for word in pair.source],
        "target": [visible(word) for word in pair.target],
    }
    if gold is not None:
        record["sure"] = pack_links(gold.sure, size)
        record["possible"] = pack_links(gold.possible - gold.sure, size)
    return record


_ROW_KEYS = ("layer", "heads", "position", "direction", "pooling", "aer", "aer_low", "aer_high", "signature")


def _system(system: System, links: list[str] | None, soft: int | None) -> dict[str, object]:
    row = {key: system.row.get(key) for key in _ROW_KEYS}
    return {
        "name": system.name,
        "details": system.details,
        "links": links,
        "soft": soft,
        "soft_note": system.soft_note,
        **row,
    }


def _left_out(report: Report, pairs: int, with_links: int, with_soft: int) -> list[str]:
    """Sentences on what the page does not hold."""
    notes = []
    if pairs < len(report.pairs):
        notes.append(
            f"The browser holds the first {pairs:,} of {len(report.pairs):,} pairs; scores are of all of them."
        )
    if with_links < len(report.systems):
        notes.append(f"The browser holds the links of {with_links} of {len(report.systems)} systems.")
    soft = sum(system.soft is not None for system in report.systems)
    if with_soft < soft:
        notes.append(f"{with_soft} of {soft} systems have their heat map in the page.")
    return notes
