"""The target prefix in the place of the source: a view of a model by which any saliency method explains from it.

Under teacher forcing a prediction rests on the source and on the target words before it. This view hands the word
embeddings of the decoder's input to methods where they look for those of the source, while the model goes on reading
the source as it is. What a method gives for the view is its scores of prefix pieces: [B, T, T], zero from the
predicted piece on.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import torch

from align.models.base import BASELINES, Batch, Encoded, TranslationModel
from align.models.inside import no_word_counts, opened
from align.models.subwords import NO_WORD
from data.errors import ModelError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from torch import Tensor

    from align.models.inside import Sublayers
    from data.bitext import Pair


@dataclass(frozen=True, kw_only=True)
class PrefixPair(Encoded):
    """A pair whose `source` is its decoder input.

    `read` is the pair as the model itself reads it. `ends`, [T], tells up to which column of `source` each prediction
    reads: its own, until words are taken out or replaced.
    """

    read: Encoded
    ends: tuple[int, ...]

    def spliced(self, start: int, end: int, pieces: tuple[int, ...]) -> PrefixPair:
        """As for a source, where each prediction goes on reading the same words before it.

        What the pieces of a word predict within it reads no more of the new pieces than it did of the old.
        """

        def moved(column: int) -> int:
            if column >= end - 1:
                return column - (end - start) + len(pieces)
            return column if column < start else start - 1 + min(column - start + 1, len(pieces))

        return replace(super().spliced(start, end, pieces), ends=tuple(map(moved, self.ends)))


@dataclass(frozen=True)
class PrefixBatch(Batch):
    """`read`, `read_mask`, `read_word_of`: the real source, [B, S] each; `memory`: its encoder states [B, S, D'].

    `ends`, [B, T]: the last column of the decoder's input that each prediction reads.
    """

    read: Tensor
    read_mask: Tensor
    read_word_of: Tensor
    memory: Tensor
    ends: Tensor


class PrefixView(TranslationModel):
    """`model` seen from its target prefix. The start symbol and tags belong to no word."""

    def __init__(self, model: TranslationModel) -> None:
        self.model = model
        self.vocabulary = model.prefix_vocabulary()
        self.table = self.vocabulary.table
        self.name, self.fingerprint = f"{model.name} (prefix)", model.fingerprint
        self.layers, self.heads, self.pad = model.layers, model.heads, model.pad
        self.device, self.dtype, self.batched_rows = model.device, model.dtype, model.batched_rows
        self.width = int(self._words([self.pad]).shape[-1])

    @property
    def batch_first(self) -> bool:
        return opened(self.model).batch_first

    def sublayers(self) -> Sublayers:
        return opened(self.model).sublayers()

    def read_attention(
        self, module: torch.nn.Module, arguments: tuple[Any, ...], options: Mapping[str, Any], result: Any
    ) -> tuple[Tensor, Tensor, Tensor]:
        return opened(self.model).read_attention(module, arguments, options, result)

    def word_counts(self) -> dict[str, float]:
        """The frequencies of the words of the decoder's vocabulary."""
        if self.vocabulary.counts is None:
            raise no_word_counts(self.model)
        return self.vocabulary.counts()

    def encode_pair(self, pair: Pair) -> PrefixPair:
        read = self.model.encode_pair(pair)
        return PrefixPair(
            pair=pair,
            source_words=read.target_words,
            target_words=read.target_words,
            source=read.prefix,
            target=read.target,
            prefix=read.prefix,
            source_word_of=(NO_WORD, *read.target_word_of[:-1]),
            target_word_of=read.target_word_of,
            unknown=read.unknown,
            status=read.status,
            read=read,
            ends=tuple(range(len(read.target))),
        )

    def batch(self, pairs: Sequence[Encoded]) -> PrefixBatch:
        own = [_prefix_pair(pair) for pair in pairs]
        with torch.no_grad():
            real = self.model.batch([pair.read for pair in own])
            memory = self.model.encode(real, self.model.embed(real))
        padded = super().batch(own)
        return PrefixBatch(
            **{f.name: getattr(padded, f.name) for f in fields(padded)},
            read=real.source,
            read_mask=real.source_mask,
            read_word_of=real.source_word_of,
            memory=memory,
            ends=self._pad([pair.ends for pair in own], 0),
        )

    def embed(self, batch: Batch) -> Tensor:
        """Word embeddings of the decoder's input as its table gives them. [B, T', D], T' = T unless words are gone."""
        found: Tensor = self.table(batch.source)
        return found

    def encode(self, batch: Batch, embeddings: Tensor) -> Tensor:
        """The embeddings themselves: they enter in `decode`. [B, T', D]"""
        return embeddings.clone()

    def decode(self, batch: Batch, states: Tensor, rows: int | None = None) -> Tensor:
        own = _prefix_batch(batch)
        if all(pair.source == pair.prefix for pair in own.pairs):
            return self._features(own, states[:, :rows])
        return self._features(own, states).take_along_dim(own.ends[:, :rows, None], dim=1)

    def _features(self, batch: PrefixBatch, given: Tensor) -> Tensor:
        """Decoder features where the word embeddings `given` enter. [B, T', D']"""
        handle = self.table.register_forward_hook(lambda module, inputs, output: given)
        try:
            # Of its ids the decoder reads nothing but how many they are.
            return self.model.decode(_real(batch), batch.memory, given.shape[1])
        finally:
            handle.remove()

    def output_layer(self, batch: Batch, features: Tensor) -> Tensor:
        return self.model.output_layer(_real(batch), features)

    def cross_attention(self, batch: Batch, layers: Sequence[int]) -> Tensor:
        raise ModelError("cross-attention reads the source: it says nothing of the target prefix")

    def baseline(self, kind: str) -> Tensor:
        """As of the source, by the decoder's own vocabulary. [D]"""
        rows: dict[str, Callable[[], Tensor]] = {
            "zero": lambda: torch.zeros(self.width, device=self.device, dtype=self.dtype),
            "unk": lambda: self._words([self.vocabulary.unknown])[0],
            "pad": lambda: self._words([self.pad])[0],
            "mean": lambda: self._words(range(self.vocabulary.size)).mean(0),
        }
        if kind not in rows:
            raise unknown_name("baseline", kind, BASELINES)
        return rows[kind]()

    def _words(self, ids: Sequence[int]) -> Tensor:
        """Embeddings of the decoder's vocabulary. [n, D]"""
        found: Tensor = self.table(torch.tensor([list(ids)], device=self.device))[0]
        return found


def _prefix_pair(pair: Encoded) -> PrefixPair:
    if not isinstance(pair, PrefixPair):
        raise ModelError("a pair cut for another model")
    return pair


def _prefix_batch(batch: Batch) -> PrefixBatch:
    if not isinstance(batch, PrefixBatch):
        raise ModelError("a batch of another model")
    return batch


def _real(batch: Batch) -> Batch:
    """The batch as the model itself reads it."""
    own = _prefix_batch(batch)
    return Batch(
        own.pairs,
        own.read,
        own.read_mask,
        own.read_word_of,
        own.prefix,
        own.target,
        own.target_mask,
        own.target_word_of,
    )
