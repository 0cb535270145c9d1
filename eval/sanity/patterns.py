"""Patterns that stand in for cross-attention: uniform, random, permuted, means, and nothing at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from align.models.replacement import real_positions
from data.errors import unknown_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from torch import Tensor

    from align.models.base import Batch, TranslationModel
    from align.models.replacement import Replacement

KINDS = {
    "uniform": "the same weight for every source piece",
    "random": "weights drawn anew for each layer, head and target position, all distributions equally likely",
    "permuted": "the head's own weights handed to other source pieces, as sharp as before",
    "row-mean": "the head's mean over the target positions of the sentence: the same pattern for every word",
    "corpus-mean": "the head's mean over sentences at this position: a pattern that knows no words",
    "pruned": "nothing: the head is switched off",
}
UNITS = ("all", "layer", "head")


@dataclass(frozen=True)
class Variant:
    """What is replaced by what: `layer` and `head` count from 0; None stands for all of them."""

    kind: str
    layer: int | None = None
    head: int | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise unknown_name("kind of attention", self.kind, KINDS)


def variants(model: TranslationModel, kinds: Sequence[str], units: Sequence[str]) -> list[Variant]:
    """Every kind for all layers together, each layer, each head, as `units` asks.

    Raises:
        UsageError: an unknown kind or unit.
    """
    check_names("unit", units, UNITS)
    places: list[tuple[int | None, int | None]] = [(None, None)] if "all" in units else []
    places += [(layer, None) for layer in range(model.layers)] if "layer" in units else []
    if "head" in units:
        places += [(layer, head) for layer in range(model.layers) for head in range(model.heads)]
    return [Variant(kind, *place) for place in places for kind in kinds]


def check_names(kind: str, names: Sequence[str], known: Sequence[str]) -> Sequence[str]:
    """`names`, all of which are known. Raises UsageError otherwise."""
    for name in names:
        if name not in known:
            raise unknown_name(kind, name, known)
    return names


def positional_mean(model: TranslationModel, batches: Iterable[Batch]) -> Tensor:
    """Each head's mean weight at target position t and source position s, over the sentences that have both.

    Returns: [L, H, T, S] for the longest sentences; positions count real pieces.
    """
    total = torch.zeros(model.layers, model.heads, 0, 0)
    count = torch.zeros(0, 0)
    for batch in batches:
        weights = model.cross_attention(batch, range(model.layers)).float().cpu()  # [L, B, H, T, S]
        real = batch.source_mask.cpu()
        size_s = int(real.sum(1).max())
        cells = (batch.target_mask.cpu()[:, :, None] & (torch.arange(size_s) < real.sum(1)[:, None])[:, None]).float()
        # Padding on the left would move the columns.
        order = (~real).long().argsort(dim=1, stable=True)[:, :size_s]  # [B, S]
        packed = weights.gather(-1, order[None, :, None, None].expand(*weights.shape[:-1], -1))
        summed = (packed * cells[None, :, None]).sum(1)
        total, summed = _same_size(total, summed)
        count, seen = _same_size(count, cells.sum(0))
        total, count = total + summed, count + seen
    return total / count.clamp(min=1)


def _same_size(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Both with zeros after their last two dimensions, as large as the larger."""
    rows, columns = (max(a.shape[d], b.shape[d]) for d in (-2, -1))

    def grown(x: Tensor) -> Tensor:
        return torch.nn.functional.pad(x, (0, columns - x.shape[-1], 0, rows - x.shape[-2]))

    return grown(a), grown(b)


