"""Gradient methods over samples beside SmoothGrad: their variance (VarGrad), and Expected Gradients."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch

from align.methods.base import SIGNS, Evidence, Method, Passes, apply_sign
from align.methods.draws import WordDrawer
from align.methods.gradient import BASES, noisy_copies, readings
from align.methods.rows import gradient_rows
from align.models.inside import word_counts
from align.models.subwords import NO_WORD
from data.errors import UsageError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from torch import Tensor

    from align.models.base import Batch, Encoded, TranslationModel


@dataclass(frozen=True)
class GradientVariance(Evidence):
    """Variance of readings over noisy copies, divisor n - 1. Keys and noise as `NoisyGradients`."""

    samples: int
    noise: float
    seed: int

    def compute(self, model: TranslationModel, batch: Batch) -> dict[str, Tensor]:
        inputs = model.embed(batch)
        mean, spread = inputs.new_zeros(()), inputs.new_zeros(())
        copies = noisy_copies(batch, inputs, self.samples, self.noise, self.seed)
        for count, noisy in enumerate(copies, 1):
            read, _ = gradient_rows(model, batch, noisy, readings(inputs))
            # Welford's update, which loses no digits where the variance is small beside the mean.
            change = read - mean
            mean = mean + change / count
            spread = spread + change * (read - mean)
        return dict(zip(BASES, spread / (self.samples - 1), strict=True))

    def passes(self, pair: Encoded) -> Passes:
        return Passes(forward=self.samples, backward=self.samples * len(pair.target))


@dataclass(frozen=True)
class VarGrad(Method):
    """How much saliency varies over noisy copies of the source embeddings.

    `noise` and `base` (`input`, `l1`, `l2`) as in SmoothGrad.
    """

    samples: int = 30
    noise: float = 0.15
    base: str = "input"
    seed: int = 0

    name: ClassVar[str] = "vargrad"
    family: ClassVar[str] = "gradient"
    measures: ClassVar[str] = "sensitivity"
    summary: ClassVar[str] = "variance of gradient x input (or norm) over noisy inputs"
    citation: ClassVar[str] = "Adebayo et al. 2018"
    compared: ClassVar[Mapping[str, Callable[[TranslationModel], Sequence[object]]]] = {"base": lambda model: BASES[:2]}

    def __post_init__(self) -> None:
        if self.base not in BASES:
            raise unknown_name("base", self.base, BASES)
        if self.samples < 2 or not 0 < self.noise < float("inf"):
            raise UsageError(f"samples must be at least 2 and noise above 0, not {self.samples} and {self.noise}")

    @property
    def evidence(self) -> GradientVariance:
        return GradientVariance(self.samples, self.noise, self.seed)

    def read(self, evidence: Mapping[str, Tensor], batch: Batch) -> Tensor:
        return evidence[self.base]


@dataclass(frozen=True)
class PathSamples(Evidence):
    """Gradients at random points between the sentence and random ones, times the way between. Fields as in the method.

    Keys: `signed` [B, T, S]; `completeness` [B, T], how far the row sums are from the mean gain of log p over the
    random sentences, which is what the sampling lacks.
    """

    samples: int
    words: str
    seed: int

    def compute(self, model: TranslationModel, batch: Batch) -> dict[str, Tensor]:
        inputs = model.embed(batch)
        drawer = WordDrawer(model, self.words)
        generators = [np.random.default_rng([self.seed, pair.pair.id]) for pair in batch.pairs]
        signed, gain = inputs.new_zeros(()), inputs.new_zeros(())
        log_probs = model.log_probs(batch, inputs)
        for _ in range(self.samples):
            start = model.embed(_random_pieces(batch, drawer, generators))
            share = torch.tensor([generator.random() for generator in generators], dtype=torch.float64).to(inputs)[
                :, None, None
            ]
            step = inputs - start
            read, _ = gradient_rows(model, batch, start + share * step, _along(step))
            signed = signed + read / self.samples
            gain = gain + (log_probs - model.log_probs(batch, start)) / self.samples
        return {"signed": signed, "completeness": (signed.sum(-1) - gain).abs()}

    def passes(self, pair: Encoded) -> Passes:
        return Passes(forward=1 + 2 * self.samples, backward=self.samples * len(pair.target))


def _along(step: Tensor) -> Callable[[Tensor], Tensor]:
    """Gradients [K, B, S, D] times a step [B, S, D]. [K, B, S]"""
    return lambda gradients: (gradients * step).sum(-1)


def _random_pieces(batch: Batch, draw: WordDrawer, generators: Sequence[np.random.Generator]) -> Batch:
    """The batch with every piece of a word replaced by a drawn word of one piece."""
    source = batch.source.clone()
    for row, generator in enumerate(generators):
        for column in (batch.source_word_of[row] != NO_WORD).nonzero()[:, 0].tolist():
            (source[row, column],) = draw(generator, [int(source[row, column])])
    return replace(batch, source=source)


@dataclass(frozen=True)
class ExpectedGradients(Method):
    """Integrated Gradients averaged over random sentences in place of one baseline, by sampling both.

    A baseline has a word of one piece, drawn by frequency, for every piece of a word. `words` is a file of words and
    counts; without it the model's own dictionary is the list.
    """

    samples: int = 30
    words: str = ""
    seed: int = 0
    sign: str = "positive"

    name: ClassVar[str] = "expected-gradients"
    family: ClassVar[str] = "gradient"
    measures: ClassVar[str] = "saliency"
    summary: ClassVar[str] = "gradients on the way from random sentences to the input"
    citation: ClassVar[str] = "Erion et al. 2021"
    compared: ClassVar[Mapping[str, Callable[[TranslationModel], Sequence[object]]]] = {"sign": lambda model: SIGNS[:2]}

    def __post_init__(self) -> None:
        if self.sign not in SIGNS:
            raise unknown_name("sign", self.sign, SIGNS)
        if self.samples < 1 or self.seed < 0:
            raise UsageError(f"samples must be at least 1 and seed at least 0, not {self.samples} and {self.seed}")

    def check(self, model: TranslationModel) -> None:
        if not self.words:
            word_counts(model)

    @property
    def evidence(self) -> PathSamples:
        return PathSamples(self.samples, self.words, self.seed)

    def read(self, evidence: Mapping[str, Tensor], batch: Batch) -> Tensor:
        return apply_sign(evidence["signed"], self.sign)
