"""Alignment error rate: sufficient statistics of each sentence, and one pure function from sum to scores.

With hypothesis links A, sure gold links S and possible gold links P, S ⊆ P (Och and Ney 2003, "A Systematic
Comparison of Various Statistical Alignment Models"):

    precision = |A ∩ P| / |A|    recall = |A ∩ S| / |S|    AER = 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from data.errors import DataError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from data.links import GoldAlignment, Links


@dataclass(frozen=True, slots=True)
class AlignmentStats:
    """What AER, precision, recall and F need from a sentence; for a corpus, the sum over its sentences."""

    sure_hits: int = 0  # |A ∩ S|
    possible_hits: int = 0  # |A ∩ P|
    links: int = 0  # |A|
    sure: int = 0  # |S|

    def __add__(self, other: AlignmentStats) -> AlignmentStats:
        return AlignmentStats(
            self.sure_hits + other.sure_hits,
            self.possible_hits + other.possible_hits,
            self.links + other.links,
            self.sure + other.sure,
        )


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores as fractions of 1; None where undefined.

    Attributes:
        aer: undefined if there is neither a hypothesis link nor a sure one.
        precision: undefined without hypothesis links.
        recall: undefined without sure links.
        f1: harmonic mean of precision and recall; undefined if one of them is.
        f_alpha: 1 / (α / precision + (1 - α) / recall) (Fraser and Marcu 2007); undefined as `f1` is.
    """

    aer: float | None
    precision: float | None
    recall: float | None
    f1: float | None
    f_alpha: float | None


def sentence_stats(hypothesis: Links, gold: GoldAlignment) -> AlignmentStats:
    """The statistics of one sentence pair."""
    return AlignmentStats(
        sure_hits=len(hypothesis & gold.sure),
        possible_hits=len(hypothesis & gold.possible),
        links=len(hypothesis),
        sure=len(gold.sure),
    )


def corpus_stats(hypotheses: Sequence[Links], gold: Sequence[GoldAlignment]) -> list[AlignmentStats]:
    """The statistics of each sentence pair.

    Raises:
        DataError: not as many hypotheses as gold alignments.
    """
    if len(hypotheses) != len(gold):
        raise DataError(f"{len(hypotheses)} hypothesis lines against {len(gold)} gold lines: they must pair up")
    return [sentence_stats(links, reference) for links, reference in zip(hypotheses, gold, strict=True)]


def total(stats: Iterable[AlignmentStats]) -> AlignmentStats:
    """The sum of sentence statistics."""
    return sum(stats, AlignmentStats())


def scores(stats: AlignmentStats, alpha: float = 0.5) -> Scores:
    """Scores from summed statistics.

    Args:
        stats: the sum over the sentences of a corpus. (A mean of sentence scores is not AER.)
        alpha: weight of precision in `f_alpha`, between 0 and 1 exclusive; 0.5 makes it equal to `f1`.

    Raises:
        UsageError: `alpha` out of range.
    """
    if not 0 < alpha < 1:
        raise UsageError(f"alpha must lie between 0 and 1, got {alpha}")
    precision = _ratio(stats.possible_hits, stats.links)
    recall = _ratio(stats.sure_hits, stats.sure)
    agreement = _ratio(stats.sure_hits + stats.possible_hits, stats.links + stats.sure)
    return Scores(
        aer=None if agreement is None else 1 - agreement,
        precision=precision,
        recall=recall,
        f1=_f_measure(precision, recall, 0.5),
        f_alpha=_f_measure(precision, recall, alpha),
    )


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _f_measure(precision: float | None, recall: float | None, alpha: float) -> float | None:
    if precision is None or recall is None:
        return None
    if precision == 0 or recall == 0:
        return 0.0
    return 1 / (alpha / precision + (1 - alpha) / recall)
