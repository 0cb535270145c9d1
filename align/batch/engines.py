"""Where shards are worked on. All engines do the same to each shard; they differ in who does it."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable
from typing import TYPE_CHECKING, Protocol, TypeAlias

from align.batch.shard import Outcome, attempt
from data.errors import AlignError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from align.batch.job import Align, Job
    from align.batch.plan import Plan

    Load = Callable[[Job], Align]

Said: TypeAlias = Outcome | str | None
"""What a worker says: how a shard ended, why the whole run must stop, or None: it is ready for its first shard."""


class Engine(Protocol):
    """Aligns shards and tells, in any order, how each ended. `load` gives what aligns, `tries` is as in `attempt`.

    Raises:
        AlignError: what stops the whole run: a model that cannot be loaded, output that cannot be written.
    """

    def __call__(self, plan: Plan, numbers: Sequence[int], load: Load, tries: int) -> Iterator[Outcome]: ...


def local(plan: Plan, numbers: Sequence[int], load: Load, tries: int) -> Iterator[Outcome]:
    """One after the other in this process."""
    align = load(plan.job)
    for number in numbers:
        yield attempt(plan, number, align, tries)


class WorkerDied(Exception):  # noqa: N818 (an event, not an error)
    """Instead of what a worker would say; tells how it ended."""


class Crew(Protocol):
    """Workers, each with a model of its own, known by keys."""

    def hire(self) -> Hashable:
        """Begin to make a worker ready."""

    def give(self, worker: Hashable, shard: int) -> None:
        """Let a worker that is ready and free align a shard."""

    def listen(self) -> Iterable[tuple[Hashable, Said | WorkerDied]]:
        """Wait until some workers have something to say."""


def schedule(crew: Crew, workers: int, numbers: Iterable[int], tries: int) -> Iterator[Outcome]:
    """Hand out shards to up to `workers` workers. One that dies is replaced, and its shard tried again.

    Raises:
        AlignError: a worker says that the run must stop, or dies before it is ready.
    """
    waiting = deque(numbers)
    busy: dict[Hashable, int] = {}
    free: set[Hashable] = set()
    coming: set[Hashable] = set()
    deaths: Counter[int] = Counter()
    while waiting or busy:
        while len(busy) + len(free) + len(coming) < min(workers, len(waiting) + len(busy)):
            coming.add(crew.hire())
        while free and waiting:
            worker = free.pop()
            busy[worker] = waiting.popleft()
            crew.give(worker, busy[worker])
        for worker, said in crew.listen():
            shard = busy.pop(worker, None)
            if isinstance(said, str):
                raise AlignError(said)
            if not isinstance(said, WorkerDied):
                coming.discard(worker)
                free.add(worker)
                if said is not None:
                    yield said
                continue
            if worker in coming:
                raise AlignError(f"a worker ended {said} before it was ready; each needs memory for its own model")
            free.discard(worker)
            if shard is None:
                continue
            deaths[shard] += 1
            if deaths[shard] < tries:
                waiting.append(shard)
            else:
                yield Outcome(shard, 0.0, error=f"its worker ended {said}, {tries} times")
