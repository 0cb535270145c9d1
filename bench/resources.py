"""Start-up time of commands, and peak memory as the corpus grows."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from data.bitext import Pair

RUN = [sys.executable, "-c", "from align.cli import main; main()"]


def startup(rounds: int) -> None:
    """Seconds until a command ends that has next to nothing to do, best of several, beside an empty Python."""
    with tempfile.TemporaryDirectory() as folder:
        gold = Path(folder) / "gold"
        gold.write_text("0-0 1-1\n", encoding="utf-8")
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "nmt-align --help": [*RUN, "--help"],
            "nmt-align score": [*RUN, "score", str(gold), str(gold)],
        }
        for name, command in commands.items():
            seconds = min(_seconds(command) for _ in range(rounds))
            print(f"  {name:46s} {seconds:10.3f} s")


def _seconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def memory(model: Path, text: Sequence[Pair], sizes: Sequence[int]) -> None:
    """Peak memory of `nmt-align run` with attention on corpora of growing size, made of the text over and over."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / side for side in ("source", "target")]
        for size in sizes:
            pairs = list(islice(cycle(text), size))
            for file, side in zip(files, ("source", "target"), strict=True):
                file.write_text("".join(" ".join(getattr(pair, side)) + "\n" for pair in pairs), encoding="utf-8")
            command = [*RUN, "run", "-m", str(model), "-s", str(files[0]), "-t", str(files[1])]
            peak = _peak([*command, "--method", "attention:layer=0", "-o", os.devnull, "--threads", "1"])
            print(f"  {size:8d} pairs {peak / 2**20:30.0f} MiB")


def _peak(command: list[str]) -> int:
    """Largest resident set of a command, in bytes. A small process starts it: children begin with their parent's."""
    script = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stderr=subprocess.DEVNULL); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    done = subprocess.run([sys.executable, "-c", script, *command], check=True, stdout=subprocess.PIPE, text=True)
    return int(done.stdout) * 1024
