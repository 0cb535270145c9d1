"""Lists that help to judge an alignment: words it leaves out, words it attaches to punctuation, where two differ."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import astuple, dataclass, fields
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, TypeAlias

from align.lexicon import NULL, Entry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from align.lexicon_input import LinkedPair


@dataclass(frozen=True, slots=True)
class UnalignedWord:
    """How often a word has no link; `side` is source or target, `rate` the share of its `count` occurrences."""

    side: str
    word: str
    count: int
    unaligned: int
    rate: float


@dataclass(frozen=True, slots=True)
class PunctuationWord:
    """A word whose links, of summed weight `count`, all go to punctuation."""

    side: str
    word: str
    count: float
    partners: str


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A source word whose most frequent target words, `NULL` among them, differ; p is p(t|s) in each lexicon."""

    source: str
    count: float
    first: str
    first_p: float
    second: str
    second_p: float


Report: TypeAlias = UnalignedWord | PunctuationWord | Disagreement
REPORTS: dict[str, type[Report]] = {
    "disagreement": Disagreement,
    "punctuation": PunctuationWord,
    "unaligned": UnalignedWord,
}


def report_lines(kind: type[Report], rows: Iterable[Report], min_count: float = 0) -> Iterator[str]:
    """The names of the fields and the rows of words with at least `min_count`, as TSV lines."""
    yield "\t".join(field.name for field in fields(kind)) + "\n"
    for row in rows:
        if row.count >= min_count:
            yield "\t".join(f"{x:.7g}" if isinstance(x, float) else str(x) for x in astuple(row)) + "\n"


def unaligned_words(pairs: Iterable[LinkedPair]) -> list[UnalignedWord]:
    """Every word with its unaligned rate, the highest first, then the most frequent."""
    words: Counter[tuple[str, str]] = Counter()
    unaligned: Counter[tuple[str, str]] = Counter()
    for linked in pairs:
        for side, text, position in (("source", linked.pair.source, 0), ("target", linked.pair.target, 1)):
            reached = {link[position] for link in linked.weights}
            words.update((side, word) for word in text)
            unaligned.update((side, word) for k, word in enumerate(text) if k not in reached)
    rows = [UnalignedWord(*key, n, unaligned[key], unaligned[key] / n) for key, n in words.items()]
    return sorted(rows, key=lambda row: (-row.rate, -row.count, row.side, row.word))


def punctuation_words(entries: Iterable[Entry], is_punctuation: Callable[[str], bool]) -> list[PunctuationWord]:
    """Words that are not punctuation and are linked to nothing else, the most frequent first."""
    counts: defaultdict[tuple[str, str], float] = defaultdict(float)
    partners: dict[tuple[str, str], list[str]] = {}
    others: set[tuple[str, str]] = set()
    for entry in entries:
        if NULL in entry.key:
            continue
        for key, partner in ((("source", entry.source), entry.target), (("target", entry.target), entry.source)):
            if is_punctuation(key[1]) or not is_punctuation(partner):
                others.add(key)
            else:
                counts[key] += entry.count
                partners.setdefault(key, []).append(partner)
    rows = [PunctuationWord(*key, counts[key], " ".join(found)) for key, found in partners.items() if key not in others]
    return sorted(rows, key=lambda row: (-row.count, row.side, row.word))


def disagreements(first: Iterable[Entry], second: Iterable[Entry]) -> list[Disagreement]:
    """Source words that two lexicons of one text translate differently, the most frequent first."""
    best = {entry.source: entry for entry in _best(second)}
    rows = [
        Disagreement(
            one.source,
            one.source_count,
            one.target,
            one.p_target_given_source,
            other.target,
            other.p_target_given_source,
        )
        for one in _best(first)
        if (other := best.get(one.source)) is not None and other.target != one.target
    ]
    return sorted(rows, key=lambda row: (-row.count, row.source))


def _best(entries: Iterable[Entry]) -> Iterator[Entry]:
    """The first entry of each source word, which is its most frequent one."""
    for source, group in groupby(entries, key=attrgetter("source")):
        if source != NULL:
            yield next(group)
