"""Gold alignments of text that a model cuts into words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.links import GoldAlignment, read_gold

if TYPE_CHECKING:
    from collections.abc import Sequence

    from align.models.base import TranslationModel
    from data.bitext import Pair


def model_gold(
    path: str, form: str, one_based: bool | None, swap: bool, model: TranslationModel, pairs: Sequence[Pair]
) -> list[GoldAlignment]:
    """Read gold alignments of `pairs`, checked against the lengths in words as the model sees them.

    Raises:
        DataError: as `data.links.read_gold`.
    """
    encoded = [model.encode_pair(pair) for pair in pairs]
    lengths = [(len(e.source_words), len(e.target_words)) for e in encoded]
    return list(read_gold(path, form, one_based=one_based, swap=swap, lengths=lengths, option="--gold-"))
