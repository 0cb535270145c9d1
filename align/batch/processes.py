"""Shards worked on by processes of this machine."""

from __future__ import annotations

import multiprocessing
import signal
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, cast

from align.batch.engines import WorkerDied, schedule
from align.batch.plan import load_plan
from align.batch.shard import attempt
from data.errors import AlignError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess
    from pathlib import Path

    from align.batch.engines import Load, Said
    from align.batch.plan import Plan
    from align.batch.shard import Outcome


@dataclass(frozen=True)
class Processes:
    """An engine of `workers` processes."""

    workers: int

    def __call__(self, plan: Plan, numbers: Sequence[int], load: Load, tries: int) -> Iterator[Outcome]:
        crew = _Crew(plan.folder, load, tries)
        try:
            yield from schedule(crew, self.workers, numbers, tries)
        finally:
            crew.dismiss()


class _Crew:
    """Workers are known by the connections to them."""

    def __init__(self, *work: object) -> None:
        self.work = work
        self.processes: dict[Connection, SpawnProcess] = {}

    def hire(self) -> Connection:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs, *self.work), daemon=True)
        process.start()
        theirs.close()  # so that the end of the worker is the end of the connection
        self.processes[ours] = process
        return ours

    def give(self, worker: Any, shard: int) -> None:
        with suppress(BrokenPipeError):  # it died; `listen` will tell
            worker.send(shard)

    def listen(self) -> Iterator[tuple[Connection, Said | WorkerDied]]:
        for ready in wait(list(self.processes)):
            worker = cast("Connection", ready)
            try:
                yield worker, worker.recv()
            except (EOFError, ConnectionResetError):
                process = self.processes.pop(worker)
                process.join()
                worker.close()
                yield worker, WorkerDied(_ending(process.exitcode or 0))

    def dismiss(self) -> None:
        for process in self.processes.values():
            process.terminate()
            process.join()


def _ending(code: int) -> str:
    return f"by signal {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"


def _work(connection: Connection, folder: Path, load: Load, tries: int) -> None:
    """What a worker does: get ready, then one shard after the other until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the run ends its workers
    try:
        plan = load_plan(folder)
        align = load(plan.job)
        connection.send(None)
        while True:
            connection.send(attempt(plan, connection.recv(), align, tries))
    except (EOFError, BrokenPipeError):
        return
    except AlignError as error:
        connection.send(str(error))
