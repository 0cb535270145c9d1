"""Vector norms: attention weighted by the size of what is attended (Kobayashi et al. 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch

from align.methods.base import FEW_PASSES, Evidence, Passes
from align.methods.layers import LayerMethod
from align.models.inside import insides

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

    from align.models.base import Batch, Encoded, TranslationModel
    from align.models.inside import AttentionBlock


@dataclass(frozen=True)
class AttendedNorms(Evidence):
    """Norms of the vectors that cross-attention adds to the decoder. `norms`: [L, B, T, S]."""

    def compute(self, model: TranslationModel, batch: Batch) -> dict[str, Tensor]:
        return {"norms": torch.stack([attended_norms(block) for block in insides(model, batch).cross])}

    def passes(self, pair: Encoded) -> Passes:
        return Passes(forward=1)

    @property
    def batch_factor(self) -> int:
        return FEW_PASSES


def attended_norms(block: AttentionBlock) -> Tensor:
    """|| sum_h A_h[t, s] f_h(s) ||, by the inner products of the f_h(s), so without a [T, S, D] tensor. [B, T, S]"""
    carried = block.carried()  # [B, H, S, D]
    products = torch.einsum("bhsd,bgsd->bshg", carried, carried)
    squared = torch.einsum("bhts,bshg,bgts->bts", block.weights, products, block.weights)
    return squared.clamp(min=0).sqrt()


@dataclass(frozen=True)
class VectorNorm(LayerMethod):
    """Norm of the vector that a source piece adds to the decoder in one layer, heads summed before the norm."""

    name: ClassVar[str] = "vector-norm"
    summary: ClassVar[str] = "norm of the vectors that one decoder layer attends to"
    citation: ClassVar[str] = "Kobayashi et al. 2020 (EMNLP)"
    source_only: ClassVar[str] = "cross-attention goes to the source"

    @property
    def evidence(self) -> AttendedNorms:
        return AttendedNorms()

    def read(self, evidence: Mapping[str, Tensor], batch: Batch) -> Tensor:
        return self.rows(evidence["norms"], batch)
