"""Gradient methods and attention against the usual code, fairseq's own, and what the processor can do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from align.methods import make_method
from align.methods.products import fast_products
from align.models.base import plan_batches
from align.models.fairseq import FairseqModel
from align.pipeline import BATCH_PIECES
from bench.measure import Products, measure, print_ratios, product_peak
from bench.naive import gradient_x_input, prefix_by_prefix

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from align.models.base import Encoded, TranslationModel

KEPT, PREFIXES = "one graph, a backward pass a piece", "prefix by prefix"
OURS = "gradient-x-input:sign=signed"


def gradients(model: TranslationModel, pairs: Sequence[Encoded], rounds: int, smooth: bool) -> None:
    """Gradient x input against both naive ways, equal results, and the share of the processor's peak."""
    contenders: dict[str, Callable[[], object]] = {
        KEPT: lambda: [gradient_x_input(model, pair) for pair in pairs],
        PREFIXES: lambda: [prefix_by_prefix(model, pair) for pair in pairs],
        "nmt-align gradient-x-input": lambda: score(model, pairs, OURS),
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
    """Attention against the bare forward pass that it needs, and against fairseq's printing of alignments."""
    contenders: dict[str, Callable[[], object]] = {
        "bare forward pass, no output layer": lambda: forward(model, pairs),
        "nmt-align attention:layer=-1": lambda: score(model, pairs, "attention:layer=-1"),
        "nmt-align attention:layer=0": lambda: score(model, pairs, "attention:layer=0"),
    }
    if isinstance(model, FairseqModel):
        contenders["fairseq --score-reference --print-alignment"] = lambda: fairseq_alignments(model, pairs)
    print_ratios(measure(contenders, rounds), len(pairs), "pair", "bare forward pass, no output layer")


def score(model: TranslationModel, pairs: Sequence[Encoded], spec: str) -> dict[int, torch.Tensor]:
    """Scores [T, S] of each pair, by its id."""
    method, result = make_method(spec), {}
    for group in plan_batches(pairs, BATCH_PIECES * method.evidence.on(model).batch_factor):
        with torch.no_grad():
            scores = method.scores(model, model.batch(group))
        result.update({pair.pair.id: scores[n, : len(pair.target), : len(pair.source)] for n, pair in enumerate(group)})
    return result


@torch.no_grad()
def forward(model: TranslationModel, pairs: Sequence[Encoded]) -> None:
    """Encoder and decoder without the output layer, one batch after the other."""
    for group in plan_batches(pairs, BATCH_PIECES):
        batch = model.batch(group)
        with fast_products():
            model.decode(batch, model.encode(batch, model.embed(batch)))


def fairseq_alignments(model: FairseqModel, pairs: Sequence[Encoded]) -> list[Any]:
    """What `fairseq-generate --score-reference --print-alignment` computes once its data are loaded, in our batches."""
    from fairseq.sequence_scorer import SequenceScorer

    scorer, found = SequenceScorer(model.target_dictionary, compute_alignment=True), []
    for group in plan_batches(pairs, BATCH_PIECES):
        batch = model.batch(group)
        inputs = {
            "src_tokens": batch.source,
            "src_lengths": batch.source_mask.sum(1),
            "prev_output_tokens": batch.prefix,
        }
        target = batch.target.masked_fill(~batch.target_mask, model.pad)
        found += scorer.generate([model.module], {"net_input": inputs, "target": target})
    return found


def largest_difference(model: TranslationModel, pairs: Sequence[Encoded]) -> float:
    """How far the batched scores are from the naive ones."""
    ours = score(model, pairs, OURS)
    naive = {pair.pair.id: gradient_x_input(model, pair) for pair in pairs}
    scale = max(float(rows.abs().max()) for rows in naive.values())
    return max(float((ours[key] - rows).abs().max()) for key, rows in naive.items()) / scale
