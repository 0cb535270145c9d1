"""Bilingual lexicons: counts of linked words or phrases, and what follows from them.

Every link joins a source and a target word and counts its weight; a word without a link counts 1 as linked to
`NULL`, as in Moses. With c(s, t) the count of a pair, c(s) and c(t) its sums over all partners and N the sum over
all pairs,

    p(t|s) = c(s, t) / c(s)    p(s|t) = c(s, t) / c(t)    Dice = 2 c(s, t) / (c(s) + c(t))
    PMI = log2 (c(s, t) N / (c(s) c(t)))    LLR = 2 Σ observed ln (observed / expected)

where LLR, the log-likelihood ratio G² (Dunning 1993, "Accurate Methods for the Statistics of Surprise and
Coincidence"), runs over the four cells of the table "joins s or not" by "joins t or not".
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, TypeAlias

from align.lexicon_input import UNIT
from align.phrases import phrase_pairs
from data.bitext import Pair
from data.errors import DataError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from align.lexicon_examples import Example, Examples
    from align.lexicon_input import LinkedPair

Key: TypeAlias = tuple[str, str]
"""A source and a target word; the words of a phrase are joined by a space."""
NULL = ""
"""Stands for no word, on either side; no word of a text is empty."""
SHARD = 1_000_000
"""Different pairs that are counted together before they go to the table of all counts."""
NOWHERE: Mapping[Key, Sequence[int]] = MappingProxyType({})
"""The places of a part of the corpus without examples."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A pair and its counts.

    Attributes:
        source, target: the words; `NULL` for none.
        count: c(s, t), the summed weight of the links that join the two.
        source_count, target_count: c(s) and c(t).
        places: where its examples are.
    """

    source: str
    target: str
    count: float
    source_count: float
    target_count: float
    places: tuple[int, ...] = ()

    @property
    def key(self) -> Key:
        """The two words."""
        return self.source, self.target

    @property
    def p_target_given_source(self) -> float:
        """p(t|s)."""
        return self.count / self.source_count

    @property
    def p_source_given_target(self) -> float:
        """p(s|t)."""
        return self.count / self.target_count


@dataclass(frozen=True)
class Lexicon:
    """Entries in order of their source word, the most frequent first, and what is to be told of them.

    Attributes:
        entries: can be gone through once, unless it is a sequence.
        total: N, the summed weight of all links.
        measures: names in `MEASURES` to tell beside the counts and probabilities.
        examples: the sentence pairs that the places of entries name, if some were wanted.
    """

    entries: Iterable[Entry]
    total: float
    measures: tuple[str, ...] = ()
    examples: Examples | None = None

    def examples_of(self, entry: Entry) -> list[Example]:
        """The examples of an entry."""
        return self.examples.read(entry.places) if self.examples else []

    def __post_init__(self) -> None:
        for name in self.measures:
            if name not in MEASURES:
                raise unknown_name("measure", name, MEASURES)


def dice(entry: Entry, total: float) -> float:
    """Dice's coefficient, from 0 to 1."""
    return 2 * entry.count / (entry.source_count + entry.target_count)


def pmi(entry: Entry, total: float) -> float:
    """Pointwise mutual information in bits; below 0 where a pair is rarer than chance."""
    return math.log2(entry.count * total / (entry.source_count * entry.target_count))


def log_likelihood_ratio(entry: Entry, total: float) -> float:
    """G² of the table of `entry`, at least 0; it does not tell more often than chance from less often."""
    rows = (entry.source_count, total - entry.source_count)
    columns = (entry.target_count, total - entry.target_count)
    joint = entry.count
    observed = (joint, rows[0] - joint, columns[0] - joint, rows[1] - columns[0] + joint)
    expected = (row * column / total for row in rows for column in columns)
    pairs = zip(observed, expected, strict=True)
    return max(0.0, 2 * math.fsum(o * math.log(o / e) for o, e in pairs if o > 0 and e > 0))


def llr_p_value(entry: Entry, total: float) -> float:
    """Probability of so large a G² if the two words were independent: χ² with one degree of freedom."""
    return math.erfc(math.sqrt(log_likelihood_ratio(entry, total) / 2))


MEASURES: dict[str, Callable[[Entry, float], float]] = {
    "dice": dice,
    "llr": log_likelihood_ratio,
    "llr_p_value": llr_p_value,
    "pmi": pmi,
}


def lowercased(pairs: Iterable[Pair]) -> Iterator[Pair]:
    """The pairs in lower case."""
    for pair in pairs:
        yield Pair(pair.id, tuple(map(str.lower, pair.source)), tuple(map(str.lower, pair.target)))


def linked_words(linked: LinkedPair, *, null: bool = True) -> Iterator[tuple[Key, int]]:
    """The word pairs that the links join, with their weights; unaligned words with `NULL` if wanted."""
    source, target = linked.pair.source, linked.pair.target
    for (i, j), weight in linked.weights.items():
        yield (source[i], target[j]), weight
    if null:
        sources, targets = {i for i, _ in linked.weights}, {j for _, j in linked.weights}
        for i, word in enumerate(source):
            if i not in sources:
                yield (word, NULL), UNIT
        for j, word in enumerate(target):
            if j not in targets:
                yield (NULL, word), UNIT


