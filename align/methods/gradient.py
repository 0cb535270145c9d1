"""Gradient methods: norm, gradient x input, SmoothGrad, Integrated Gradients, for all target rows at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch

from align.methods.base import SIGNS, Evidence, Method, Passes, apply_sign, normalise_rows
from align.methods.rows import gradient_rows
from align.models.base import BASELINES
from data.errors import UsageError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from torch import Tensor

    from align.models.base import Batch, Encoded, TranslationModel

NORMS = ("l1", "l2")
BASES = ("input", "l1", "l2")
SMOOTHED = (*BASES, "integrated")
REPLACED = ("words", "all")
RULES = ("gauss-legendre", "midpoint")


def readings(inputs: Tensor) -> Callable[[Tensor], Tensor]:
    """Three readings of gradients [K, B, S, D], stacked [3, K, B, S]: dot product with `inputs`, L1 and L2 norm.

    L1 is the mean over D (Ding et al. 2019), which orders source words as the sum does.
    """

    def reduce(gradients: Tensor) -> Tensor:
        dot = (gradients * inputs).sum(-1)
        return torch.stack([dot, gradients.abs().mean(-1), gradients.norm(dim=-1)])

    return reduce


@dataclass(frozen=True)
class Gradients(Evidence):
    """Gradients of log p at the source embeddings: `input` (dot product), `l1`, `l2`, each [B, T, S]."""

    def compute(self, model: TranslationModel, batch: Batch) -> dict[str, Tensor]:
        inputs = model.embed(batch)
        read, _ = gradient_rows(model, batch, inputs, readings(inputs))
        return dict(zip(BASES, read, strict=True))

    def passes(self, pair: Encoded) -> Passes:
        return Passes(forward=1, backward=len(pair.target))


@dataclass(frozen=True)
class NoisyGradients(Evidence):
    """Mean over noisy copies of normalised readings, in the order of Ding et al. (2019): clamp, normalise, mean.

    The noise of a sentence comes from its own generator and scales with the range of its own embeddings, so that
    neither batch nor padding changes it. Keys as `Gradients`; `input` takes the dot product with the clean input.
    """

    samples: int
    noise: float
    seed: int

    def compute(self, model: TranslationModel, batch: Batch) -> dict[str, Tensor]:
        inputs = model.embed(batch)
        total = inputs.new_zeros(())
        for noisy in noisy_copies(batch, inputs, self.samples, self.noise, self.seed):
            read, _ = gradient_rows(model, batch, noisy, readings(inputs))
            total = total + normalise_rows(read.clamp(min=0), batch.source_mask)
        return dict(zip(BASES, total / self.samples, strict=True))

    def passes(self, pair: Encoded) -> Passes:
        return Passes(forward=self.samples, backward=self.samples * len(pair.target))


def noisy_copies(batch: Batch, inputs: Tensor, samples: int, noise: float, seed: int) -> Iterator[Tensor]:
    """`inputs` with normal noise of `noise` times the range of each sentence's embeddings. [B, S, D] each"""
    generators = [_generator(seed, pair.pair.id) for pair in batch.pairs]
    spread = _embedding_range(inputs, batch.source_mask) * noise  # [B]
    for _ in range(samples):
        yield inputs + spread[:, None, None] * _draw(generators, batch, inputs)


def _generator(seed: int, sentence: int) -> torch.Generator:
    # SeedSequence mixes the two numbers, so that neighbouring sentences and seeds share nothing.
    mixed = np.random.SeedSequence([seed, sentence]).generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(mixed >> np.uint64(1)))


def _embedding_range(inputs: Tensor, mask: Tensor) -> Tensor:
    """max - min of the real source embeddings of each sentence. [B]"""
    hidden = ~mask[:, :, None]
    high = inputs.masked_fill(hidden, -torch.inf).flatten(1).amax(1)
    low = inputs.masked_fill(hidden, torch.inf).flatten(1).amin(1)
    return high - low


def _draw(generators: Sequence[torch.Generator], batch: Batch, inputs: Tensor) -> Tensor:
    """Standard normal noise at the real source pieces of every sentence, 0 at padding. [B, S, D]"""
    noise = torch.zeros_like(inputs)
    for row, mask, generator in zip(noise, batch.source_mask, generators, strict=True):
        drawn = torch.randn(int(mask.sum()), inputs.shape[-1], generator=generator)
        row[mask] = drawn.to(inputs)
    return noise


