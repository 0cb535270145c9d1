"""From soft scores to links: argmax, mutual argmax, threshold; a row without evidence gives no link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from align.matrix import apply_punctuation_rule, mask_pieces, pool_words
from align.models.subwords import NO_WORD
from data.errors import UsageError, unknown_name

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from align.models.base import Batch
    from data.links import Link

    Matrix = NDArray[np.float64]

POOLINGS = ("piece", "word")
EXTRACTORS = ("argmax", "mutual", "threshold")
EOS_RULES = ("mask", "keep")


@dataclass(frozen=True)
class Extraction:
    """How links are taken from scores.

    `pooling`: `piece` takes the links of pieces and projects them to words; `word` pools the scores first.
    `extractor`: `argmax` one source for each target, `mutual` where both sides choose each other, `threshold` every
    cell that holds at least `threshold` of its row. With the first two, `threshold` drops weaker links.
    `eos`: `mask` leaves `</s>` and tags out before choosing, `keep` lets them win, which gives no link.
    `punctuation`: SHIFT-ATT's rule for final punctuation.
    """

    pooling: str = "word"
    extractor: str = "argmax"
    threshold: float = 0.0
    eos: str = "mask"
    punctuation: bool = False

    def __post_init__(self) -> None:
        for kind, value, known in (
            ("pooling", self.pooling, POOLINGS),
            ("extractor", self.extractor, EXTRACTORS),
            ("eos rule", self.eos, EOS_RULES),
        ):
            if value not in known:
                raise unknown_name(kind, value, known)
        if not 0 <= self.threshold <= 1:
            raise UsageError(f"threshold must lie in 0..1, not {self.threshold}")
        if self.extractor == "threshold" and self.threshold == 0:
            raise UsageError("the threshold extractor needs a threshold above 0")

    def settings(self) -> dict[str, object]:
        """The options as a signature shows them."""
        return {
            "pool": self.pooling,
            "extract": self.extractor,
            "threshold": self.threshold or None,
            "eos": self.eos,
            "punct": self.punctuation or None,
        }


@dataclass(frozen=True)
class Extracted:
    """Links of one pair with the share of its row that each holds, and the word matrix [J, I] they come from.

    `finite` is false where a score was NaN or infinite; such rows give no link.
    """

    scores: dict[Link, float]
    matrix: Matrix
    finite: bool


def extract(scores: Tensor, batch: Batch, how: Extraction) -> list[Extracted]:
    """Links of every pair of a batch from scores of pieces [B, T, S]."""
    masked = mask_pieces(scores, batch, keep_eos=how.eos == "keep")
    if how.punctuation:
        masked = apply_punctuation_rule(masked, batch)
    pieces = masked.double().cpu().numpy()
    words = pool_words(masked.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0), batch).double().cpu().numpy()
    source_of, target_of = batch.source_word_of.cpu().numpy(), batch.target_word_of.cpu().numpy()
    result = []
    for row, pair in enumerate(batch.pairs):
        size_i, size_j = len(pair.source_words), len(pair.target_words)
        matrix = np.concatenate([words[row, :size_j, :size_i], words[row, :size_j, -1:]], axis=1)
        finite = bool(np.isfinite(pieces[row]).all())
        if how.pooling == "word":
            rows, columns = np.arange(size_j), np.append(np.arange(size_i), NO_WORD)
            bad = np.zeros(size_j, bool)
            np.logical_or.at(bad, target_of[row][_bad_rows(pieces[row], target_of[row])], True)
            found = _choose(np.where(bad[:, None], 0.0, matrix), rows, columns, how)
        else:
            found = _choose(_finite_rows(pieces[row]), target_of[row], source_of[row], how)
        result.append(Extracted(found, matrix[:, :size_i], finite))
    return result


def _bad_rows(pieces: Matrix, target_of: NDArray[np.int64]) -> NDArray[np.bool_]:
    bad: NDArray[np.bool_] = ~np.isfinite(pieces).all(axis=1) & (target_of != NO_WORD)
    return bad


def _finite_rows(pieces: Matrix) -> Matrix:
    return np.where(np.isfinite(pieces).all(axis=1, keepdims=True), pieces, 0.0)


def row_shares(scores: Matrix) -> Matrix:
    """The positive part of each row divided by its sum; a row without evidence stays zero."""
    positive: Matrix = scores.clip(min=0)
    total = positive.sum(1, keepdims=True)
    shares: Matrix = np.divide(positive, total, out=np.zeros_like(positive), where=total > 0)
    return shares


def _choose(
    scores: Matrix, target_of: NDArray[np.int64], source_of: NDArray[np.int64], how: Extraction
) -> dict[Link, float]:
    """Cells of a matrix (rows belong to target words, columns to source words) as links with their shares."""
    share = row_shares(scores)
    if how.extractor == "threshold":
        chosen = share >= how.threshold
    else:
        # argmax takes the first of equals, the lowest index.
        chosen = np.zeros(scores.shape, bool)
        chosen[np.arange(len(scores)), scores.argmax(1)] = True
        if how.extractor == "mutual":
            mutual = np.zeros(scores.shape, bool)
            mutual[scores.argmax(0), np.arange(scores.shape[1])] = True
            chosen &= mutual
        chosen &= (share > 0) & (share >= how.threshold)
    links: dict[Link, float] = {}
    for t, s in zip(*chosen.nonzero(), strict=True):
        if target_of[t] != NO_WORD and source_of[s] != NO_WORD:
            link = (int(source_of[s]), int(target_of[t]))
            links[link] = max(links.get(link, 0.0), float(share[t, s]))
    return dict(sorted(links.items()))
