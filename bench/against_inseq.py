"""The same Hugging Face model and pairs through nmt-align and through inseq."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from bench.gradients import score
from bench.measure import measure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from align.models.base import TranslationModel
    from data.bitext import Pair

# A method of inseq, and the same question asked of nmt-align.
METHODS = {
    "attention": "attention:layer=-1",
    "saliency": "gradient-norm:norm=l2",
    "input_x_gradient": "gradient-x-input:sign=signed",
    "integrated_gradients": "integrated-gradients:steps=24:sign=signed",
}


def inseq(python: Path, folder: Path, model: TranslationModel, pairs: Sequence[Pair], rounds: int, batch: int) -> None:
    """Milliseconds a pair of both, each with as many threads as PyTorch takes here."""
    encoded = [model.encode_pair(pair) for pair in pairs]
    ours = {spec: (lambda spec=spec: score(model, encoded, spec)) for spec in (*METHODS.values(), "smoothgrad")}
    times = measure(ours, rounds)
    theirs = _inseq_seconds(python, folder, pairs, batch)
    for name, spec in METHODS.items():
        _line(f"inseq {name}", theirs[name], theirs[name], len(pairs), f"inseq {name}")
        _line(f"nmt-align {spec}", times[spec], theirs[name], len(pairs), f"inseq {name}")
    single = theirs["input_x_gradient"]
    _line("nmt-align smoothgrad (30 samples)", times["smoothgrad"], single, len(pairs), "inseq input_x_gradient")


def _line(name: str, seconds: float, base: float, count: int, against: str) -> None:
    print(f"  {name:46s} {1000 * seconds / count:10.3f} ms a pair  {base / seconds:8.2f} x {against}")


def _inseq_seconds(python: Path, folder: Path, pairs: Sequence[Pair], batch: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as temporary:
        text = Path(temporary) / "pairs.tsv"
        text.write_text("".join(f"{' '.join(p.source)}\t{' '.join(p.target)}\n" for p in pairs), encoding="utf-8")
        script = Path(__file__).with_name("inseq_peer.py")
        command = [str(python), str(script), str(folder), str(text), str(torch.get_num_threads()), str(batch), *METHODS]
        result = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(result.stdout.splitlines()[-1])
    return found
