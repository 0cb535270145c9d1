"""What a method is: evidence taken from the model, and a reading of that evidence as scores of pieces."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, ClassVar

import torch

from align.methods.products import fast_products
from data.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from torch import Tensor

    from align.models.base import Batch, Encoded, TranslationModel

FEW_PASSES = 4  # the `batch_factor` of evidence that takes a pass or two of the whole batch


@dataclass(frozen=True)
class Passes:
    """Cost of explaining every target piece of one pair: forward and backward passes of that one pair."""

    forward: float
    backward: float = 0.0

    @property
    def total(self) -> float:
        return self.forward + self.backward


class Evidence(ABC):
    """What is taken from the model: the dear part, shared by all methods that read the same evidence.

    Subclasses are frozen dataclasses, so equal evidence compares equal and is computed once.
    """

    @abstractmethod
    def compute(self, model: TranslationModel, batch: Batch) -> dict[str, Tensor]:
        """Named tensors, each [..., B, T, S]; rows explain target pieces, columns are source pieces."""

    def take(self, model: TranslationModel, batch: Batch) -> dict[str, Tensor]:
        """`compute` as methods and comparisons call it: without a graph, by the fastest exact matrix products."""
        with torch.no_grad(), fast_products():
            return self.compute(model, batch)

    def on(self, model: TranslationModel) -> Evidence:
        """This evidence as it stands for a model, where equal evidence may be named differently: the last layer."""
        return self

    @abstractmethod
    def passes(self, pair: Encoded) -> Passes:
        """Cost for one pair, on the model that `on` was told."""

    @property
    def batch_factor(self) -> int:
        """How many times the usual batch is fastest: 1 where a pair is multiplied by its rows or words."""
        return 1


@dataclass(frozen=True)
class Method(ABC):
    """A way to score source pieces for each target piece.

    Class attributes say what the numbers mean; fields are the options with their defaults. `compared` lists the
    values that a comparison goes through where an option is not given.
    """

    name: ClassVar[str]
    family: ClassVar[str]
    measures: ClassVar[str]  # attention, sensitivity, saliency, or mixed
    summary: ClassVar[str]
    citation: ClassVar[str]
    compared: ClassVar[Mapping[str, Callable[[TranslationModel], Sequence[object]]]] = {}
    in_all: ClassVar[bool] = True  # whether `compare --methods all` runs it
    source_only: ClassVar[str] = ""  # why it cannot explain from the target prefix, where that is so

    def check(self, model: TranslationModel) -> None:  # noqa: B027 (most methods need nothing special)
        """Raise ModelError if the model lacks what this method reads."""

    def check_prefix(self) -> None:
        """Raise UsageError if this method says nothing of the target prefix."""
        if self.source_only:
            raise UsageError(f"{self.label} does not explain from the target prefix: {self.source_only}")

    @property
    def measured(self) -> str:
        """What this variant measures, where options change it: the kind, or several joined by `+`."""
        return self.measures

    @property
    @abstractmethod
    def evidence(self) -> Evidence:
        """What this method reads."""

    @abstractmethod
    def read(self, evidence: Mapping[str, Tensor], batch: Batch) -> Tensor:
        """Scores of source pieces, [B, T, S]; a row without a positive entry holds no evidence."""

    def scores(self, model: TranslationModel, batch: Batch) -> Tensor:
        """Compute the evidence and read it. [B, T, S]"""
        return self.read(self.evidence.on(model).take(model, batch), batch)

    def options(self) -> dict[str, object]:
        """Options by name, in order of definition."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def told_options(self) -> dict[str, object]:
        """The options that readers of a table need: those that differ from their defaults or that comparisons vary."""
        return {key: value for key, value in self.options().items() if self._is_set(key) or key in self.compared}

    @property
    def label(self) -> str:
        """The name with the options that differ from their defaults: short, and different for different methods."""
        given = (f"{field.name}={getattr(self, field.name)}" for field in fields(self) if self._is_set(field.name))
        return ":".join([self.name, *given])

    def _is_set(self, option: str) -> bool:
        return bool(getattr(self, option) != getattr(type(self), option))

    def __str__(self) -> str:
        return ":".join([self.name, *(f"{key}={value}" for key, value in self.options().items())])


SIGNS = ("positive", "absolute", "signed")


def apply_sign(scores: Tensor, sign: str) -> Tensor:
    """Keep the positive part, the absolute value, or the signed score."""
    if sign == "positive":
        return scores.clamp(min=0)
    return scores.abs() if sign == "absolute" else scores


def normalise_rows(scores: Tensor, mask: Tensor) -> Tensor:
    """Divide rows [..., B, T, S] by their sum over real source pieces `mask` [B, S]; all-zero rows stay zero."""
    scores = scores.masked_fill(~mask[:, None, :], 0)
    total = scores.sum(-1, keepdim=True)
    return scores / torch.where(total == 0, torch.ones_like(total), total)
