"""The share of the source in each target word of a text, by ALTI+."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from align.methods.contributions import source_shares
from align.models.base import plan_batches
from align.pipeline import BATCH_PIECES, encode_pairs, windows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from align.models.base import Encoded, TranslationModel
    from data.bitext import Pair


def word_shares(
    model: TranslationModel, pairs: Iterable[Pair], batch_pieces: int = BATCH_PIECES
) -> Iterator[tuple[Encoded, list[float] | None]]:
    """For each pair, in order, the source's share in each of its J target words, the mean over a word's pieces.

    None for a pair that cannot go through the model. Constant memory.

    Raises:
        ModelError: a model that does not show its insides, or text that it does not know (`encode_pairs`).
    """
    for window in windows(pairs):
        encoded = encode_pairs(model, window)
        done: dict[int, list[float]] = {}
        for group in plan_batches([pair for pair in encoded if pair.status == "ok"], batch_pieces):
            with torch.no_grad():
                shares = source_shares(model, model.batch(group)).tolist()
            for pair, row in zip(group, shares, strict=True):
                done[pair.pair.id] = _by_word(pair, row[: len(pair.target)])
        for pair in encoded:
            yield pair, done.get(pair.pair.id)


def _by_word(pair: Encoded, shares: list[float]) -> list[float]:
    words: list[list[float]] = [[] for _ in pair.target_words]
    for word, share in zip(pair.target_word_of, shares, strict=True):
        if word >= 0:
            words[word].append(share)
    return [sum(pieces) / len(pieces) for pieces in words]
