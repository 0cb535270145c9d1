"""From scores of pieces to scores of words: masking, the final-punctuation rule, pooling."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

import torch

from align.models.subwords import NO_WORD

if TYPE_CHECKING:
    from torch import Tensor

    from align.models.base import Batch


def mask_pieces(scores: Tensor, batch: Batch, keep_eos: bool) -> Tensor:
    """Set scores [B, T, S] to 0 at padding and, unless `keep_eos`, at `</s>` and tags, and in their rows."""
    columns = batch.source_mask if keep_eos else batch.source_word_of != NO_WORD
    rows = batch.target_word_of != NO_WORD
    return scores.masked_fill(~(rows[:, :, None] & columns[:, None, :]), 0)


def apply_punctuation_rule(scores: Tensor, batch: Batch) -> Tensor:
    """SHIFT-ATT's rule for final punctuation (Chen et al. 2020), before any argmax.

    Where the source ends in punctuation, its last piece may be linked to a target-final punctuation piece only, and
    then is. [B, T, S]
    """
    scores = scores.clone()
    for row, pair in enumerate(batch.pairs):
        if not pair.source_words or not is_punctuation(pair.source_words[-1]):
            continue
        source = int((batch.source_word_of[row] != NO_WORD).nonzero()[-1])
        target = int((batch.target_word_of[row] != NO_WORD).nonzero()[-1])
        scores[row, :, source] = 0
        if is_punctuation(pair.target_words[-1]):
            scores[row, target] = 0
            scores[row, target, source] = 1
    return scores


def is_punctuation(word: str) -> bool:
    """Whether a word is made of Unicode punctuation only."""
    return bool(word) and all(unicodedata.category(character).startswith("P") for character in word)


def pool_words(scores: Tensor, batch: Batch) -> Tensor:
    """Sum over the pieces of a source word, mean over those of a target word (Kobayashi et al. 2020).

    Args:
        scores: [B, T, S], zero where masked.

    Returns:
        [B, J, I + 1] padded to the largest pair; the last column holds pieces of no word (`</s>`, tags), which is
        zero unless `mask_pieces` kept them.
    """
    source_words = max(len(pair.source_words) for pair in batch.pairs)
    target_words = max(len(pair.target_words) for pair in batch.pairs)
    to_source = _membership(batch.source_word_of, source_words)  # [B, S, I + 1]
    to_target = _membership(batch.target_word_of, target_words)[..., :-1]  # [B, T, J]
    to_target = to_target / to_target.sum(1, keepdim=True).clamp(min=1)
    return to_target.to(scores).transpose(1, 2) @ scores @ to_source.to(scores)


def _membership(word_of: Tensor, words: int) -> Tensor:
    """One-hot word of each piece, [B, S, words + 1]; pieces of no word and padding go to the last column."""
    index = torch.where(word_of == NO_WORD, words, word_of)
    return torch.nn.functional.one_hot(index, words + 1)
