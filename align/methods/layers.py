"""Methods that read one decoder layer, at the step that predicts a word (AWO) or at the step it is fed in (AWI)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from align.methods.attention import POSITIONS, shift_to_input
from align.methods.base import Method
from align.models.inside import opened
from data.errors import UsageError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from torch import Tensor

    from align.models.base import Batch, TranslationModel


@dataclass(frozen=True)
class LayerMethod(Method):
    """`layer` counts decoder layers from 0, negative from the last; `position` is `awo` or `awi`."""

    layer: int = -1
    position: str = "awo"

    family: ClassVar[str] = "attention"
    measures: ClassVar[str] = "attention"
    compared: ClassVar[Mapping[str, Callable[[TranslationModel], Sequence[object]]]] = {
        "layer": lambda model: range(model.layers),
        "position": lambda model: POSITIONS,
    }

    def __post_init__(self) -> None:
        if self.position not in POSITIONS:
            raise unknown_name("position", self.position, POSITIONS)

    def check(self, model: TranslationModel) -> None:
        opened(model).sublayers()

    def rows(self, layers: Tensor, batch: Batch) -> Tensor:
        """The layer's rows of [L, B, T, S], at the position. [B, T, S]"""
        return self.placed(layers[layer_index(self.layer, len(layers))], batch)

    def placed(self, rows: Tensor, batch: Batch) -> Tensor:
        """Rows [B, T, S] of the steps that predict, moved to the position."""
        return shift_to_input(rows, batch) if self.position == "awi" else rows


def check_scope(method: LayerMethod, scope: str) -> None:
    """Raise UsageError for the target prefix where the `scope` is one layer's cross-attention."""
    if scope == "cross":
        raise UsageError(f"{method.label} does not explain from the target prefix: cross-attention goes to the source")


def layer_index(layer: int, count: int) -> int:
    """The layer from 0, where negative counts from the last. Raises UsageError if the model has no such layer."""
    if not -count <= layer < count:
        raise UsageError(f"layer {layer} does not exist: the model has decoder layers 0 to {count - 1}")
    return layer % count
