"""Relevancy propagation (Chefer et al. 2021): attention x gradient of every layer, multiplied down to the source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch

from align.methods.base import Evidence, Method, Passes
from align.methods.gradcam import row_gradients, with_gradients_of_log_probs
from align.models.inside import opened, recorded
from align.models.prefix import PrefixView

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor

    from align.models.base import Batch, Encoded, TranslationModel
    from align.models.inside import AttentionBlock, Insides


@dataclass(frozen=True)
class Relevancies(Evidence):
    """Relevancy of source pieces in the position that predicts y_t, from gradients of log p(y_t).

    `relevancy`: [B, T, S]; over the target prefix, that of the decoder's positions, where each starts as its own.
    """

    def compute(self, model: TranslationModel, batch: Batch) -> dict[str, Tensor]:
        found = []
        with torch.enable_grad(), recorded(model) as inside:
            features = model.decode(batch, model.encode(batch, model.embed(batch)))
            log_probs = with_gradients_of_log_probs(model, batch, features)
            over_prefix = isinstance(model, PrefixView)
            blocks = [*inside.decoder] if over_prefix else [*inside.encoder, *inside.decoder, *inside.cross]
            for rows, gradients in row_gradients(log_probs, [block.attended for block in blocks]):
                with torch.no_grad():
                    maps = [weighted(block, gradient) for block, gradient in zip(blocks, gradients, strict=True)]
                    relevancy = (
                        _stacked(maps, log_probs.shape[1]) if over_prefix else _propagated(maps, inside)
                    )  # [K, B, T, S]
                index = torch.arange(len(relevancy))
                found.append(relevancy[index, :, index + rows.start])
        return {"relevancy": torch.cat(found).transpose(0, 1)}

    def passes(self, pair: Encoded) -> Passes:
        return Passes(forward=1, backward=len(pair.target))


def weighted(block: AttentionBlock, gradient: Tensor) -> Tensor:
    """Mean over heads of max(0, gradient x weight), from gradients [K, B, Q, D] at the attended vectors.

    [K, B, Q, K'] for K' attended positions.
    """
    at_weights = torch.einsum("kbqd,bhsd->kbhqs", gradient, block.carried())
    return (at_weights * block.weights).clamp(min=0).mean(2)


def _propagated(maps: Sequence[Tensor], inside: Insides) -> Tensor:
    """The relevancy of source pieces in decoder positions, [K, B, T, S], from maps of the encoder, decoder and
    cross-attention in this order. Both updates of self-attention start from the values before it.
    """
    count, layers = len(inside.encoder), len(inside.decoder)
    source = _stacked(maps[:count], inside.cross[0].weights.shape[-1]).to(maps[-1])
    target = torch.eye(inside.cross[0].weights.shape[-2]).to(maps[0])  # [T, T]
    mixed = torch.zeros_like(maps[-1])  # [K, B, T, S]
    for own, cross in zip(maps[count : count + layers], maps[count + layers :], strict=True):
        mixed, target = mixed + own @ mixed, target + own @ target
        mixed = mixed + shares(target).transpose(-1, -2) @ cross @ shares(source)
    return mixed


def _stacked(maps: Sequence[Tensor], size: int) -> Tensor:
    """The relevancy that Q = `size` positions have for each other by a stack of self-attention. [K, B, Q, Q]"""
    relevancy = torch.eye(size)
    for weights in maps:
        relevancy = relevancy.to(weights) + weights @ relevancy.to(weights)
    return relevancy


def shares(relevancy: Tensor) -> Tensor:
    """What has come to the identity, with rows that sum to 1 (none where nothing came), and the identity again."""
    itself = torch.eye(relevancy.shape[-1]).to(relevancy)
    come = relevancy - itself
    total = come.sum(-1, keepdim=True)
    return torch.where(total == 0, 0, come / total) + itself


@dataclass(frozen=True)
class Relevancy(Method):
    """Attention weights times gradients, propagated through all layers of encoder and decoder."""

    name: ClassVar[str] = "relevancy"
    family: ClassVar[str] = "attention"
    measures: ClassVar[str] = "saliency"
    summary: ClassVar[str] = "attention x gradient propagated through all layers"
    citation: ClassVar[str] = "Chefer et al. 2021 (ICCV)"

    def check(self, model: TranslationModel) -> None:
        opened(model).sublayers()

    @property
    def evidence(self) -> Relevancies:
        return Relevancies()

    def read(self, evidence: Mapping[str, Tensor], batch: Batch) -> Tensor:
        return evidence["relevancy"]