def linked_phrases(linked: LinkedPair, longest: int) -> Iterator[tuple[Key, int]]:
    """The phrase pairs of up to `longest` words a side that fit the links, each of weight 1."""
    source, target = linked.pair.source, linked.pair.target
    for (i1, i2), (j1, j2) in phrase_pairs(linked.weights.keys(), len(source), len(target), longest):
        yield (" ".join(source[i1:i2]), " ".join(target[j1:j2])), UNIT


class Table(Protocol):
    """All counts of a corpus, in memory (`MemoryTable`) or on disk (`align.lexicon_duckdb`)."""

    def add(self, counts: Mapping[Key, int], places: Mapping[Key, Sequence[int]] = NOWHERE) -> None:
        """Add the counts, in millionths, of a part of the corpus, and where the examples of its entries are."""

    def lexicon(self, measures: tuple[str, ...] = ()) -> Lexicon:
        """What has been counted."""


class MemoryTable:
    """Counts in memory: some 200 bytes for each different pair, twice that when sorted, and 100 for examples."""

    def __init__(self, examples: Examples | None = None) -> None:
        self._examples = examples
        self._counts: defaultdict[Key, int] = defaultdict(int)
        self._places: defaultdict[Key, tuple[int, ...]] = defaultdict(tuple)

    def add(self, counts: Mapping[Key, int], places: Mapping[Key, Sequence[int]] = NOWHERE) -> None:
        for key, count in counts.items():
            self._counts[key] += count
        for key, found in places.items():
            if self._examples:
                self._places[key] = tuple(dict.fromkeys((*self._places[key], *found)))[: self._examples.most]

    def lexicon(self, measures: tuple[str, ...] = ()) -> Lexicon:
        return Lexicon(self._entries(), sum(self._counts.values()) / UNIT, measures, self._examples)

    def _entries(self) -> Iterator[Entry]:
        sources: defaultdict[str, int] = defaultdict(int)
        targets: defaultdict[str, int] = defaultdict(int)
        for (source, target), count in self._counts.items():
            sources[source] += count
            targets[target] += count
        for key, count in sorted(self._counts.items(), key=_rank):
            source, target = key
            places = self._places.get(key, ())
            yield Entry(source, target, count / UNIT, sources[source] / UNIT, targets[target] / UNIT, places)


def _rank(item: tuple[Key, int]) -> tuple[str, int, str]:
    (source, target), count = item
    return source, -count, target


def count(
    events: Iterable[tuple[Key, int]], table: Table, shard: int = SHARD, examples: Examples | None = None
) -> None:
    """Count weighted pairs, `shard` different ones at a time, and add each such part to `table`.

    With `examples`, the sentence pairs that `events` come from are to be watched by them.
    """
    counts: dict[Key, int] = {}
    places: dict[Key, list[int]] = {}
    for key, weight in events:
        counts[key] = counts.get(key, 0) + weight
        if examples:
            examples.note(places.setdefault(key, []))
        if len(counts) >= shard:
            table.add(counts, places)
            counts, places = {}, {}
    table.add(counts, places)


def recounted(entries: Iterable[Entry], path: str) -> Iterator[tuple[Key, int]]:
    """The counts of a lexicon that has been written, to be added to others.

    Raises:
        DataError: entries of a word do not sum to the count it is said to have, because some were left out.
    """
    sums: defaultdict[tuple[str, str], int] = defaultdict(int)
    said: dict[tuple[str, str], int] = {}
    for entry in entries:
        count = round(entry.count * UNIT)
        yield (entry.source, entry.target), count
        for side, word, marginal in (
            ("source", entry.source, entry.source_count),
            ("target", entry.target, entry.target_count),
        ):
            sums[side, word] += count
            said[side, word] = round(marginal * UNIT)
    short = next((key for key in said if sums[key] != said[key]), None)
    if short is not None:
        message = (
            f"the entries of the {short[0]} word {short[1]!r} count {sums[short] / UNIT:g}, not "
            f"{said[short] / UNIT:g}; lexicons to merge must be whole, without --min-count, --top or --stop"
        )
        raise DataError(message, path)


def select(
    entries: Iterable[Entry],
    min_count: float = 0,
    top: int | None = None,
    source_stop: frozenset[str] = frozenset(),
    target_stop: frozenset[str] = frozenset(),
) -> Iterator[Entry]:
    """The entries to keep; their counts and probabilities stay as they are.

    Args:
        entries: in the order of a `Lexicon`.
        min_count: least c(s, t).
        top: how many target words of each source word to keep; `NULL` is kept and not counted.
        source_stop, target_stop: words to leave out, and with them phrases made only of such words.
    """
    for _, group in groupby(entries, key=attrgetter("source")):
        kept = 0
        for entry in group:
            if entry.count < min_count or _stopped(entry.source, source_stop) or _stopped(entry.target, target_stop):
                continue
            if entry.target != NULL:
                kept += 1
                if top is not None and kept > top:
                    continue
            yield entry


def _stopped(phrase: str, stop: frozenset[str]) -> bool:
    return bool(stop) and all(word in stop for word in phrase.split(" "))
