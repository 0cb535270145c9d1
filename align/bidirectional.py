"""One aligner for one model or for the models of both directions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import tee
from typing import TYPE_CHECKING

from align.agreement import Agreement, agreement_with_lexicon, combination, means_of, soft_agreement
from align.extract import row_shares
from align.pipeline import BATCH_PIECES, MOST_UNKNOWN, Aligned, align_pairs
from align.signature import signature
from align.symmetrize import symmetrize
from data.bitext import Pair
from data.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from align.extract import Extraction, Matrix
    from align.methods.base import Method
    from align.models.base import TranslationModel
    from data.links import Link


@dataclass(frozen=True)
class Aligner:
    """Align pairs by one method on `forward`, and where there is a `reverse` model combine both directions."""

    forward: TranslationModel
    reverse: TranslationModel | None
    method: Method
    how: Extraction
    symmetrisation: str = "agreement"
    batch_pieces: int = BATCH_PIECES
    most_unknown: float = MOST_UNKNOWN
    reverse_method: Method | None = None  # where it is not `method`

    def align(self, pairs: Iterable[Pair]) -> Iterator[Aligned]:
        """Alignments in the order of `pairs`, source word first, in constant memory."""
        if self.reverse is None:
            yield from self._one(self.forward, self.method, pairs)
            return
        how = combination(self.symmetrisation)
        straight, turned = tee(pairs)
        swapped = (Pair(pair.id, pair.target, pair.source) for pair in turned)
        forward = self._one(self.forward, self.method, straight)
        reverse = self._one(self.reverse, self.reverse_method or self.method, swapped)
        yield from combined(zip(forward, reverse, strict=True), how)

    def _one(self, model: TranslationModel, method: Method, pairs: Iterable[Pair]) -> Iterator[Aligned]:
        return align_pairs(model, pairs, method, self.how, self.batch_pieces, self.most_unknown)

    @property
    def signature(self) -> str:
        """Everything that the links depend on, in one line."""
        models = [self.forward] + ([self.reverse] if self.reverse else [])
        return signature(
            {
                "method": self.method,
                "reverse-method": self.reverse_method,
                **self.how.settings(),
                "sym": combination(self.symmetrisation) if self.reverse else None,
                "model": "+".join(m.identity for m in models),
            }
        )


def combined(pairs: Iterable[tuple[Aligned, Aligned]], how: str | Agreement) -> Iterator[Aligned]:
    """Links of both directions with their scores, pair by pair.

    The matrix is the mean of both directions, the worse status wins.

    Raises:
        DataError: the two models see different words.
    """
    first, second = tee(map(_same_words, pairs))
    for (ours, theirs), scores in zip(first, scores_of_both(second, how), strict=True):
        status = theirs.status if ours.status == "ok" else ours.status
        yield replace(ours, scores=scores, matrix=(ours.matrix + theirs.matrix.T) / 2, status=status)


def _same_words(both: tuple[Aligned, Aligned]) -> tuple[Aligned, Aligned]:
    ours, theirs = both[0].encoded, both[1].encoded
    if (ours.source_words, ours.target_words) != (theirs.target_words, theirs.source_words):
        raise DataError(f"line {ours.pair.id + 1}: the two models see different words")
    return both


def scores_of_both(pairs: Iterable[tuple[Aligned, Aligned]], how: str | Agreement) -> Iterator[dict[Link, float]]:
    """`combined_scores` pair by pair; agreement with a lexicon first reads all pairs."""
    if not (isinstance(how, Agreement) and how.needs_text):
        for ours, theirs in pairs:
            yield combined_scores(ours, theirs, how)
        return
    texts = [(a.encoded.source_words, a.encoded.target_words, means_of(*_shares(a, b), how)) for a, b in pairs]
    yield from agreement_with_lexicon(texts, how)


def _shares(ours: Aligned, theirs: Aligned) -> tuple[Matrix, Matrix]:
    """The shares of both directions, [J, I] each."""
    return row_shares(ours.matrix), row_shares(theirs.matrix).T


def combined_scores(ours: Aligned, theirs: Aligned, how: str | Agreement) -> dict[Link, float]:
    """Links (source, target) of both directions, `theirs` still turned round, and the score of each.

    The score is the mean of both directions' shares, where a link of one direction only has half of its share; by soft
    agreement it is the mean that was compared with the threshold, without a lexicon.
    """
    if isinstance(how, Agreement):
        return soft_agreement(*_shares(ours, theirs), how)
    reverse: dict[Link, float] = {(j, i): score for (i, j), score in theirs.scores.items()}
    links = symmetrize(ours.links, frozenset(reverse), how)
    return {link: (ours.scores.get(link, 0.0) + reverse.get(link, 0.0)) / 2 for link in sorted(links)}
