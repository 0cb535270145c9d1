"""Soft agreement: links where the soft alignments of both directions together are large, before any hardening.

With a lexicon, a pair of words also needs to be joined elsewhere in the text. The lexicon is that of the text itself:
the same means, added up by words. So the context of a word, which changes from sentence to sentence, loses against its
translation, which comes back.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from align.specs import parse_options
from align.symmetrize import method_name
from data.errors import DataError, UsageError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from data.links import Link

    Means = NDArray[np.float64]
    Words = Sequence[str]

NAME = "agreement"
MEANS = ("harmonic", "geometric")
LEAST_COUNTED = 0.02  # smaller means are no evidence that two words belong together


@dataclass(frozen=True)
class Agreement:
    """A way to combine both directions: link a pair of words iff the `mean` of both shares is above `threshold`.

    `harmonic` is Mask-Align's (Chen et al. 2021); `geometric`, the root of the product, is stricter with neither.
    `lexicon` is the weight w of a lexicon of the text itself: mean^(1 - w) dice^w is compared with the threshold.
    """

    threshold: float = 0.2
    mean: str = "harmonic"
    lexicon: float = 0.0

    def __post_init__(self) -> None:
        if self.mean not in MEANS:
            raise unknown_name("mean", self.mean, MEANS)
        if not self.threshold >= 0:
            raise UsageError(f"the agreement threshold must not be negative, got {self.threshold}")
        if not 0 <= self.lexicon < 1:
            raise UsageError(f"the weight of the lexicon must be from 0 to less than 1, got {self.lexicon}")

    @property
    def needs_text(self) -> bool:
        """Whether links depend on the whole text, not on their own pair alone."""
        return self.lexicon > 0

    def __str__(self) -> str:
        lexicon = f":lexicon={self.lexicon:g}" if self.lexicon else ""
        return f"{NAME}:threshold={self.threshold:g}:mean={self.mean}{lexicon}"


def combination(spec: str) -> str | Agreement:
    """How to combine both directions: a method of `align.symmetrize`, or `agreement:threshold=0.2:mean=harmonic`.

    Raises:
        UsageError: unknown or ambiguous name, or a wrong option.
    """
    if spec.partition(":")[0] == NAME:
        return Agreement(**parse_options(Agreement, spec))
    return method_name(spec, others=(NAME,))


def soft_agreement(forward: ArrayLike, reverse: ArrayLike, how: Agreement) -> dict[Link, float]:
    """Links (i, j) where the mean of two soft alignments is above the threshold, with that mean; without a lexicon.

    Args:
        forward, reverse: as for `means_of`.
        how: which mean, and the threshold. The published 0.2 suits the model of that paper.

    Returns:
        links in order. A pair where a score is 0 or not a number has no link.

    Raises:
        DataError: the matrices differ in shape or are not matrices.
    """
    return _links_above(means_of(forward, reverse, how), how.threshold)


def means_of(forward: ArrayLike, reverse: ArrayLike, how: Agreement) -> Means:
    """The mean of both shares of each pair of words, [J, I].

    Args:
        forward: [J, I] of the source-to-target model; each row normalised over source words.
        reverse: [J, I] of the target-to-source model, transposed to target rows; each column, a row of that
            model, normalised over its source, the target words.

    Raises:
        DataError: the matrices differ in shape or are not matrices.
    """
    import numpy as np

    f, r = np.asarray(forward, dtype=np.float64), np.asarray(reverse, dtype=np.float64)  # [J, I] each
    if f.ndim != 2 or f.shape != r.shape:
        raise DataError(f"soft agreement needs two [J, I] matrices of one shape, not {f.shape} and {r.shape}")
    if how.mean == "geometric":
        mean: Means = np.sqrt(f * r)
        return mean
    total = f + r
    return np.divide(2 * f * r, total, out=np.zeros_like(total), where=total > 0)


def _links_above(means: Means, threshold: float) -> dict[Link, float]:
    """Links (i, j) in order, from means [J, I]."""
    sources, targets = (means > threshold).T.nonzero()
    return {(i, j): float(means[j, i]) for i, j in zip(sources.tolist(), targets.tolist(), strict=True)}


def agreement_with_lexicon(pairs: Sequence[tuple[Words, Words, Means]], how: Agreement) -> Iterator[dict[Link, float]]:
    """Links of a whole text, with what was compared with the threshold.

    Dice of a source word s and a target word t is 2 c(s, t) / (c(s) + c(t)), where c(s, t) is the sum of their means in
    the text, c(s) and c(t) are sums of c(s, t), and case is ignored.

    Args:
        pairs: source words [I], target words [J] and means [J, I] of each pair.
    """
    joint: defaultdict[tuple[str, str], float] = defaultdict(float)
    source_counts: defaultdict[str, float] = defaultdict(float)
    target_counts: defaultdict[str, float] = defaultdict(float)
    for source, target, means in pairs:
        for (i, j), mean in _links_above(means, LEAST_COUNTED).items():
            s, t = source[i].lower(), target[j].lower()
            joint[s, t] += mean
            source_counts[s] += mean
            target_counts[t] += mean
    for source, target, means in pairs:
        found: dict[Link, float] = {}
        for (i, j), mean in _links_above(means, LEAST_COUNTED).items():
            s, t = source[i].lower(), target[j].lower()
            dice = 2 * joint[s, t] / (source_counts[s] + target_counts[t])
            score = mean ** (1 - how.lexicon) * dice**how.lexicon
            if score > how.threshold:
                found[i, j] = score
        yield found
