"""What a method ought to withstand: a shift of the input, another implementation, small noise; and what it promises.

A shift of all embeddings that the encoder takes off again, and other weights that compute the same function, change
nothing that the model does; maps that change explain something else (Kindermans et al. 2019; Sundararajan et al. 2017).
Max sensitivity and infidelity follow Yeh et al. 2019 as captum defines them, for each target piece:

    sensitivity = max over noise of |map(x + noise) - map(x)| / |map(x)|        (Euclidean norms)
    infidelity  = mean of (b z.map(x) - (f(x) - f(x faded by z)))^2             (b: the best scale)

where f is log p of the target piece and a word is faded by z towards the zero embedding. Infidelity is reported as a
share of the mean of (f(x) - f(faded))^2, 0 to 1, so that maps of any scale can be compared.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from align.models.altered import disturbed, rewired, shifted
from align.models.base import plan_batches
from data.errors import ModelError
from eval.bootstrap import paired_means

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from torch import Tensor

    from align.methods.base import Method
    from align.models.base import Batch, Encoded, TranslationModel

    Points = dict[int, tuple[float, float]]
    """For each sentence, by its number, a sum over target pieces and their count."""

    Found = dict[Method | None, dict[str, Points]]
    """The checks of each method; of None, a map that gives every word the same, the floor of infidelity."""

CHECKS = {
    "shift": "relative change of the map when embeddings are shifted and the encoder takes it off again; 0 is right",
    "implementation": "relative change of the map under other weights that compute the same function; 0 is right",
    "completeness": "how far a row sum is from the gain of log p that it is to explain, in nats; where promised",
    "sensitivity": "most relative change of the map under noise of --radius times the size of the embeddings",
    "infidelity": "share of the change of log p, when words fade, that the map does not foretell at its best scale",
}
INVARIANT = 0.01
FADING = 1 / 3  # share of the words that fade in a draw
FLOOR = {"method": "the same for every word", "measures": "floor"}


@dataclass(frozen=True)
class Settings:
    """How maps are disturbed; every sentence starts its random numbers from `seed` and its own number.

    `radius`: of the noise, as a share of the embeddings' root mean square; `samples` of it. `fade`: the most that a
    word fades towards zero; `fadings`: draws, each of a random third of the words.
    """

    radius: float = 0.1
    samples: int = 5
    fade: float = 0.5
    fadings: int = 20
    seed: int = 0


def check_methods(
    model: TranslationModel,
    pairs: Sequence[Encoded],
    methods: Sequence[Method],
    settings: Settings,
    batch_pieces: int,
    advance: Callable[[float], object] = lambda sentences: None,
) -> Found:
    """Every check of every method on every pair; a check that does not apply to a method is not there."""
    found: Found = {method: {} for method in (*methods, None)}
    with torch.no_grad():
        batches = [model.batch(group) for group in plan_batches(pairs, batch_pieces)]
        vector = shift(model, batches, settings.seed)
        for batch in batches:
            faded = fadings(model, batch, settings)
            even = infidelity(torch.ones_like(batch.target[..., None] * faded[0][0][:, None]), *faded)
            found[None].setdefault("infidelity", {}).update(_points(even, batch))
            for method in methods:
                for check, values in _checks(model, batch, method, settings, vector, faded).items():
                    found[method].setdefault(check, {}).update(_points(values, batch))
                advance(len(batch))
    return found


def _checks(
    model: TranslationModel,
    batch: Batch,
    method: Method,
    settings: Settings,
    vector: Tensor,
    faded: tuple[Tensor, Tensor],
) -> dict[str, Tensor]:
    """Values of target pieces, [B, T] each, NaN where a map is empty."""
    evidence = method.evidence.on(model).compute(model, batch)
    plain = method.read(evidence, batch)
    values = {"infidelity": infidelity(plain, *faded)}
    if "completeness" in evidence:
        values["completeness"] = evidence["completeness"]
    alterations: dict[str, Callable[[], Tensor]] = {
        "shift": lambda: _under(shifted(model, vector), model, batch, method, plain),
        "implementation": lambda: _under(rewired(model, settings.seed), model, batch, method, plain),
        "sensitivity": lambda: max_sensitivity(model, batch, method, plain, settings),
    }
    for check, compute in alterations.items():
        with suppress(ModelError):  # the model or the method cannot be altered so
            values[check] = compute()
    return values


def _under(
    altered: AbstractContextManager[None], model: TranslationModel, batch: Batch, method: Method, plain: Tensor
) -> Tensor:
    """Sum of absolute changes of each row by the sum of its absolute scores. [B, T]"""
    with altered:
        other = method.scores(model, batch)
    hidden = ~batch.source_mask[:, None, :]
    before, change = plain.masked_fill(hidden, 0), (other - plain).masked_fill(hidden, 0)
    return _ratio(change.abs().sum(-1), before.abs().sum(-1))


def _ratio(part: Tensor, whole: Tensor) -> Tensor:
    ratio: Tensor = torch.where(whole > 0, part / whole.clamp(min=1e-30), torch.nan)
    return ratio


def shift(model: TranslationModel, batches: Sequence[Batch], seed: int) -> Tensor:
    """A random vector as long as an embedding of the text on average. [D]"""
    size = torch.cat([model.embed(batch)[batch.source_mask].norm(dim=-1) for batch in batches]).mean()
    drawn = torch.from_numpy(np.random.default_rng(seed).normal(size=model.width)).to(size)
    vector: Tensor = size * drawn / drawn.norm()
    return vector


def noises(
    model: TranslationModel, batch: Batch, settings: Settings
) -> Iterator[dict[int, tuple[tuple[int, ...], Tensor]]]:
    """Uniform noise for the pieces of each sentence, one draw after the other, for `align.models.altered.disturbed`."""
    rngs = [np.random.default_rng([settings.seed, pair.pair.id, 0]) for pair in batch.pairs]
    inputs = model.embed(batch)
    for _ in range(settings.samples):
        drawn = {}
        for row, (pair, rng) in enumerate(zip(batch.pairs, rngs, strict=True)):
            real = inputs[row, batch.source_mask[row]]
            most = settings.radius * float(real.pow(2).mean().sqrt())
            noise = torch.from_numpy(rng.uniform(-most, most, size=tuple(real.shape)))
            drawn[pair.pair.id] = (pair.source, noise)
        yield drawn


def max_sensitivity(model: TranslationModel, batch: Batch, method: Method, plain: Tensor, settings: Settings) -> Tensor:
    """The largest relative change of each row of `plain` [B, T, S] under noise. [B, T]

    Raises:
        ModelError: a method that changes the words themselves.
    """
    hidden = ~batch.source_mask[:, None, :]
    size = plain.masked_fill(hidden, 0).norm(dim=-1)
    most = torch.zeros_like(size)
    for noise in noises(model, batch, settings):
        with disturbed(model, noise):
            other = method.scores(model, batch)
        most = torch.maximum(most, _ratio((other - plain).masked_fill(hidden, 0).norm(dim=-1), size))
    return most


def fadings(model: TranslationModel, batch: Batch, settings: Settings) -> tuple[Tensor, Tensor]:
    """How far each word fades, [fadings, B, S], and what is lost of log p thereby, [fadings, B, T]."""
    inputs = model.embed(batch)
    before = model.log_probs(batch, inputs)
    shares, losses = [], []
    rngs = [np.random.default_rng([settings.seed, pair.pair.id, 1]) for pair in batch.pairs]
    for _ in range(settings.fadings):
        share = torch.zeros_like(inputs[..., 0])
        for row, (pair, rng) in enumerate(zip(batch.pairs, rngs, strict=True)):
            drawn = rng.uniform(0, settings.fade, size=len(pair.source)) * (rng.random(len(pair.source)) < FADING)
            share[row, batch.source_mask[row]] = torch.from_numpy(drawn).to(share)
        share = share.masked_fill(batch.source_word_of < 0, 0)
        shares.append(share)
        losses.append(before - model.log_probs(batch, (1 - share[..., None]) * inputs))
    return torch.stack(shares), torch.stack(losses)


def infidelity(plain: Tensor, shares: Tensor, losses: Tensor) -> Tensor:
    """What a map [B, T, S] at its best scale leaves unexplained of the losses [n, B, T], as a share. [B, T]"""
    foretold = torch.einsum("nbs,bts->nbt", shares, plain)
    crossed, own, total = (x.sum(0) for x in (foretold * losses, foretold**2, losses**2))
    explained = torch.where(own > 0, crossed**2 / own.clamp(min=1e-30), 0)
    return 1 - _ratio(explained, total)


def _points(values: Tensor, batch: Batch) -> Points:
    """Sums and counts over the target pieces where a value is defined."""
    defined = batch.target_mask & values.isfinite()
    sums, counts = values.where(defined, 0).sum(1).tolist(), defined.sum(1).tolist()
    return {pair.pair.id: point for pair, *point in zip(batch.pairs, sums, counts, strict=True)}  # type: ignore[misc]


def check_rows(found: Found, pairs: Sequence[Encoded], resamples: int, seed: int) -> list[dict[str, object]]:
    """A row for each method: every check as a mean over target pieces with its interval, None where it does not apply.

    `invariant`: whether both invariances hold to one per cent.
    """
    rows: list[dict[str, object]] = []
    for method, checks in found.items():
        row: dict[str, object] = {"method": method.label, "measures": method.measured} if method else dict(FLOOR)
        for check in CHECKS:
            points = checks.get(check, {})
            (mean,) = paired_means([[points.get(pair.pair.id, (0.0, 0.0)) for pair in pairs]], resamples, seed)
            row |= {check: mean.value, f"{check}_low": mean.low, f"{check}_high": mean.high}
        changes = [row[check] for check in ("shift", "implementation")]
        row["invariant"] = all(isinstance(c, float) and c < INVARIANT for c in changes) if method else None
        rows.append(row)
    return rows
