"""Gold alignments of text that a model cuts into words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from align.models.base import TranslationModel
    from data.bitext import Pair
    from data.links import GoldAlignment
    from eval.options import GoldFormat


def model_gold(path: str, written: GoldFormat, model: TranslationModel, pairs: Sequence[Pair]) -> list[GoldAlignment]:
    """Read gold alignments of `pairs`, checked against the lengths in words as the model sees them.

    Raises:
        DataError: as `data.links.read_gold`.
    """
    encoded = [model.encode_pair(pair) for pair in pairs]
    lengths = [(len(e.source_words), len(e.target_words)) for e in encoded]
    return written.read(path, lengths)