@dataclass(frozen=True)
class Patterns:
    """What the patterns are made from: a seed, and the `mean` [L, H, T, S] of `positional_mean` for `corpus-mean`."""

    seed: int
    mean: Tensor | None = None

    def replacements(self, variant: Variant, model: TranslationModel, batch: Batch | None) -> dict[int, Replacement]:
        """For `align.models.replacement`, in teacher forcing of `batch` or, where it is None, in free translation."""
        layers = range(model.layers) if variant.layer is None else (variant.layer,)
        return {layer: _only(variant.head, self._pattern(variant.kind, layer, batch)) for layer in layers}

    def possible(self, kind: str, free: bool) -> bool:
        """Free translation does not know the rows to come, so it has no mean over them."""
        return not (free and kind == "row-mean")

    def _pattern(self, kind: str, layer: int, batch: Batch | None) -> Replacement:
        patterns: dict[str, Callable[[Tensor, int], Tensor]] = {
            "uniform": lambda weights, first: _over_real(torch.ones_like(weights), weights),
            "random": lambda weights, first: _over_real(self._drawn(weights, first, layer), weights),
            "permuted": lambda weights, first: _permuted(weights, self.seed, layer),
            "row-mean": lambda weights, first: _row_mean(weights, batch),
            "corpus-mean": lambda weights, first: _over_real(self._mean_rows(weights, first, layer), weights),
            "pruned": lambda weights, first: torch.zeros_like(weights),
        }
        return patterns[kind]

    def _drawn(self, weights: Tensor, first: int, layer: int) -> Tensor:
        """Exponential numbers, which divided by their sum are a distribution drawn evenly from all (Dirichlet(1)).

        Those of a target position do not depend on how many source or target positions there are.
        """
        size_h, size_q, size_k = weights.shape[1:]
        rows = [
            np.random.default_rng([self.seed, layer, row]).exponential(size=(size_k, size_h))
            for row in range(first, first + size_q)
        ]
        table = torch.from_numpy(np.stack(rows)).to(weights).permute(2, 0, 1)  # [H, Q, K]
        return _by_position(table, real_positions(weights))

    def _mean_rows(self, weights: Tensor, first: int, layer: int) -> Tensor:
        """The means of the positions; positions beyond the longest sentence get uniform weights."""
        if self.mean is None:
            raise ValueError("corpus-mean needs the means of positions")
        size_h, size_q, size_k = weights.shape[1:]
        table = weights.new_zeros(size_h, size_q, size_k)
        known = self.mean[layer, :, first : first + size_q, :size_k].to(weights)
        table[:, : known.shape[1], : known.shape[2]] = known
        return _by_position(table, real_positions(weights))


def _only(head: int | None, pattern: Replacement) -> Replacement:
    """The pattern at one head, the model's own weights at the others."""
    if head is None:
        return pattern

    def replace(weights: Tensor, first: int) -> Tensor:
        chosen = weights.clone()
        chosen[:, head] = pattern(weights, first)[:, head]
        return chosen

    return replace


def _over_real(scores: Tensor, weights: Tensor) -> Tensor:
    """Scores [B, H, Q, K] as distributions over real positions; uniform where all of them are 0."""
    real = real_positions(weights)[:, None, None, :]
    scores = torch.where(real, scores, 0)
    total = scores.sum(-1, keepdim=True)
    even = real / real.sum(-1, keepdim=True)
    return torch.where(total > 0, scores / total.clamp(min=1e-30), even.to(scores))


def _by_position(table: Tensor, real: Tensor) -> Tensor:
    """A table [H, Q, K] of real positions laid out for sentences with padding at either side. [B, H, Q, K]"""
    index = (real.cumsum(1) - 1).clamp(min=0)  # [B, K]
    return table[:, :, index].permute(2, 0, 1, 3)


def _permuted(weights: Tensor, seed: int, layer: int) -> Tensor:
    """Weights at shuffled source positions; one shuffle for each head and length, without fixed points."""
    real = real_positions(weights)
    result = weights.clone()
    for row, places in enumerate(_places(real)):
        for head in range(weights.shape[1]):
            rng = np.random.default_rng([seed, layer, head, len(places)])
            # Sattolo's cycle: every position moves.
            order = rng.permutation(len(places))
            moved = np.empty_like(order)
            moved[order] = np.roll(order, 1)
            result[row, head][:, places] = weights[row, head][:, places[torch.from_numpy(moved).to(places)]]
    return result


def _places(real: Tensor) -> Iterator[Tensor]:
    for row in real:
        yield row.nonzero()[:, 0]


def _row_mean(weights: Tensor, batch: Batch | None) -> Tensor:
    if batch is None:
        raise ValueError("row-mean needs all rows at once")
    rows = batch.target_mask[:, None, :, None].to(weights)
    mean = (weights * rows).sum(2, keepdim=True) / rows.sum(2, keepdim=True)
    return mean.expand_as(weights)