@dataclass(frozen=True)
class PathGradients(Evidence):
    """Integrated Gradients from a baseline that replaces every source word, or every source piece with `</s>` and tags.

    Keys: `signed` [B, T, S]; `completeness` [B, T], the absolute difference between the sum of a row and
    log p(x) - log p(baseline), which is 0 when the integral is exact.
    """

    baseline: str
    steps: int
    rule: str
    replaced: str = "words"

    def compute(self, model: TranslationModel, batch: Batch) -> dict[str, Tensor]:
        inputs = model.embed(batch)
        replaced = batch.source_word_of >= 0 if self.replaced == "words" else batch.source_mask
        start = torch.where(replaced[:, :, None], model.baseline(self.baseline), inputs)
        signed = path_integral(model, batch, start, inputs, self.rule, self.steps)
        with torch.no_grad():
            gain = model.log_probs(batch, inputs) - model.log_probs(batch, start)
        return {"signed": signed, "completeness": (signed.sum(-1) - gain).abs()}

    def passes(self, pair: Encoded) -> Passes:
        return Passes(forward=self.steps + 2, backward=self.steps * len(pair.target))


def path_integral(model: TranslationModel, batch: Batch, start: Tensor, end: Tensor, rule: str, steps: int) -> Tensor:
    """Gradients of log p along the line from `start` to `end` [B, S, D], times its length in each piece. [B, T, S]"""
    step = end - start
    total = step.new_zeros(())
    for node, weight in quadrature(rule, steps):
        read, _ = gradient_rows(model, batch, start + node * step, lambda g: (g * step).sum(-1))
        total = total + weight * read
    return total


@dataclass(frozen=True)
class NoisyPaths(Evidence):
    """As `NoisyGradients`, for Integrated Gradients from zero to each noisy copy. `integrated`: [B, T, S]."""

    samples: int
    noise: float
    seed: int
    steps: int

    def compute(self, model: TranslationModel, batch: Batch) -> dict[str, Tensor]:
        inputs = model.embed(batch)
        words = (batch.source_word_of >= 0)[:, :, None]
        total = inputs.new_zeros(())
        for noisy in noisy_copies(batch, inputs, self.samples, self.noise, self.seed):
            signed = path_integral(model, batch, noisy.masked_fill(words, 0), noisy, RULES[0], self.steps)
            total = total + normalise_rows(signed.clamp(min=0), batch.source_mask)
        return {"integrated": total / self.samples}

    def passes(self, pair: Encoded) -> Passes:
        count = self.samples * self.steps
        return Passes(forward=count, backward=count * len(pair.target))


def quadrature(rule: str, steps: int) -> list[tuple[float, float]]:
    """Nodes and weights on [0, 1].

    Raises:
        UsageError: for an unknown rule or fewer than one step.
    """
    if steps < 1:
        raise UsageError(f"steps must be at least 1, not {steps}")
    if rule == "midpoint":
        return [((k + 0.5) / steps, 1 / steps) for k in range(steps)]
    if rule == "gauss-legendre":
        nodes, weights = np.polynomial.legendre.leggauss(steps)
        return [(float(x + 1) / 2, float(w) / 2) for x, w in zip(nodes, weights, strict=True)]
    raise unknown_name("quadrature rule", rule, RULES)


