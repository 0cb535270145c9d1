"""Cross-attention weights, read where the word is predicted (AWO) or where it is fed back in (AWI)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch

from align.methods.base import FEW_PASSES, Evidence, Method, Passes
from align.methods.products import fast_products
from data.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from torch import Tensor

    from align.models.base import Batch, Encoded, TranslationModel

POSITIONS = ("awo", "awi")


@dataclass(frozen=True)
class CrossAttention(Evidence):
    """Cross-attention of some layers (all where `layers` is None). `weights`: [L, B, H, T, S]."""

    layers: tuple[int, ...] | None = None

    def compute(self, model: TranslationModel, batch: Batch) -> dict[str, Tensor]:
        layers = tuple(range(model.layers)) if self.layers is None else self.layers
        return {"weights": model.cross_attention(batch, layers)}

    def passes(self, pair: Encoded) -> Passes:
        return Passes(forward=1)

    @property
    def batch_factor(self) -> int:
        return FEW_PASSES


def shift_to_input(rows: Tensor, batch: Batch) -> Tensor:
    """AWO rows [B, T, S] to AWI rows: row t becomes that of the step whose *input* is target piece t.

    The decoder input of step t + 1 is target piece t, whatever start symbols and language tags come first. The last
    piece of a sentence, `</s>`, is never fed back in: its row is zero, that is without evidence.
    """
    shifted = torch.cat([rows[:, 1:], torch.zeros_like(rows[:, :1])], dim=1)
    followed = torch.cat([batch.target_mask[:, 1:], torch.zeros_like(batch.target_mask[:, :1])], dim=1)
    return shifted * followed[:, :, None]


@dataclass(frozen=True)
class Attention(Method):
    """Cross-attention of one layer, averaged over heads or of a single head.

    `layer` counts decoder layers from 0, negative from the last. `heads` is `mean` or the number of one head.
    """

    layer: int = -1
    heads: str | int = "mean"
    position: str = "awo"

    name: ClassVar[str] = "attention"
    family: ClassVar[str] = "attention"
    measures: ClassVar[str] = "attention"
    summary: ClassVar[str] = "cross-attention weights of one decoder layer"
    citation: ClassVar[str] = "Bahdanau et al. 2015; AWO and AWI: Kobayashi et al. 2020"
    source_only: ClassVar[str] = "cross-attention goes to the source"
    compared: ClassVar[Mapping[str, Callable[[TranslationModel], Sequence[object]]]] = {
        "layer": lambda model: range(model.layers),
        "position": lambda model: POSITIONS,
    }

    def __post_init__(self) -> None:
        if self.position not in POSITIONS:
            raise UsageError(f"position must be one of {', '.join(POSITIONS)}, not {self.position!r}")
        if self.heads != "mean" and not (isinstance(self.heads, int) and self.heads >= 0):
            raise UsageError(f"heads must be 'mean' or the number of a head, not {self.heads!r}")

    @property
    def evidence(self) -> CrossAttention:
        return CrossAttention()

    def scores(self, model: TranslationModel, batch: Batch) -> Tensor:
        layer = self.layer + model.layers if self.layer < 0 else self.layer
        with fast_products():
            weights = model.cross_attention(batch, (layer,))[0]
        return self._rows(weights, batch)

    def read(self, evidence: Mapping[str, Tensor], batch: Batch) -> Tensor:
        weights = evidence["weights"]
        if not -len(weights) <= self.layer < len(weights):
            raise UsageError(f"layer {self.layer} does not exist: the model has decoder layers 0 to {len(weights) - 1}")
        return self._rows(weights[self.layer], batch)

    def _rows(self, weights: Tensor, batch: Batch) -> Tensor:
        """One layer's weights [B, H, T, S] to scores [B, T, S]."""
        if self.heads == "mean":
            rows = weights.mean(1)
        elif int(self.heads) < weights.shape[1]:
            rows = weights[:, int(self.heads)]
        else:
            raise UsageError(f"head {self.heads} does not exist: the model has heads 0 to {weights.shape[1] - 1}")
        return shift_to_input(rows, batch) if self.position == "awi" else rows
