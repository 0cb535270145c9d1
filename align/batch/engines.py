"""Where shards are worked on: in this process, in several, or by Ray. All do the same to each shard."""

from __future__ import annotations

import multiprocessing
import signal
from collections import Counter, deque
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Protocol, cast

from align.batch.plan import load_plan
from align.batch.shard import Outcome, attempt
from data.errors import AlignError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess
    from pathlib import Path

    from align.batch.job import Align, Job
    from align.batch.plan import Plan

    Load = Callable[[Job], Align]


class Engine(Protocol):
    """Aligns shards and tells, in any order, how each ended. `load` gives what aligns, `tries` as in `attempt`.

    Raises:
        AlignError: what stops the whole run: a model that cannot be loaded, output that cannot be written.
    """

    def __call__(self, plan: Plan, numbers: Sequence[int], load: Load, tries: int) -> Iterator[Outcome]: ...


def local(plan: Plan, numbers: Sequence[int], load: Load, tries: int) -> Iterator[Outcome]:
    """One after the other in this process."""
    align = load(plan.job)
    for number in numbers:
        yield attempt(plan, number, align, tries)


@dataclass
class _Worker:
    process: SpawnProcess
    shard: int | None = None
    ready: bool = False


@dataclass(frozen=True)
class Processes:
    """`workers` processes with models of their own. One that dies is replaced, and its shard tried again."""

    workers: int

    def __call__(self, plan: Plan, numbers: Sequence[int], load: Load, tries: int) -> Iterator[Outcome]:
        waiting = deque(numbers)
        crew: dict[Connection, _Worker] = {}
        deaths: Counter[int] = Counter()
        try:
            while remaining := len(waiting) + sum(worker.shard is not None for worker in crew.values()):
                while len(crew) < min(self.workers, remaining):
                    _hire(crew, plan.folder, load, tries)
                for connection, worker in crew.items():
                    if worker.ready and worker.shard is None and waiting:
                        worker.shard = waiting.popleft()
                        with suppress(BrokenPipeError):  # dead; the next turn finds out
                            connection.send(worker.shard)
                for ready in wait(list(crew)):
                    outcome = _hear(crew, cast("Connection", ready), tries, deaths, waiting)
                    if outcome:
                        yield outcome
        finally:
            for connection, worker in crew.items():
                worker.process.terminate()
                worker.process.join()
                connection.close()


def _hire(crew: dict[Connection, _Worker], folder: Path, load: Load, tries: int) -> None:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, folder, load, tries), daemon=True)
    process.start()
    theirs.close()  # so that the end of the worker is the end of the connection
    crew[ours] = _Worker(process)


def _hear(
    crew: dict[Connection, _Worker], connection: Connection, tries: int, deaths: Counter[int], waiting: deque[int]
) -> Outcome | None:
    """Take in what a worker says: it is ready, a shard ended, the run must stop; or that it died."""
    worker = crew[connection]
    try:
        said: Outcome | str | None = connection.recv()
    except (EOFError, ConnectionResetError):
        said = _bury(crew, connection, tries, deaths, waiting)
        if said is None:
            return None
    if isinstance(said, str):
        raise AlignError(said)
    worker.ready, worker.shard = True, None
    return said


def _bury(
    crew: dict[Connection, _Worker], connection: Connection, tries: int, deaths: Counter[int], waiting: deque[int]
) -> Outcome | str | None:
    worker = crew.pop(connection)
    connection.close()
    worker.process.join()
    code = worker.process.exitcode
    how = f"by signal {signal.Signals(-code).name}" if code is not None and code < 0 else f"with exit code {code}"
    if worker.shard is None:
        return f"a worker ended {how} before it was ready; each needs memory for a model of its own"
    deaths[worker.shard] += 1
    if deaths[worker.shard] < tries:
        waiting.appendleft(worker.shard)
        return None
    return Outcome(worker.shard, 0.0, error=f"its worker ended {how}, {tries} times")


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
