"""Paired bootstrap of AER and of means: how far a figure, or a difference of two, depends on the choice of sentences.

Resampling works on sentence statistics (see `eval.aer`), with the same sentences drawn for every system
(Koehn 2004, "Statistical Significance Tests for Machine Translation Evaluation").
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from data.errors import DataError
from eval.aer import AlignmentStats, scores, total

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

RESAMPLES = 1000
SEED = 12345

_DRAWS_AT_ONCE = 1 << 20  # bounds memory: about 16 MB however long the test set


@dataclass(frozen=True, slots=True)
class AERInterval:
    """What resampling says of one system; None where undefined.

    Attributes:
        low, high: the 2.5th and 97.5th percentile of AER over the resamples, in which it is defined.
        p_value: two-sided, of the hypothesis that this AER equals the first system's; None for the first.
    """

    low: float | None
    high: float | None
    p_value: float | None


def paired_bootstrap(
    systems: Sequence[Sequence[AlignmentStats]], resamples: int = RESAMPLES, seed: int = SEED
) -> list[AERInterval]:
    """Confidence interval of each system's AER, and its difference to the first system's.

    The p-value is the share of resamples in which the difference of AER lies at least as far from its mean
    over the resamples as the observed difference lies from 0, counting the observation itself as one.

    Args:
        systems: for each system the statistics of the same sentences in the same order.
        resamples: how many corpora of as many sentences to draw, with replacement.
        seed: of the generator; equal seeds and sentences give equal results whatever systems are compared.

    Raises:
        DataError: the systems differ in the number of sentences.
    """
    sums = resample(systems, resamples, seed)
    drawn = [[scores(stats).aer for stats in system] for system in sums]
    observed = [scores(total(system)).aer for system in systems]
    return [
        AERInterval(
            *_percentiles([aer for aer in drawn[number] if aer is not None]),
            _p_value(observed[number], observed[0], drawn[number], drawn[0]) if number else None,
        )
        for number in range(len(systems))
    ]


def resample(systems: Sequence[Sequence[AlignmentStats]], resamples: int, seed: int) -> list[list[AlignmentStats]]:
    """Summed statistics of `resamples` corpora for each system, all from one draw of sentences.

    The r-th corpus holds the sentences `rng.integers(N, size=(resamples, N))[r]`, N the number of sentences.

    Raises:
        DataError: the systems differ in the number of sentences.
    """
    import numpy as np

    sentences = _sentences(systems)
    if not sentences:
        return [[AlignmentStats()] * resamples for _ in systems]
    fields = attrgetter("sure_hits", "possible_hits", "links", "sure")
    table = np.array([[fields(stats) for stats in system] for system in systems], dtype=np.float64)  # [M, N, 4]
    sums: list[list[AlignmentStats]] = [[] for _ in systems]
    for counts in draws(sentences, resamples, seed):
        for system, drawn in zip(sums, (counts @ table).tolist(), strict=True):  # [M, rows, 4]
            system.extend(AlignmentStats(*map(int, row)) for row in drawn)
    return sums


def _sentences(systems: Sequence[Sequence[object]]) -> int:
    """How many sentences the systems cover; a DataError where they differ."""
    lengths = {len(system) for system in systems}
    if len(lengths) > 1:
        raise DataError(f"systems to compare must cover the same sentences, got {sorted(lengths)} of them")
    return lengths.pop() if lengths else 0


def draws(sentences: int, resamples: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """How often each resample draws each sentence, some resamples at a time: [rows, N]."""
    import numpy as np

    rng = np.random.default_rng(seed)
    at_once = max(1, _DRAWS_AT_ONCE // sentences)
    for start in range(0, resamples, at_once):
        rows = min(at_once, resamples - start)
        drawn = rng.integers(sentences, size=(rows, sentences))
        drawn += np.arange(rows)[:, None] * sentences  # a range of numbers for each resample, to count them apart
        yield np.bincount(drawn.ravel(), minlength=rows * sentences).reshape(rows, sentences)


@dataclass(frozen=True, slots=True)
class MeanInterval:
    """A mean over sentences and what resampling says of it; None where undefined.

    Attributes:
        value: the mean.
        low, high: its 2.5th and 97.5th percentile over the resamples.
        p_value: two-sided, of the hypothesis that this mean equals the first system's; None for the first.
    """

    value: float | None
    low: float | None
    high: float | None
    p_value: float | None


def paired_means(
    systems: Sequence[Sequence[tuple[float, float]]], resamples: int = RESAMPLES, seed: int = SEED
) -> list[MeanInterval]:
    """The mean of each system with its interval, resampled as in `paired_bootstrap`.

    Args:
        systems: for each system a sum and its count in each sentence, such as loss and target pieces; the mean is the
            sum of sums by the sum of counts. A sentence where nothing is defined is (0, 0).

    Raises:
        DataError: the systems differ in the number of sentences.
    """
    import numpy as np

    sentences = _sentences(systems)
    if not sentences:
        return [MeanInterval(None, None, None, None) for _ in systems]
    table = np.array(systems, dtype=np.float64)  # [M, N, 2]
    observed = [_mean(*row) for row in table.sum(1).tolist()]
    drawn: list[list[float | None]] = [[] for _ in systems]
    for counts in draws(sentences, resamples, seed):
        for system, sums in zip(drawn, (counts @ table).tolist(), strict=True):  # [M, rows, 2]
            system.extend(_mean(*row) for row in sums)
    return [
        MeanInterval(
            observed[number],
            *_percentiles([mean for mean in drawn[number] if mean is not None]),
            _p_value(observed[number], observed[0], drawn[number], drawn[0]) if number else None,
        )
        for number in range(len(systems))
    ]


def _mean(total: float, count: float) -> float | None:
    return total / count if count else None


def _percentiles(values: Sequence[float]) -> tuple[float | None, float | None]:
    import numpy as np

    if not values:
        return None, None
    low, high = np.percentile(values, [2.5, 97.5]).tolist()
    return low, high


def _p_value(
    observed: float | None,
    baseline: float | None,
    drawn: Sequence[float | None],
    drawn_baseline: Sequence[float | None],
) -> float | None:
    differences = [a - b for a, b in zip(drawn, drawn_baseline, strict=True) if a is not None and b is not None]
    if observed is None or baseline is None or not differences:
        return None
    mean = sum(differences) / len(differences)
    as_far = sum(abs(d - mean) >= abs(observed - baseline) for d in differences)
    return (as_far + 1) / (len(differences) + 1)
