"""Several models as one: probabilities averaged, as fairseq's `a.pt:b.pt` does."""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING

import torch

from align.models.base import TranslationModel
from data.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from align.models.base import Batch, Encoded
    from data.bitext import Pair


class Ensemble(TranslationModel):
    """Members that cut text into the same pieces, with their embeddings, states and features side by side.

    Gradients at the joined embeddings are those of the averaged probability, so that gradient x input adds up what
    each member's word embedding contributes. Cross-attention is the mean over members.

    Raises:
        ModelError: members that differ in decoder layers, heads or, when they run, in width.
    """

    def __init__(self, members: Sequence[TranslationModel]) -> None:
        first = members[0]
        if len({(member.layers, member.heads) for member in members}) > 1:
            raise ModelError("the members of an ensemble must have the same number of decoder layers and heads")
        self.members = members
        self.name = ":".join(member.name for member in members)
        self.fingerprint = hashlib.sha256("".join(member.fingerprint for member in members).encode()).hexdigest()
        self.written = first.written
        self.layers, self.heads, self.pad = first.layers, first.heads, first.pad
        self.device, self.dtype, self.pad_left = first.device, first.dtype, first.pad_left
        self.width = sum(member.width for member in members)
        self.batched_rows = all(member.batched_rows for member in members)

    def encode_pair(self, pair: Pair) -> Encoded:
        """As the first member cuts it; one that is too long for a member is too long.

        Raises:
            ModelError: a member cuts the pair into other pieces.
        """
        encoded = [member.encode_pair(pair) for member in self.members]
        if len({(e.source, e.target) for e in encoded}) > 1:
            raise ModelError(f"line {pair.id + 1}: the members of {self.name} cut the text into different pieces")
        return next((e for e in encoded if e.status != "ok"), encoded[0])

    def embed(self, batch: Batch) -> Tensor:
        return torch.cat([member.embed(batch) for member in self.members], dim=-1)

    def encode(self, batch: Batch, embeddings: Tensor) -> Tensor:
        parts = embeddings.split([member.width for member in self.members], dim=-1)
        states = [member.encode(batch, part) for member, part in zip(self.members, parts, strict=True)]
        return _joined(states)

    def decode(self, batch: Batch, states: Tensor, rows: int | None = None) -> Tensor:
        parts = _parted(states, len(self.members))
        features = [member.decode(batch, part, rows) for member, part in zip(self.members, parts, strict=True)]
        return _joined(features)

    def output_layer(self, batch: Batch, features: Tensor) -> Tensor:
        """Logarithms of the averaged probabilities. [B, T, V]"""
        parts = _parted(features, len(self.members))
        logs = [member.logits(batch, part).log_softmax(-1) for member, part in zip(self.members, parts, strict=True)]
        return torch.stack(logs).logsumexp(0) - math.log(len(logs))

    def cross_attention(self, batch: Batch, layers: Sequence[int]) -> Tensor:
        return torch.stack([member.cross_attention(batch, layers) for member in self.members]).mean(0)

    def baseline(self, kind: str) -> Tensor:
        return torch.cat([member.baseline(kind) for member in self.members])


def _joined(parts: Sequence[Tensor]) -> Tensor:
    """Tensors side by side.

    Raises:
        ModelError: they differ in width, so that they could not be parted again.
    """
    if len({part.shape for part in parts}) > 1:
        raise ModelError("the members of an ensemble must have the same width")
    return torch.cat(list(parts), dim=-1)


def _parted(joined: Tensor, count: int) -> Sequence[Tensor]:
    return joined.chunk(count, dim=-1)
