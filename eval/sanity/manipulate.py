"""Can attention lie? Attention moved as far as possible while every prediction stays (Jain and Wallace 2019).

For each sentence, weights A' are sought for one layer or all of them that maximise the distance between the head means
of A and A' (what is shown as attention), subject to total variation of at most epsilon between the output
distributions at every target position. All target positions are changed at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch

from align.models.base import plan_batches
from align.models.replacement import replaced_attention
from data.errors import UsageError, unknown_name
from eval.bootstrap import paired_means

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from align.models.base import Batch, Encoded, TranslationModel

DISTANCES = ("tv", "jsd")
START = 0.3  # share of a random pattern in the first guess: weights of 0 would have no gradient
SHRINKS = 24  # attempts to bring rows back within epsilon
STEP, PENALTY = 0.2, 0.15  # Adam's step size; how fast the penalty of a row grows and falls
MARGIN = 0.8  # share of epsilon that the ascent aims at, so that most of its points are within


@dataclass(frozen=True)
class Search:
    """`epsilon`: most total variation of a prediction; `steps` of gradient ascent on `distance`."""

    epsilon: float = 0.01
    steps: int = 100
    distance: str = "tv"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.distance not in DISTANCES:
            raise unknown_name("distance", self.distance, DISTANCES)
        if not 0 < self.epsilon < 1 or self.steps < 1:
            raise UsageError(f"epsilon must lie in 0..1 and steps be at least 1, not {self.epsilon}, {self.steps}")


@dataclass(frozen=True)
class Found:
    """What was found for one sentence: sums over its T `pieces` (and over the changed layers, their mean).

    `tv`, `jsd`: between the head means of own and found weights; `head_tv`: the mean over heads of their own distance;
    `moved`: pieces whose most attended source piece became another; `top_before`, `top_after`: weight of the piece
    that was most attended; `output_tv`: between predictions; `kept`: predictions whose best piece stayed.
    """

    pieces: int
    tv: float
    jsd: float
    head_tv: float
    moved: float
    top_before: float
    top_after: float
    output_tv: float
    kept: float


def total_variation(p: Tensor, q: Tensor) -> Tensor:
    """Half the sum of |p - q| over the last dimension, 0 to 1."""
    return (p - q).abs().sum(-1) / 2


def jensen_shannon(p: Tensor, q: Tensor) -> Tensor:
    """Jensen-Shannon divergence over the last dimension in nats, 0 to ln 2."""
    middle = ((p + q) / 2).clamp(min=1e-12).log()

    def relative_entropy(r: Tensor) -> Tensor:
        return (r * (r.clamp(min=1e-12).log() - middle)).sum(-1)

    return (relative_entropy(p) + relative_entropy(q)) / 2


def manipulate(
    model: TranslationModel,
    pairs: Sequence[Encoded],
    layers: Sequence[int],
    search: Search,
    batch_pieces: int,
    advance: Callable[[float], object] = lambda passes: None,
) -> list[Found]:
    """The search for every pair, in order, with the attention of `layers` free and that of the others following.

    Raises:
        ModelError: a model that does not show its insides.
    """
    done: dict[int, Found] = {}
    for group in plan_batches(pairs, batch_pieces):
        batch = model.batch(group)
        task = _Task(model, batch, layers, search)
        done.update(task.measure(task.run(partial(advance, len(group)))))
    return [done[pair.pair.id] for pair in pairs]


class _Task:
    """One batch: the model's own weights [L', B, H, T, S] of the free layers, and its own predictions [B, T, V]."""

    def __init__(self, model: TranslationModel, batch: Batch, layers: Sequence[int], search: Search) -> None:
        self.model, self.batch, self.layers, self.search = model, batch, layers, search
        with torch.no_grad():
            self.states = model.encode(batch, model.embed(batch))
            self.own = model.cross_attention(batch, layers)
            self.before = self._predict(None)

    def _predict(self, weights: Tensor | None) -> Tensor:
        """Output distributions under other weights [L', B, H, T, S] of the free layers. [B, T, V]"""

        def given(number: int) -> Callable[[Tensor, int], Tensor]:
            return lambda own, first: own if weights is None else weights[number].to(own)

        with replaced_attention(self.model, {layer: given(n) for n, layer in enumerate(self.layers)}):
            features = self.model.decode(self.batch, self.states)
        return self.model.logits(self.batch, features).softmax(-1)

    def _distance(self, weights: Tensor) -> Tensor:
        """What is maximised, the mean over free layers. [B, T]"""
        measure = total_variation if self.search.distance == "tv" else jensen_shannon
        return measure(self.own.mean(2), weights.mean(2)).mean(0)

    def run(self, advance: Callable[[], object]) -> Tensor:
        """The farthest weights found whose predictions all stay; the model's own at worst."""
        scores = self._first_guess().requires_grad_()
        hidden = ~self.batch.source_mask[:, None, None, :]
        optimiser = torch.optim.Adam([scores], lr=STEP)
        penalty = torch.ones_like(self.batch.target_mask, dtype=self.own.dtype)
        best, farthest = self.own.clone(), self.own.new_zeros(len(self.batch))
        weights = self.own
        for _ in range(self.search.steps):
            with torch.enable_grad():
                weights = scores.masked_fill(hidden, -torch.inf).softmax(-1)
                excess = total_variation(self.before, self._predict(weights)) / self.search.epsilon - 1  # [B, T]
                gain = self._distance(weights) - penalty * (excess + 1 - MARGIN).clamp(min=0)
                (scores.grad,) = torch.autograd.grad(-(gain * self.batch.target_mask).sum(), scores)
            weights = weights.detach()
            best, farthest = self._better(best, farthest, weights, excess.detach())
            penalty *= torch.where(excess > MARGIN - 1, 1 + PENALTY, 1 - PENALTY / 2)
            penalty.clamp_(1e-3, 1e3)
            optimiser.step()
            advance()
        return self._shrunk(best, farthest, weights)

    def _first_guess(self) -> Tensor:
        """Scores of the model's own weights mixed with random ones that keep off what is most attended."""
        mixed = self.own.clone()
        for row, pair in enumerate(self.batch.pairs):
            rng = np.random.default_rng([self.search.seed, pair.pair.id])
            columns, size_t = self.batch.source_mask[row], len(pair.target)
            for number in range(len(self.layers)):
                drawn = torch.from_numpy(rng.exponential(size=(self.own.shape[2], size_t, len(pair.source)))).to(mixed)
                part = mixed[number, row, :, :size_t]
                shown = part[..., columns].mean(0)  # [T, S]
                drawn = drawn * (shown.amax(-1, keepdim=True) - shown + 1e-6)
                part[..., columns] = (1 - START) * part[..., columns] + START * drawn / drawn.sum(-1, keepdim=True)
        return mixed.clamp(min=1e-9).log()

    def _better(self, best: Tensor, farthest: Tensor, weights: Tensor, excess: Tensor) -> tuple[Tensor, Tensor]:
        """Take over the sentences that are farther than before with every prediction within epsilon."""
        mask = self.batch.target_mask
        reached = (self._distance(weights) * mask).sum(1) / mask.sum(1)
        better = ((excess <= 0) | ~mask).all(1) & (reached > farthest)
        return torch.where(better[None, :, None, None, None], weights, best), torch.where(better, reached, farthest)

    @torch.no_grad()
    def _shrunk(self, best: Tensor, farthest: Tensor, weights: Tensor) -> Tensor:
        """Draw rows that leave epsilon back towards the model's own weights, until the sentence is within."""
        share = torch.ones_like(self.batch.target_mask, dtype=self.own.dtype)  # [B, T]
        for _ in range(SHRINKS):
            mixed = self.own + share[None, :, None, :, None] * (weights - self.own)
            excess = total_variation(self.before, self._predict(mixed)) / self.search.epsilon - 1
            best, farthest = self._better(best, farthest, mixed, excess)
            outside = (excess > 0) & self.batch.target_mask
            # A row may also leave because of rows before it, so the others of its sentence give way a little.
            share *= torch.where(outside, 0.7, torch.where(outside.any(1, keepdim=True), 0.97, 1.0))
        return best

    @torch.no_grad()
    def measure(self, weights: Tensor) -> dict[int, Found]:
        """What the weights [L', B, H, T, S] come to, by the number of the pair."""
        after = self._predict(weights)
        own, other = self.own.mean(2), weights.mean(2)  # [L', B, T, S]
        top = own.argmax(-1, keepdim=True)
        values = torch.stack(
            [
                total_variation(own, other).mean(0),
                jensen_shannon(own, other).mean(0),
                total_variation(self.own, weights).mean(2).mean(0),
                (other.argmax(-1, keepdim=True) != top)[..., 0].to(own).mean(0),
                own.gather(-1, top)[..., 0].mean(0),
                other.gather(-1, top)[..., 0].mean(0),
                total_variation(self.before, after),
                (self.before.argmax(-1) == after.argmax(-1)).to(own),
            ]
        )  # [8, B, T]
        sums = (values * self.batch.target_mask).sum(-1).T.tolist()
        return {p.pair.id: Found(len(p.target), *row) for p, row in zip(self.batch.pairs, sums, strict=True)}


MEANS = ("tv", "jsd", "head_tv", "moved", "top_before", "top_after", "output_tv", "kept")


def manipulation_row(name: str, found: Sequence[Found], resamples: int, seed: int) -> dict[str, object]:
    """A row of the table: means over target pieces, the total variation with its interval over sentences."""
    (interval,) = paired_means([[(f.tv, f.pieces) for f in found]], resamples, seed)
    pieces = sum(f.pieces for f in found)
    row: dict[str, object] = {"layers": name}
    for key in MEANS:
        row[key] = sum(getattr(f, key) for f in found) / pieces
        if key == "tv":
            row |= {"tv_low": interval.low, "tv_high": interval.high}
    return row


def conclusions(rows: Sequence[dict[str, object]], epsilon: float) -> list[str]:
    """What the rows say, and what they do not."""
    lines = [
        f"layers {row['layers']}: for {100 * _number(row['moved']):.0f}% of the target pieces another source piece can "
        f"be the most attended one while no prediction moves by more than {epsilon:g} of total variation"
        for row in rows
    ]
    return [
        *lines,
        "The search gives lower bounds: more steps may find more. A pattern found for one sentence shows that its "
        "attention is not the only one that goes with the prediction, not that the model could learn to attend so "
        "(Wiegreffe and Pinter 2019).",
    ]


def _number(value: object) -> float:
    return value if isinstance(value, float) else 0.0
