"""The mean of several methods: what they find together, each with an equal or a given say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch

from align.methods.base import Evidence, Method, Passes, normalise_rows
from align.models.subwords import NO_WORD
from data.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

    from align.models.base import Batch, Encoded, TranslationModel


@dataclass(frozen=True)
class Together(Evidence):
    """The evidence of several methods. Key `n/key` is `key` of the n-th; equal ones are computed once."""

    parts: tuple[Evidence, ...]

    def on(self, model: TranslationModel) -> Together:
        return Together(tuple(part.on(model) for part in self.parts))

    def compute(self, model: TranslationModel, batch: Batch) -> dict[str, Tensor]:
        found = {part: part.compute(model, batch) for part in dict.fromkeys(self.parts)}
        return {f"{n}/{key}": tensor for n, part in enumerate(self.parts) for key, tensor in found[part].items()}

    def passes(self, pair: Encoded) -> Passes:
        costs = [part.passes(pair) for part in dict.fromkeys(self.parts)]
        return Passes(sum(cost.forward for cost in costs), sum(cost.backward for cost in costs))


@dataclass(frozen=True)
class Mean(Method):
    """Mean of the rows of `methods`, weighted by `weights`.

    The positive part of each row is first divided by its sum over the pieces of words, so that scales do not matter;
    a method without evidence for a row leaves it to the others.
    """

    methods: tuple[Method, ...] = ()
    weights: tuple[float, ...] = ()

    name: ClassVar[str] = "mean"
    family: ClassVar[str] = "combination"
    measures: ClassVar[str] = "mixed"
    summary: ClassVar[str] = "mean of the shares that several methods give: mean(lrp, 2*vector-norm)"
    citation: ClassVar[str] = "this package; for layers of attention Garg et al. 2019"
    in_all: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not self.methods or len(self.methods) != len(self.weights):
            raise UsageError("mean takes methods in brackets, such as 'mean(lrp,2*attention:layer=0|1)'")
        if not all(0 < weight < float("inf") for weight in self.weights):
            raise UsageError(f"weights must be above 0, not {', '.join(f'{weight:g}' for weight in self.weights)}")

    def options(self) -> dict[str, object]:
        weighted = zip(self.weights, self.methods, strict=True)
        return {"of": ",".join(f"{weight:g}*{method}" for weight, method in weighted)}

    def told_options(self) -> dict[str, object]:
        weighted = zip(self.weights, self.methods, strict=True)
        return {"of": ",".join(f"{weight:g}*{method.label}" for weight, method in weighted)}

    @property
    def label(self) -> str:
        return f"{self.name}({self.told_options()['of']})"

    def __str__(self) -> str:
        return f"{self.name}({self.options()['of']})"

    def check(self, model: TranslationModel) -> None:
        for method in self.methods:
            method.check(model)

    def check_prefix(self) -> None:
        for method in self.methods:
            method.check_prefix()

    @property
    def measured(self) -> str:
        return "+".join(dict.fromkeys(method.measured for method in self.methods))

    @property
    def evidence(self) -> Together:
        return Together(tuple(dict.fromkeys(method.evidence for method in self.methods)))

    def read(self, evidence: Mapping[str, Tensor], batch: Batch) -> Tensor:
        numbers = {part: f"{n}/" for n, part in enumerate(self.evidence.parts)}
        words = batch.source_word_of != NO_WORD
        shares = []
        for method, weight in zip(self.methods, self.weights, strict=True):
            start = numbers[method.evidence]
            own = {key.removeprefix(start): value for key, value in evidence.items() if key.startswith(start)}
            shares.append(weight * normalise_rows(method.read(own, batch).clamp(min=0), words))
        return torch.stack(shares).sum(0) / sum(self.weights)
