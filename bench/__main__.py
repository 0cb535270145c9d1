"""`python -m bench`: ratios side by side in one run, medians after a warm-up."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click
import torch

from align.methods import make_method
from align.models.base import plan_batches
from align.models.load import LoadOptions, load_model
from align.pipeline import BATCH_PIECES
from bench.naive import gradient_x_input
from data.bitext import read_bitext

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from align.models.base import Encoded, TranslationModel


@click.command()
@click.option("-m", "--model", required=True, type=click.Path(exists=True, path_type=Path))
@click.option("-s", "--source", required=True, type=click.Path(exists=True, path_type=Path))
@click.option("-t", "--target", required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--pairs", default=60, show_default=True, help="Pairs, taken evenly from the text.")
@click.option("--rounds", default=3, show_default=True, help="Rounds; each runs every contender once.")
@click.option("--threads", type=click.IntRange(1), help="CPU threads.")
def bench(model: Path, source: Path, target: Path, pairs: int, rounds: int, threads: int | None) -> None:
    """Gradient x input against one-sentence, one-backward-per-piece code, and against a bare forward pass."""
    if threads:
        torch.set_num_threads(threads)
    loaded = load_model(model, LoadOptions())
    text = list(read_bitext(source, target))
    encoded = [loaded.encode_pair(pair) for pair in text[:: max(1, len(text) // pairs)][:pairs]]
    contenders = {
        "naive gradient x input": lambda: [gradient_x_input(loaded, pair) for pair in encoded],
        "gradient x input": lambda: score(loaded, encoded, "gradient-x-input:sign=signed"),
        "attention": lambda: score(loaded, encoded, "attention"),
        "bare forward pass": lambda: forward(loaded, encoded),
    }
    times = measure(contenders, rounds)
    slowest = times["naive gradient x input"]
    for name, seconds in times.items():
        print(f"{name:25s} {1000 * seconds / len(encoded):8.2f} ms a pair  {slowest / seconds:8.2f} x naive")
    worst = largest_difference(loaded, encoded)
    print(f"largest difference between naive and batched scores, relative to the largest score: {worst:.1e}")


def measure(contenders: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median seconds of each contender; rounds alternate, so that noise hits all alike."""
    for run in contenders.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            start = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def score(model: TranslationModel, pairs: Sequence[Encoded], spec: str) -> dict[int, torch.Tensor]:
    """Scores [T, S] of each pair, by its id."""
    method, result = make_method(spec), {}
    for group in plan_batches(pairs, BATCH_PIECES):
        batch = model.batch(group)
        with torch.no_grad():
            scores = method.scores(model, batch)
        result.update({pair.pair.id: scores[n, : len(pair.target), : len(pair.source)] for n, pair in enumerate(group)})
    return result


@torch.no_grad()
def forward(model: TranslationModel, pairs: Sequence[Encoded]) -> None:
    """Encoder and decoder without the output layer, one batch after the other."""
    for group in plan_batches(pairs, BATCH_PIECES):
        batch = model.batch(group)
        model.decode(batch, model.encode(batch, model.embed(batch)))


def largest_difference(model: TranslationModel, pairs: Sequence[Encoded]) -> float:
    """How far the batched scores are from the naive ones."""
    ours = score(model, pairs, "gradient-x-input:sign=signed")
    naive = {pair.pair.id: gradient_x_input(model, pair) for pair in pairs}
    scale = max(float(rows.abs().max()) for rows in naive.values())
    return max(float((ours[key] - rows).abs().max()) for key, rows in naive.items()) / scale


if __name__ == "__main__":
    bench()
