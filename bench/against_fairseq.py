"""`nmt-align run` and `fairseq-generate --score-reference --print-alignment` as whole commands on the same pieces."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from align.models.fairseq import FairseqModel
from bench.measure import measure
from bench.resources import RUN

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from align.models.base import Encoded, TranslationModel

SIDES = {"src": "source", "tgt": "target"}
# Of the scorers that need no compiled code; batches of any size, as the usual ones drop sentences at the end.
PRINTED = "--score-reference --print-alignment --cpu --scoring chrf --required-batch-size-multiple 1"
OURS = ("attention:layer=-1", "attention-x-gradient")


def fairseq(model: TranslationModel, checkpoint: Path, pairs: Sequence[Encoded], count: int, rounds: int) -> None:
    """Seconds of both for `count` pairs, the given ones over and over, and for one pair, which is the start."""
    if not isinstance(model, FairseqModel):
        print("  needs a fairseq checkpoint")
        return
    with tempfile.TemporaryDirectory() as temporary:
        contenders: dict[str, Callable[[], object]] = {}
        for size in (1, count):
            folder = Path(temporary) / str(size)
            _write(model, list(islice(cycle(pairs), size)), folder)
            theirs = [sys.executable, "-m", "bench.fairseq_peer", str(folder / "bin"), "-s", "src", "-t", "tgt"]
            contenders[f"fairseq {size}"] = _command([*theirs, "--path", str(checkpoint), *PRINTED.split()])
            text = ["-s", str(folder / "text.src"), "-t", str(folder / "text.tgt"), "--input-kind", "@@"]
            for spec in OURS:
                run = [*RUN, "run", "-m", str(checkpoint), *text, "--method", spec, "-o", os.devnull]
                contenders[f"{spec} {size}"] = _command([*run, "--threads", str(torch.get_num_threads())])
        times = measure(contenders, rounds)
    whole, start = times[f"fairseq {count}"], times["fairseq 1"]
    for name in ("fairseq", *OURS):
        ours, begin = times[f"{name} {count}"], times[f"{name} 1"]
        print(f"  {name:28s} {ours:7.1f} s for {count} pairs  {whole / ours:6.2f} x fairseq", end="")
        print(f"; less the start of {begin:4.1f} s: {(whole - start) / (ours - begin):6.2f} x")


def _command(command: list[str]) -> Callable[[], object]:
    environment = {**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads())}
    return lambda: subprocess.run(
        command, check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


def _write(model: FairseqModel, pairs: Sequence[Encoded], folder: Path) -> None:
    """The pairs in pieces as text, and as fairseq's data."""
    folder.mkdir()
    prepare = [sys.executable, "-m", "fairseq_cli.preprocess", "--source-lang", "src", "--target-lang", "tgt"]
    prepare += ["--destdir", str(folder / "bin")]
    for side, name in SIDES.items():
        dictionary = getattr(model, f"{name}_dictionary")
        dictionary.save(str(folder / f"dict.{side}"))
        lines = (" ".join(dictionary[number] for number in getattr(pair, name)[:-1]) for pair in pairs)
        (folder / f"text.{side}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        prepare += [f"--{side}dict", str(folder / f"dict.{side}")]
    subprocess.run([*prepare, "--testpref", str(folder / "text")], check=True, capture_output=True)
