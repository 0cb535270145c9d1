"""Saliency over the target prefix: how much a prediction rests on the target words before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from align.extract import Extraction
from align.models.prefix import PrefixView
from align.pipeline import align_pairs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from align.methods.base import Method
    from align.models.base import TranslationModel
    from align.pipeline import Aligned
    from data.bitext import Pair


def explain_prefix(
    model: TranslationModel, pairs: Iterable[Pair], method: Method, batch_pieces: int, most_unknown: float
) -> Iterator[Aligned]:
    """For each pair, in order, the scores of prefix words for each target word: `matrix` [J, J].

    Row j holds the scores of words 0..j, on the scale of the method's scores of source words; the cell of word j itself
    holds what its first pieces do for its later ones. The start symbol and tags have no column.

    Raises:
        UsageError: a method that reads the source alone (`Method.source_only`).
        ModelError: a model that does not show the embeddings of its prefix.
    """
    method.check_prefix()
    return align_pairs(PrefixView(model), pairs, method, Extraction("word"), batch_pieces, most_unknown)
