"""Makes the demo models from nothing: text, subword codes, dictionaries, and a small Transformer for each direction.

    python scripts/train_demo_models.py FOLDER

writes everything into FOLDER: text and binarised data, fairseq's own checkpoints, and in FOLDER/model the files that
ship with the package: `de-en.pt`, `en-de.pt` (half-precision weights and settings only), `dict.de.txt`, `dict.en.txt`
(one dictionary for both languages), `codes`. What is there already is not made again. It takes about half an hour of
one core. Training is done by the commands of subword-nmt and fairseq, as one would type them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from data.demo import DemoPair, held_out, training

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

LANGUAGES = ("de", "en")
MERGES = 800
PAIRS = {"train": 60_000, "valid": 500}
UPDATES = 2650
ARCHITECTURE = {
    "arch": "transformer",
    "encoder-layers": 3,
    "decoder-layers": 3,
    "encoder-embed-dim": 128,
    "decoder-embed-dim": 128,
    "encoder-ffn-embed-dim": 256,
    "decoder-ffn-embed-dim": 256,
    "encoder-attention-heads": 4,
    "decoder-attention-heads": 4,
    "dropout": 0.1,
}
SCHEDULE = {
    "optimizer": "adam",
    "adam-betas": "(0.9, 0.98)",
    "lr": 0.003,
    "lr-scheduler": "inverse_sqrt",
    "warmup-updates": 400,
    "clip-norm": 1.0,
    "criterion": "label_smoothed_cross_entropy",
    "label-smoothing": 0.1,
    "max-tokens": 1500,
    "seed": 1,
}


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--updates", default=UPDATES, show_default=True, help="Training steps for each direction.")
@click.option("--direction", type=click.Choice(["de-en", "en-de"]), help="Train one direction only.")
def main(folder: Path, updates: int, direction: str | None) -> None:
    """Train the demo models from nothing into FOLDER."""
    model = folder / "model"
    model.mkdir(parents=True, exist_ok=True)
    if not (folder / "bin").exists():
        write_text(folder)
        split_words(folder, model / "codes")
        binarise(folder)
    for language in LANGUAGES:
        name = f"dict.{language}.txt"
        (model / name).write_bytes((folder / "bin" / name).read_bytes())
    for name in [direction] if direction else ["de-en", "en-de"]:
        train(folder, name, updates)
        slim(folder / name / "checkpoint_best.pt", model / f"{name}.pt")


def write_text(folder: Path) -> None:
    """Tokenised text, one sentence a line: training and validation pairs of different seeds, and the held-out pairs."""
    for seed, (split, count) in enumerate(PAIRS.items()):
        write_pairs(folder, split, training(seed, count))
    write_pairs(folder, "test", held_out())


def write_pairs(folder: Path, split: str, pairs: Iterable[DemoPair]) -> None:
    with (folder / f"{split}.de").open("w") as source, (folder / f"{split}.en").open("w") as target:
        for pair in pairs:
            print(*pair.source, file=source)
            print(*pair.target, file=target)


def split_words(folder: Path, codes: Path) -> None:
    """Subword codes of both languages together, few enough that words split; then the text in pieces."""
    both = b"".join((folder / f"train.{language}").read_bytes() for language in LANGUAGES)
    codes.write_bytes(run("subword-nmt", ["learn-bpe"], {"symbols": MERGES}, text=both))
    for split in (*PAIRS, "test"):
        for language in LANGUAGES:
            text = (folder / f"{split}.{language}").read_bytes()
            pieces = run("subword-nmt", ["apply-bpe"], {"codes": codes}, text=text)
            (folder / f"bpe.{split}.{language}").write_bytes(pieces)


def binarise(folder: Path) -> None:
    prefixes = {f"{split}pref": folder / f"bpe.{split}" for split in (*PAIRS, "test")}
    options = {"source-lang": "de", "target-lang": "en", "destdir": folder / "bin"} | prefixes
    run("fairseq-preprocess", ["--joined-dictionary"], options)


def train(folder: Path, direction: str, updates: int) -> None:
    source, target = direction.split("-")
    where = {"source-lang": source, "target-lang": target, "save-dir": folder / direction}
    flags = ["--cpu", "--share-all-embeddings", "--no-epoch-checkpoints", "--no-progress-bar"]
    run("fairseq-train", [folder / "bin", *flags], ARCHITECTURE | SCHEDULE | where | {"max-update": updates})


def slim(trained: Path, out: Path) -> None:
    """Keep the weights, in half precision, and the settings of task and model, without paths."""
    import argparse

    import torch

    with torch.serialization.safe_globals([argparse.Namespace]):
        state = torch.load(trained, map_location="cpu", weights_only=True)
    model = vars(state["cfg"]["model"])
    kept = {name: value for name, value in model.items() if not (isinstance(value, str) and os.sep in value)}
    task = state["cfg"]["task"] | {"data": ""}
    weights = {name: tensor.half() if tensor.is_floating_point() else tensor for name, tensor in state["model"].items()}
    small = {
        "args": None,
        "cfg": {"task": task, "model": argparse.Namespace(**kept)},
        "model": weights,
        "optimizer_history": state["optimizer_history"],  # without these two fairseq takes the file for a very old one
        "extra_state": {"train_iterator": state["extra_state"]["train_iterator"]},
    }
    part = out.with_suffix(".part")
    torch.save(small, part)
    os.replace(part, out)


def run(command: str, words: Sequence[object], options: Mapping[str, object], text: bytes | None = None) -> bytes:
    """Run a command of this environment on `text` and return its output; without text, its output is notes.

    Raises:
        CalledProcessError: the command fails.
    """
    flags = [str(word) for name, value in options.items() for word in (f"--{name}", value)]
    program = [str(Path(sys.executable).with_name(command)), *map(str, words), *flags]
    output = sys.stderr if text is None else subprocess.PIPE
    return subprocess.run(program, input=text, stdout=output, check=True).stdout or b""  # noqa: S603, our own words


if __name__ == "__main__":
    main()
