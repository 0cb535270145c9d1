"""How good a lexicon is: against a dictionary, or against the lexicon that gold alignments spell out.

For each source word of the reference there are sufficient statistics; scores are a pure function of their sum, and
the bootstrap resamples source words.

    coverage = words with an entry / words
    precision@k = words with a right one among their k best entries / words with an entry
    precision = right entries / entries
    recall = sure pairs that are entries / sure pairs

Only entries of source words in the reference count. Against gold alignments, an entry is right if a possible link
joins its words somewhere, and a pair is sure if a sure link does, as precision and recall of links have it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import astuple, dataclass, fields
from typing import TYPE_CHECKING

from data.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from data.bitext import Pair
    from data.links import GoldAlignment

    Translations = Mapping[str, Sequence[str]]

_CELLS_AT_ONCE = 1 << 22  # of resampling counts, which bounds memory


@dataclass(frozen=True, slots=True)
class Reference:
    """The right target words of each source word; `possible` contains `sure`, and is the same in a dictionary."""

    sure: Mapping[str, frozenset[str]]
    possible: Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class WordStats:
    """What the scores need from one source word, or summed over many."""

    words: int = 0
    covered: int = 0
    hits_1: int = 0
    hits_5: int = 0
    hits_10: int = 0
    entries: int = 0
    right: int = 0
    sure: int = 0
    found: int = 0

    def __add__(self, other: WordStats) -> WordStats:
        return WordStats(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True, slots=True)
class LexiconScores:
    """Scores as fractions of 1; None where undefined."""

    coverage: float | None
    precision_1: float | None
    precision_5: float | None
    precision_10: float | None
    precision: float | None
    recall: float | None
    f1: float | None


def dictionary_reference(translations: Translations) -> Reference:
    """A dictionary as reference: all its pairs are sure."""
    pairs = {source: frozenset(targets) for source, targets in translations.items()}
    return Reference(pairs, pairs)


def gold_reference(aligned: Iterable[tuple[Pair, GoldAlignment]]) -> Reference:
    """The word pairs that gold alignments link, sure and possible."""
    sure: defaultdict[str, set[str]] = defaultdict(set)
    possible: defaultdict[str, set[str]] = defaultdict(set)
    for pair, gold in aligned:
        for links, words in ((gold.sure, sure), (gold.possible, possible)):
            for i, j in links:
                words[pair.source[i]].add(pair.target[j])
    return Reference(
        {source: frozenset(targets) for source, targets in sure.items()},
        {source: frozenset(targets) for source, targets in possible.items()},
    )


def lexicon_stats(lexicon: Translations, reference: Reference) -> list[WordStats]:
    """The statistics of each source word of the reference, in its order.

    Args:
        lexicon: the target words of each source word, from best to worst, none of them twice.
        reference: what is right.

    Raises:
        DataError: an empty reference.
    """
    if not reference.possible:
        raise DataError("the reference has no pairs")
    return [
        _word_stats(lexicon.get(source, ()), right, reference.sure.get(source, frozenset()))
        for source, right in reference.possible.items()
    ]


def _word_stats(targets: Sequence[str], right: frozenset[str], sure: frozenset[str]) -> WordStats:
    first = next((rank for rank, target in enumerate(targets, 1) if target in right), math.inf)
    return WordStats(
        words=1,
        covered=int(bool(targets)),
        hits_1=int(first <= 1),
        hits_5=int(first <= 5),
        hits_10=int(first <= 10),
        entries=len(targets),
        right=sum(target in right for target in targets),
        sure=len(sure),
        found=sum(target in sure for target in targets),
    )


def lexicon_scores(stats: WordStats) -> LexiconScores:
    """Scores from summed statistics."""
    precision, recall = _ratio(stats.right, stats.entries), _ratio(stats.found, stats.sure)
    return LexiconScores(
        coverage=_ratio(stats.covered, stats.words),
        precision_1=_ratio(stats.hits_1, stats.covered),
        precision_5=_ratio(stats.hits_5, stats.covered),
        precision_10=_ratio(stats.hits_10, stats.covered),
        precision=precision,
        recall=recall,
        f1=None if precision is None or recall is None else _harmonic(precision, recall),
    )


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _harmonic(a: float, b: float) -> float:
    return 2 * a * b / (a + b) if a + b else 0.0


def intervals(stats: Sequence[WordStats], resamples: int, seed: int) -> dict[str, tuple[float, float] | None]:
    """For each score the 2.5th and 97.5th percentile over resamples of the source words; None if undefined.

    Equal seeds draw the same words for every lexicon that is scored against one reference.
    """
    import numpy as np

    table = np.array([astuple(each) for each in stats], dtype=np.int64)  # [N, F]
    drawn = [lexicon_scores(WordStats(*row)) for row in _resampled(table, resamples, seed).tolist()]
    found: dict[str, tuple[float, float] | None] = {}
    for field in fields(LexiconScores):
        values = [value for scores in drawn if (value := getattr(scores, field.name)) is not None]
        ends = np.percentile(values, [2.5, 97.5]).tolist() if values else None
        found[field.name] = ends and (ends[0], ends[1])
    return found


def _resampled(table: NDArray[np.int64], resamples: int, seed: int) -> NDArray[np.int64]:
    """Sums over `resamples` draws of N from the N rows of `table` [N, F], with replacement. [R, F]"""
    import numpy as np

    rng, words = np.random.default_rng(seed), len(table)
    at_once = max(1, _CELLS_AT_ONCE // words)
    sizes = [min(at_once, resamples - start) for start in range(0, resamples, at_once)]
    draws = (rng.multinomial(words, np.full(words, 1 / words), size) for size in sizes)  # [r, N]
    return np.concatenate([counts @ table for counts in draws])
