"""`python -m tests.align.batch.dying FOLDER N`: run a batch and be killed by SIGKILL at the Nth step.

Steps are writes (of which a half gets through), calls of fsync and of replace. N = 0 prints how many steps there are.
"""

from __future__ import annotations

import builtins
import io
import os
import signal
import sys
from pathlib import Path

from align.batch import journal
from align.batch.engines import local
from align.batch.plan import load_plan
from align.batch.run import run_batch
from data import streams
from tests.align.batch import stub

steps = 0


def step(last: int) -> bool:
    global steps
    steps += 1
    return steps == last


def main(folder: str, last: int) -> None:
    class Dying(io.FileIO):
        def write(self, data) -> int:
            if step(last):
                super().write(bytes(data)[: len(data) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return super().write(data)

    def dying_open(path, mode="r", **more):
        if "x" in mode or "a" in mode:
            kind = io.BufferedRandom if "+" in mode else io.BufferedWriter
            return kind(Dying(path, mode.replace("b", "")), buffer_size=64)
        return builtins.open(path, mode, **more)

    def before(function):
        def call(*arguments):
            if step(last):
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments)

        return call

    streams.open = journal.open = dying_open
    os.fsync, os.replace = before(os.fsync), before(os.replace)
    run_batch(load_plan(Path(folder)), range(1, 6), local, load=stub.load)
    print(steps)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
