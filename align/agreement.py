"""Soft agreement: links where the soft alignments of both directions together are large, before any hardening."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from align.specs import parse_options
from align.symmetrize import method_name
from data.errors import DataError, UsageError, unknown_name

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from data.links import Link

NAME = "agreement"
MEANS = ("harmonic", "geometric")


@dataclass(frozen=True)
class Agreement:
    """A way to combine both directions: link a pair of words iff the `mean` of both shares is above `threshold`.

    `harmonic` is Mask-Align's (Chen et al. 2021); `geometric`, the root of the product, is stricter with neither.
    """

    threshold: float = 0.2
    mean: str = "harmonic"

    def __post_init__(self) -> None:
        if self.mean not in MEANS:
            raise unknown_name("mean", self.mean, MEANS)
        if not self.threshold >= 0:
            raise UsageError(f"the agreement threshold must not be negative, got {self.threshold}")

    def __str__(self) -> str:
        return f"{NAME}:threshold={self.threshold:g}:mean={self.mean}"


def combination(spec: str) -> str | Agreement:
    """How to combine both directions: a method of `align.symmetrize`, or `agreement:threshold=0.2:mean=harmonic`.

    Raises:
        UsageError: unknown or ambiguous name, or a wrong option.
    """
    if spec.partition(":")[0] == NAME:
        return Agreement(**parse_options(Agreement, spec))
    return method_name(spec, others=(NAME,))


def soft_agreement(forward: ArrayLike, reverse: ArrayLike, how: Agreement) -> dict[Link, float]:
    """Links (i, j) where the mean of two soft alignments is above the threshold, with that mean.

    Args:
        forward: [J, I] of the source-to-target model; each row normalised over source words.
        reverse: [J, I] of the target-to-source model, transposed to target rows; each column, a row of that
            model, normalised over its source, the target words.
        how: which mean, and the threshold. The published 0.2 suits the model of that paper.

    Returns:
        links in order. A pair where a score is 0 or not a number has no link.

    Raises:
        DataError: the matrices differ in shape or are not matrices.
    """
    import numpy as np

    f, r = np.asarray(forward, dtype=np.float64), np.asarray(reverse, dtype=np.float64)  # [J, I] each
    if f.ndim != 2 or f.shape != r.shape:
        raise DataError(f"soft agreement needs two [J, I] matrices of one shape, not {f.shape} and {r.shape}")
    if how.mean == "geometric":
        mean = np.sqrt(f * r)  # [J, I]
    else:
        total = f + r
        mean = np.divide(2 * f * r, total, out=np.zeros_like(total), where=total > 0)
    return {(i, j): float(mean[j, i]) for i, j in np.argwhere((mean > how.threshold).T).tolist()}
