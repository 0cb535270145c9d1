"""Systems against one gold standard: the fields that every table of results shares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eval.aer import scores, total
from eval.bootstrap import AERInterval, paired_bootstrap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eval.aer import AlignmentStats


def measure(
    systems: Sequence[Sequence[AlignmentStats]], *, resamples: int, seed: int, alpha: float = 0.5
) -> list[dict[str, float | None]]:
    """The scores of each system, with bootstrap intervals, as the fields of a row.

    Args:
        systems: for each system the statistics of the same sentences in the same order.
        resamples: of the bootstrap; 0 leaves interval and p-value undefined.
        seed: of the bootstrap.
        alpha: weight of precision in `f_alpha`.

    Returns:
        for each system `aer`, `aer_low`, `aer_high`, `p_value` (against the first system), `precision`,
        `recall`, `f1`, `f_alpha` as fractions of 1 or None; `links`, `sure_hits`, `possible_hits` and `sure`
        as counts.

    Raises:
        DataError: the systems differ in the number of sentences.
        UsageError: `alpha` out of range.
    """
    undefined = AERInterval(None, None, None)
    intervals = paired_bootstrap(systems, resamples, seed) if resamples else [undefined] * len(systems)
    rows: list[dict[str, float | None]] = []
    for system, interval in zip(systems, intervals, strict=True):
        stats = total(system)
        result = scores(stats, alpha)
        rows.append(
            {
                "aer": result.aer,
                "aer_low": interval.low,
                "aer_high": interval.high,
                "p_value": interval.p_value,
                "precision": result.precision,
                "recall": result.recall,
                "f1": result.f1,
                "f_alpha": result.f_alpha,
                "links": stats.links,
                "sure_hits": stats.sure_hits,
                "possible_hits": stats.possible_hits,
                "sure": stats.sure,
            }
        )
    return rows
