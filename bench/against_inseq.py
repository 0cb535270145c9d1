"""The same Hugging Face model and pairs through nmt-align and through inseq."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import torch

from align.models.huggingface import HuggingFaceModel
from align.models.load import LoadOptions, load_model
from bench.gradients import CHEAP, score
from bench.measure import measure, print_ratios
from bench.random_marian import SIZES, save_random_marian

if TYPE_CHECKING:
    from collections.abc import Sequence

    from align.models.base import Encoded, TranslationModel
    from align.models.hf_tokenizers import Side
    from data.bitext import Pair

# A method of inseq, and the same question asked of nmt-align.
METHODS = {
    "attention": "attention:layer=-1",
    "saliency": "gradient-norm:norm=l2",
    "input_x_gradient": "gradient-x-input:sign=signed",
    "integrated_gradients": "integrated-gradients:steps=24:sign=signed",
}


def inseq(python: Path, folder: Path | None, pairs: Sequence[Pair], rounds: int, batch: int) -> None:
    """Compare on the model in `folder`, or on random ones of two sizes."""
    if folder:
        _compare(python, folder, pairs, rounds, batch)
        return
    for name, size in SIZES.items():
        with tempfile.TemporaryDirectory() as temporary:
            save_random_marian(Path(temporary), pairs, size)
            print(f"  random weights, {name}: {size}")
            _compare(python, Path(temporary), pairs, rounds, batch)


def _compare(python: Path, folder: Path, pairs: Sequence[Pair], rounds: int, batch: int) -> None:
    """Milliseconds a pair of both, each with as many threads as PyTorch takes here."""
    model = load_model(folder, LoadOptions(piece_ends="text"))  # inseq cuts running text
    if not isinstance(model, HuggingFaceModel):
        raise click.UsageError(f"{folder} is no Hugging Face model")
    encoded = [model.encode_pair(pair) for pair in pairs]
    specs = (*METHODS.values(), CHEAP, "smoothgrad")
    ours = {spec: (lambda spec=spec: score(model, encoded, spec)) for spec in specs}
    times = measure(ours, rounds)
    text = [(_written(model.tokens.source, pair.source), _written(model.tokens.target, pair.target)) for pair in pairs]
    answer = _ask_inseq(python, folder, text, batch)
    theirs = answer["seconds"]
    for name, spec in METHODS.items():
        both = {f"inseq {name}": theirs[name], f"nmt-align {spec}": times[spec]}
        print_ratios(both, len(pairs), "pair", f"inseq {name}")
    single = "inseq input_x_gradient"
    others = {f"nmt-align {spec}": times[spec] for spec in (CHEAP, "smoothgrad")}
    print_ratios({single: theirs["input_x_gradient"], **others}, len(pairs), "pair", single)
    _print_differences(model, encoded[0], answer)


def _written(side: Side, words: Sequence[str]) -> str:
    """The text that nmt-align cuts into pieces, so that inseq cuts the same."""
    return side.write(words).characters


@torch.no_grad()
def _print_differences(model: TranslationModel, pair: Encoded, answer: dict[str, Any]) -> None:
    """Whether inseq explains the same model: its probabilities, and gradient x input of the first target piece."""
    batch = model.batch([pair])
    log_probs = model.log_probs(batch, model.embed(batch))[0]
    theirs = torch.tensor(answer["probabilities"])
    if len(theirs) != len(log_probs) or len(answer["first_row"]) != len(pair.source):
        print("  inseq cuts the first pair into other pieces, so scores cannot be compared")
        return
    row = score(model, [pair], METHODS["input_x_gradient"])[pair.pair.id][0]
    worst = (row - torch.tensor(answer["first_row"])).abs().max() / row.abs().max()
    print(f"  first target piece: scores differ by {worst:.1e} of the largest")
    apart = (theirs.log() - log_probs).abs()
    print(f"  log p differs by {apart[0]:.1e} for the first target piece, up to {apart[1:].max():.2f} for later ones")


def _ask_inseq(python: Path, folder: Path, pairs: Sequence[tuple[str, str]], batch: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as temporary:
        text = Path(temporary) / "pairs.tsv"
        text.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
        script = Path(__file__).with_name("inseq_peer.py")
        command = [str(python), str(script), str(folder), str(text), str(torch.get_num_threads()), str(batch), *METHODS]
        result = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return found
