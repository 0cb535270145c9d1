"""The target prefix in the place of the source: a view of a model by which any saliency method explains from it.

Under teacher forcing a prediction rests on the source and on the target words before it. This view hands the word
embeddings of the decoder's input to methods where they look for those of the source, while the model goes on reading
the source as it is. What a method gives for the view is its scores of prefix pieces: [B, T, T], zero from the
predicted piece on.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import torch

from align.models.base import Batch, Encoded, TranslationModel
from align.models.subwords import NO_WORD
from data.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from data.bitext import Pair


@dataclass(frozen=True)
class PrefixPair(Encoded):
    """A pair whose `source` is its decoder input; `read` is the pair as the model itself reads it."""

    read: Encoded | None = None


@dataclass(frozen=True)
class PrefixBatch(Batch):
    """`read`, `read_mask`, `read_word_of`: the real source, [B, S] each; `memory`: its encoder states [B, S, D']."""

    read: Tensor
    read_mask: Tensor
    read_word_of: Tensor
    memory: Tensor


class PrefixView(TranslationModel):
    """`model` seen from its target prefix. The start symbol and tags belong to no word."""

    def __init__(self, model: TranslationModel) -> None:
        self.model = model
        self.table = model.prefix_table()
        self.name, self.fingerprint = f"{model.name} (prefix)", model.fingerprint
        self.layers, self.heads, self.pad = model.layers, model.heads, model.pad
        self.device, self.dtype, self.batched_rows = model.device, model.dtype, model.batched_rows
        self.width = int(self.table(torch.zeros(1, dtype=torch.long, device=model.device)).shape[-1])

    def __getattr__(self, name: str) -> Any:
        # What opens a model (its sublayers) is the model's own.
        if name.startswith("__") or name == "model":
            raise AttributeError(name)
        return getattr(self.model, name)

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
        )

    def batch(self, pairs: Sequence[Encoded]) -> PrefixBatch:
        """Raises ModelError for pairs whose words a method took out or replaced."""
        read = []
        for pair in pairs:
            if not isinstance(pair, PrefixPair) or pair.read is None or pair.source != pair.prefix:
                raise ModelError("words of the target prefix can be blanked out (occlusion), not deleted or replaced")
            read.append(pair.read)
        with torch.no_grad():
            real = self.model.batch(read)
            memory = self.model.encode(real, self.model.embed(real))
        padded = super().batch(pairs)
        own = {f.name: getattr(padded, f.name) for f in fields(padded)}
        return PrefixBatch(
            **own, read=real.source, read_mask=real.source_mask, read_word_of=real.source_word_of, memory=memory
        )

    def embed(self, batch: Batch) -> Tensor:
        """Word embeddings of the decoder's input as its table gives them. [B, T, D]"""
        found: Tensor = self.table(batch.source)
        return found

    def encode(self, batch: Batch, embeddings: Tensor) -> Tensor:
        """The embeddings themselves: they enter in `decode`. [B, T, D]"""
        return embeddings.clone()

    def decode(self, batch: Batch, states: Tensor, rows: int | None = None) -> Tensor:
        given = states[:, :rows]
        handle = self.table.register_forward_hook(lambda module, inputs, output: given)
        try:
            return self.model.decode(_real(batch), _prefix_batch(batch).memory, rows)
        finally:
            handle.remove()

    def logits(self, batch: Batch, features: Tensor) -> Tensor:
        return self.model.logits(_real(batch), features)

    def cross_attention(self, batch: Batch, layers: Sequence[int]) -> Tensor:
        raise ModelError("cross-attention reads the source: it says nothing of the target prefix")

    def baseline(self, kind: str) -> Tensor:
        """`zero`, or the `mean` of the decoder's vocabulary. [D]"""
        if kind == "zero":
            return torch.zeros(self.width, device=self.device, dtype=self.dtype)
        if kind == "mean":
            vocabulary: Any = self.table.weight
            mean: Tensor = self.table(torch.arange(len(vocabulary), device=self.device)).mean(0)
            return mean
        raise ModelError(f"the target prefix has the baselines zero and mean, not {kind}")


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
