"""`python -m bench`: ratios side by side in one run, medians after a warm-up."""

from __future__ import annotations

import platform
from importlib.resources import files
from pathlib import Path

import click
import torch

from align.models.load import LoadOptions, load_model
from bench.against_fairseq import fairseq
from bench.against_inseq import inseq
from bench.agreement import precision, samples
from bench.gradients import attention, batches, gradients
from bench.links import links
from bench.resources import memory, startup
from data.bitext import Pair, read_bitext
from data.demo import held_out

PARTS = ("gradients", "attention", "batches", "fairseq", "links", "startup", "memory", "precision", "samples", "inseq")
USUAL = PARTS[:-2]
FILE = click.Path(exists=True, path_type=Path)


@click.command()
@click.argument("parts", nargs=-1, type=click.Choice(PARTS))
@click.option("-m", "--model", type=FILE, help="A fairseq checkpoint (default: the model of the demo, and its text).")
@click.option("-s", "--source", type=FILE)
@click.option("-t", "--target", type=FILE)
@click.option("--pairs", default=60, show_default=True, help="Pairs, taken evenly from the text.")
@click.option("--rounds", default=3, show_default=True, help="Rounds; each runs every contender once.")
@click.option("--threads", type=click.IntRange(1), help="CPU threads.")
@click.option("--quick", is_flag=True, help="12 pairs, one round, no SmoothGrad, small corpora: under 3 minutes.")
@click.option("--inseq-python", type=FILE, help="Python of an environment with inseq, for the part `inseq`.")
@click.option("--inseq-batch", default=8, show_default=True, help="Batch size of inseq.")
@click.option("--hf-model", type=FILE, help="Hugging Face folder, for the part `inseq` (default: random weights).")
def bench(
    parts: tuple[str, ...],
    model: Path | None,
    source: Path | None,
    target: Path | None,
    pairs: int,
    rounds: int,
    threads: int | None,
    quick: bool,
    inseq_python: Path | None,
    inseq_batch: int,
    hf_model: Path | None,
) -> None:
    """Measure PARTS, by default all but `samples`, which is long, and `inseq`, which needs its own environment."""
    if threads:
        torch.set_num_threads(threads)
    pairs, rounds = (min(pairs, 12), 1) if quick else (pairs, rounds)
    print(
        f"{platform.processor() or platform.machine()}, {torch.get_num_threads()} threads, PyTorch {torch.__version__}"
    )
    chosen = parts or USUAL
    text = _text(source, target)
    if set(chosen) - {"links", "startup", "inseq"}:
        file = model or Path(str(files("data.demo") / "model" / "de-en.pt"))
        loaded = load_model(file, LoadOptions())
        encoded = [pair for pair in map(loaded.encode_pair, _some(text, pairs)) if pair.status == "ok"]
    for part in chosen:
        print(part)
        match part:
            case "gradients":
                gradients(loaded, encoded, rounds, smooth=not quick)
            case "attention":
                attention(loaded, encoded, 5 * rounds)
            case "batches":
                batches(loaded, encoded, rounds)
            case "fairseq":
                fairseq(loaded, file, encoded, 500 if quick else 5000, rounds)
            case "links":
                links(50_000 if quick else 1_000_000, rounds)
            case "startup":
                startup(5)
            case "memory":
                memory(file, text, (500, 5000) if quick else (1000, 10_000, 100_000))
            case "precision":
                precision(file, _some(text, pairs), rounds)
            case "samples":
                samples(loaded, _some(text, pairs))
            case "inseq":
                if inseq_python is None:
                    raise click.UsageError("inseq needs --inseq-python")
                inseq(inseq_python, hf_model, _some(text, pairs), rounds, inseq_batch)


def _text(source: Path | None, target: Path | None) -> list[Pair]:
    if source and target:
        return list(read_bitext(source, target))
    return [Pair(number, pair.source, pair.target) for number, pair in enumerate(held_out(300))]


def _some(text: list[Pair], count: int) -> list[Pair]:
    return text[:: max(1, len(text) // count)][:count]


if __name__ == "__main__":
    bench()
