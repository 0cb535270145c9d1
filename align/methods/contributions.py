"""ALTI and ALTI+: how much each source piece and each piece of the target prefix contributes to a prediction.

Ferrando et al. 2022, "Measuring the Mixing of Contextual Information in the Transformer" (ALTI) and "Towards Opening
the Black Box of Neural Machine Translation" (ALTI+), both EMNLP. Departures from their code: the variance of LayerNorm
is the model's own, and a position whose contributions are all clipped counts as made of itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch

from align.methods.base import Evidence, Passes
from align.methods.layers import LayerMethod, check_scope
from align.models.inside import insides
from align.models.prefix import PrefixView
from data.errors import unknown_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from torch import Tensor

    from align.models.base import Batch, Encoded, TranslationModel
    from align.models.inside import AttentionBlock, Insides

SCOPES = ("decoder", "cross")
CELLS = 4_000_000  # B x Q x K x D of one chunk of transformed vectors


@dataclass(frozen=True)
class Contributions(Evidence):
    """Shares of the source pieces as they stand after each decoder layer.

    Keys, each [L, B, T, S]: `decoder`, contributions through all layers so far; `cross`, those of the cross-attention
    of one layer, carried down through the encoder. Rows of `decoder` sum to the source's share; the rest of 1 is the
    share of the start symbol and the target prefix. Over the target prefix: that share, by its pieces, as `decoder`.
    """

    def compute(self, model: TranslationModel, batch: Batch) -> dict[str, Tensor]:
        inside = insides(model, batch)
        if isinstance(model, PrefixView):
            return {"decoder": _over_prefix(inside)}
        encoder = torch.eye(batch.source.shape[1]).to(batch.source_mask.device, model.dtype)  # [S, S]
        for block in inside.encoder:
            encoder = self_contributions(block) @ encoder  # [B, S, S]
        cross, decoder = [], []
        rows = torch.zeros_like(inside.cross[0].weights[:, 0])  # [B, T, S]
        for own, other in zip(inside.decoder, inside.cross, strict=True):
            sources, residual = cross_contributions(other)
            cross.append(sources @ encoder)
            rows = cross[-1] + residual[:, :, None] * (self_contributions(own) @ rows)
            decoder.append(rows)
        return {"cross": torch.stack(cross), "decoder": torch.stack(decoder)}

    def passes(self, pair: Encoded) -> Passes:
        return Passes(forward=1)


def _over_prefix(inside: Insides) -> Tensor:
    """Shares of the positions of the target prefix as they stand after each decoder layer. [L, B, T, T]"""
    rows, layers = torch.eye(inside.cross[0].weights.shape[-2]), []
    for own, other in zip(inside.decoder, inside.cross, strict=True):
        _, residual = cross_contributions(other)
        rows = residual[:, :, None] * (self_contributions(own) @ rows.to(residual))
        layers.append(rows)
    return torch.stack(layers)


def self_contributions(block: AttentionBlock) -> Tensor:
    """Shares of K positions in each of Q = K positions after self-attention, rows sum to 1. [B, Q, K]"""
    carried = block.carried()
    residual = block.normalised(block.residual)  # [B, Q, D]
    chunks = []
    for rows in _chunks(block):
        vectors = _transformed(block, carried, rows)  # [B, q, K, D]
        own = torch.arange(rows.start, rows.stop)
        vectors[:, own - rows.start, own] += residual[:, rows]
        chunks.append(_clipped(vectors, block.result[:, rows]))
    shares = torch.cat(chunks, 1)
    total = shares.sum(-1, keepdim=True)
    return torch.where(total > 0, shares / total, torch.eye(shares.shape[-1]).to(shares))


def cross_contributions(block: AttentionBlock) -> tuple[Tensor, Tensor]:
    """Shares of S encoder positions [B, T, S], and of the decoder's own stream [B, T]; together 1."""
    carried = block.carried()
    residual = block.normalised(block.residual)[:, :, None]  # [B, T, 1, D]
    chunks = []
    for rows in _chunks(block):
        vectors = torch.cat([_transformed(block, carried, rows), residual[:, rows]], dim=2)  # [B, q, S + 1, D]
        chunks.append(_clipped(vectors, block.result[:, rows]))
    shares = torch.cat(chunks, 1)
    total = shares.sum(-1, keepdim=True)
    itself = torch.zeros_like(shares)
    itself[..., -1] = 1
    shares = torch.where(total > 0, shares / total, itself)
    return shares[..., :-1], shares[..., -1]


def _chunks(block: AttentionBlock) -> list[slice]:
    """Slices of the Q positions that keep the transformed vectors small."""
    batch, _, queries, keys = block.weights.shape
    size = max(1, CELLS // (batch * keys * block.result.shape[-1]))
    return [slice(start, min(start + size, queries)) for start in range(0, queries, size)]


def _transformed(block: AttentionBlock, carried: Tensor, rows: slice) -> Tensor:
    """What each attended position adds to the result, through LayerNorm. [B, q, K, D]"""
    added = torch.einsum("bhqk,bhkd->bqkd", block.weights[:, :, rows], carried)
    return block.normalised(added, rows)


def _clipped(vectors: Tensor, result: Tensor) -> Tensor:
    """max(0, ||y|| - ||y - T_k||) in the L1 norm: how much nearer a summand T_k brings to y. [B, q, K]"""
    distance = (result[:, :, None] - vectors).abs().sum(-1)
    return (result.abs().sum(-1, keepdim=True) - distance).clamp(min=0)


@dataclass(frozen=True)
class Alti(LayerMethod):
    """Contributions of the source pieces through values, residual connections and LayerNorm of all layers.

    `scope`: `decoder` goes through all decoder layers up to `layer` (ALTI+); `cross` takes the cross-attention of
    `layer` only, carried through the encoder (ALTI).
    """

    scope: str = "decoder"

    name: ClassVar[str] = "alti"
    family: ClassVar[str] = "contributions"
    summary: ClassVar[str] = "contributions of source words through all layers (ALTI+)"
    citation: ClassVar[str] = "Ferrando et al. 2022a, 2022b (EMNLP)"
    compared: ClassVar[Mapping[str, Callable[[TranslationModel], Sequence[object]]]] = {
        **LayerMethod.compared,
        "scope": lambda model: SCOPES,
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scope not in SCOPES:
            raise unknown_name("scope", self.scope, SCOPES)

    @property
    def evidence(self) -> Contributions:
        return Contributions()

    def check_prefix(self) -> None:
        check_scope(self, self.scope)

    def read(self, evidence: Mapping[str, Tensor], batch: Batch) -> Tensor:
        return self.rows(evidence[self.scope], batch)


def source_shares(model: TranslationModel, batch: Batch) -> Tensor:
    """How much of each prediction comes from the source, by ALTI+; the rest is the target prefix's. [B, T]"""
    shares: Tensor = Contributions().compute(model, batch)["decoder"][-1].sum(-1)
    return shares.masked_fill(~batch.target_mask, 0)