def _check(kind: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise unknown_name(kind, value, known)


@dataclass(frozen=True)
class GradientNorm(Method):
    """How sensitive the log-probability of a target piece is to each source piece; says nothing of its sign."""

    norm: str = "l1"

    name: ClassVar[str] = "gradient-norm"
    family: ClassVar[str] = "gradient"
    measures: ClassVar[str] = "sensitivity"
    summary: ClassVar[str] = "norm of the gradient of log p at the source word embedding"
    citation: ClassVar[str] = "Li et al. 2016 (NAACL)"
    compared: ClassVar[Mapping[str, Callable[[TranslationModel], Sequence[object]]]] = {"norm": lambda model: NORMS}

    def __post_init__(self) -> None:
        _check("norm", self.norm, NORMS)

    @property
    def evidence(self) -> Gradients:
        return Gradients()

    def read(self, evidence: Mapping[str, Tensor], batch: Batch) -> Tensor:
        return evidence[self.norm]


@dataclass(frozen=True)
class GradientXInput(Method):
    """First-order contribution of each source piece to the log-probability of a target piece."""

    sign: str = "positive"

    name: ClassVar[str] = "gradient-x-input"
    family: ClassVar[str] = "gradient"
    measures: ClassVar[str] = "saliency"
    summary: ClassVar[str] = "dot product of gradient and source word embedding"
    citation: ClassVar[str] = "Denil et al. 2014; for MT Ding et al. 2019"
    compared: ClassVar[Mapping[str, Callable[[TranslationModel], Sequence[object]]]] = {"sign": lambda model: SIGNS[:2]}

    def __post_init__(self) -> None:
        _check("sign", self.sign, SIGNS)

    @property
    def evidence(self) -> Gradients:
        return Gradients()

    def read(self, evidence: Mapping[str, Tensor], batch: Batch) -> Tensor:
        return apply_sign(evidence["input"], self.sign)


@dataclass(frozen=True)
class SmoothGrad(Method):
    """Saliency averaged over noisy copies of the source embeddings.

    `noise` is the standard deviation as a share of the range of the sentence's embeddings; `base` is what is averaged:
    `input` (positive part of gradient x input), `l1` or `l2` (gradient norm, which measures sensitivity), `integrated`
    (positive part of Integrated Gradients from zero in `steps` steps, which are steps x samples gradients).
    """

    samples: int = 30
    noise: float = 0.15
    base: str = "input"
    seed: int = 0
    steps: int = 6

    name: ClassVar[str] = "smoothgrad"
    family: ClassVar[str] = "gradient"
    measures: ClassVar[str] = "saliency"
    summary: ClassVar[str] = "gradient x input (or norm) averaged over noisy inputs"
    citation: ClassVar[str] = "Smilkov et al. 2017; Ding et al. 2019 (WMT)"
    compared: ClassVar[Mapping[str, Callable[[TranslationModel], Sequence[object]]]] = {"base": lambda model: BASES[:2]}

    def __post_init__(self) -> None:
        _check("base", self.base, SMOOTHED)
        quadrature(RULES[0], self.steps)
        if self.samples < 1 or not 0 <= self.noise < float("inf"):
            raise UsageError(f"samples must be at least 1 and noise at least 0, not {self.samples} and {self.noise}")

    @property
    def measured(self) -> str:
        return "sensitivity" if self.base in NORMS else self.measures

    @property
    def evidence(self) -> Evidence:
        if self.base == "integrated":
            return NoisyPaths(self.samples, self.noise, self.seed, self.steps)
        return NoisyGradients(self.samples, self.noise, self.seed)

    def read(self, evidence: Mapping[str, Tensor], batch: Batch) -> Tensor:
        return evidence[self.base]


@dataclass(frozen=True)
class IntegratedGradients(Method):
    """Contribution of each source piece against a baseline that stands for its absence.

    `replaced` is what the baseline replaces: `words`, or `all` pieces, `</s>` and tags among them.
    """

    baseline: str = "zero"
    steps: int = 24
    rule: str = "gauss-legendre"
    sign: str = "positive"
    replaced: str = "words"

    name: ClassVar[str] = "integrated-gradients"
    family: ClassVar[str] = "gradient"
    measures: ClassVar[str] = "saliency"
    summary: ClassVar[str] = "gradients integrated from a baseline to the input"
    citation: ClassVar[str] = "Sundararajan et al. 2017 (ICML)"
    compared: ClassVar[Mapping[str, Callable[[TranslationModel], Sequence[object]]]] = {"sign": lambda model: SIGNS[:2]}

    def __post_init__(self) -> None:
        _check("baseline", self.baseline, BASELINES)
        _check("sign", self.sign, SIGNS)
        _check("set of replaced pieces", self.replaced, REPLACED)
        quadrature(self.rule, self.steps)

    @property
    def evidence(self) -> PathGradients:
        return PathGradients(self.baseline, self.steps, self.rule, self.replaced)

    def read(self, evidence: Mapping[str, Tensor], batch: Batch) -> Tensor:
        return apply_sign(evidence["signed"], self.sign)
