"""Gradient methods and attention against the usual code, and what the processor can do."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import torch

from align.methods import make_method
from align.methods.base import FEW_PASSES
from align.methods.products import fast_products
from align.models.base import plan_batches
from align.pipeline import BATCH_PIECES
from bench.measure import Products, measure, print_ratios, product_peak
from bench.naive import gradient_x_input, prefix_by_prefix

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from align.models.base import Encoded, TranslationModel

KEPT, PREFIXES = "one graph, a backward pass a piece", "prefix by prefix"
OURS = "gradient-x-input:sign=signed"
CHEAP = "attention-x-gradient"
ATTENTION = "attention:layer=-1"
LRP = "lrp:attention=held"


def gradients(model: TranslationModel, pairs: Sequence[Encoded], rounds: int, smooth: bool) -> None:
    """Gradient x input against both naive ways, equal results, and the share of the processor's peak."""
    contenders: dict[str, Callable[[], object]] = {
        KEPT: lambda: [gradient_x_input(model, pair) for pair in pairs],
        PREFIXES: lambda: [prefix_by_prefix(model, pair) for pair in pairs],
        "nmt-align gradient-x-input": lambda: score(model, pairs, OURS),
        f"nmt-align {LRP}": lambda: score(model, pairs, LRP),
        f"nmt-align {CHEAP}": lambda: score(model, pairs, CHEAP),
    }
    if smooth:
        contenders["nmt-align smoothgrad:samples=30"] = lambda: score(model, pairs, "smoothgrad:samples=30")
    times = measure(contenders, rounds)
    print_ratios(times, len(pairs), "pair", KEPT)
    print(f"  largest difference from {KEPT}, relative to the largest score: {largest_difference(model, pairs):.1e}")
    with Products() as counted:
        score(model, pairs, OURS)
    with fast_products():
        peak = product_peak()
    reached = counted.operations / times["nmt-align gradient-x-input"]
    print(f"  {reached / 1e9:.0f} of {peak / 1e9:.0f} GFLOP/s of one large product: {reached / peak:.0%}")


def attention(model: TranslationModel, pairs: Sequence[Encoded], rounds: int) -> None:
    """Attention against the bare forward pass that it needs."""
    contenders: dict[str, Callable[[], object]] = {
        "bare forward pass, no output layer": lambda: forward(model, pairs),
        f"nmt-align {ATTENTION}": lambda: score(model, pairs, ATTENTION),
        "nmt-align attention:layer=0": lambda: score(model, pairs, "attention:layer=0"),
    }
    print_ratios(measure(contenders, rounds), len(pairs), "pair", "bare forward pass, no output layer")


def score(
    model: TranslationModel, pairs: Sequence[Encoded], spec: str, pieces: int | None = None
) -> dict[int, torch.Tensor]:
    """Scores [T, S] of each pair, by its id; batches of `pieces`, by default as `nmt-align run` makes them."""
    method, result = make_method(spec), {}
    for group in plan_batches(pairs, pieces or BATCH_PIECES * method.evidence.on(model).batch_factor):
        with torch.no_grad():
            scores = method.scores(model, model.batch(group))
        result.update({pair.pair.id: scores[n, : len(pair.target), : len(pair.source)] for n, pair in enumerate(group)})
    return result


@torch.no_grad()
def forward(model: TranslationModel, pairs: Sequence[Encoded]) -> None:
    """Encoder and decoder without the output layer, in the batches of attention."""
    for group in plan_batches(pairs, BATCH_PIECES * FEW_PASSES):
        batch = model.batch(group)
        with fast_products():
            model.decode(batch, model.encode(batch, model.embed(batch)))


def batches(model: TranslationModel, pairs: Sequence[Encoded], rounds: int) -> None:
    """Methods in batches of other sizes: what `BATCH_PIECES` and the factors of the methods rest on."""
    for spec in (ATTENTION, CHEAP, OURS):
        contenders = {
            f"{spec} {size}": partial(score, model, pairs, spec, size) for size in (200, 400, 800, 1600, 3200)
        }
        print_ratios(measure(contenders, rounds), len(pairs), "pair", f"{spec} 400")


def largest_difference(model: TranslationModel, pairs: Sequence[Encoded]) -> float:
    """How far the batched scores are from the naive ones."""
    ours = score(model, pairs, OURS)
    naive = {pair.pair.id: gradient_x_input(model, pair) for pair in pairs}
    scale = max(float(rows.abs().max()) for rows in naive.values())
    return max(float((ours[key] - rows).abs().max()) for key, rows in naive.items()) / scale
