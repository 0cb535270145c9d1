"""Run a batch: lock shards, skip what is done, hand the rest to an engine, and log how each shard ended."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

from align.batch.job import load as load_model
from align.batch.journal import append, outcomes
from align.batch.lock import locked_range
from align.batch.shard import digest

if TYPE_CHECKING:
    from collections.abc import Callable

    from align.batch.engines import Engine, Load
    from align.batch.plan import Plan
    from align.batch.shard import Outcome


@dataclass
class Progress:
    """How far a run is.

    Attributes:
        total, done: pairs of its shards, and of those that are finished.
        earlier: pairs among `done` that earlier runs finished.
        statuses: number of pairs of each status, in all that is done.
        failed: errors by shard.
    """

    total: int
    done: int = 0
    earlier: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    failed: dict[int, str] = field(default_factory=dict)
    start: float = field(default_factory=time.monotonic)

    def add(self, outcome: Outcome) -> None:
        self.done += outcome.pairs
        self.statuses.update(outcome.statuses)
        if outcome.error is not None:
            self.failed[outcome.shard] = outcome.error

    @property
    def rate(self) -> float:
        """Pairs a second in this run."""
        return (self.done - self.earlier) / max(time.monotonic() - self.start, 1e-9)

    def line(self) -> str:
        """For people: pairs, speed, time left, statuses."""
        left = self.total - self.done
        hours, seconds = divmod(round(left / self.rate), 3600) if self.rate else (0, 0)
        eta = f", {hours}:{seconds // 60:02}:{seconds % 60:02} left" if left and self.rate else ""
        counts = ", ".join(f"{count:,} {status}" for status, count in sorted(self.statuses.items()))
        failed = f", {len(self.failed)} shards failed" if self.failed else ""
        return f"{self.done:,} of {self.total:,} pairs, {self.rate:,.0f} pairs/s{eta}: {counts or 'none yet'}{failed}"


def run_batch(
    plan: Plan,
    numbers: range,
    engine: Engine,
    tries: int = 2,
    load: Load = load_model,
    report: Callable[[Progress], None] = lambda progress: None,
) -> Progress:
    """Align the shards `numbers` that are not finished; `report` hears of each that ends.

    A shard that fails `tries` times does not keep the others from being done; its error is in the result.

    Raises:
        AlignError: the plan does not fit any more, another process works on these shards, or output cannot be written.
    """
    plan.check_unchanged()
    if not numbers:
        return Progress(0)
    with locked_range(plan.folder / "runs", numbers[0], numbers[-1]) as log:
        _sweep(plan, numbers)
        done = {n: o for n, o in outcomes(plan).items() if n in numbers and is_whole(plan, o)}
        progress = Progress(sum(plan.shards[number - 1].pairs for number in numbers))
        for outcome in done.values():
            progress.add(outcome)
        progress.earlier = progress.done
        todo = [number for number in numbers if number not in done]
        try:
            for outcome in engine(plan, todo, load, tries) if todo else ():
                append(log, outcome)
                progress.add(outcome)
                report(progress)
        finally:
            _sweep(plan, numbers)
        return progress


def is_whole(plan: Plan, outcome: Outcome) -> bool:
    """Whether a shard is finished and its files are those that were logged."""
    files = [(plan.part(outcome.shard), outcome.sha256)]
    if plan.job.lexicon:
        files.append((plan.counts(outcome.shard), outcome.counts))
    return outcome.error is None and all(path.is_file() and digest(path) == sha for path, sha in files)


def _sweep(plan: Plan, numbers: range) -> None:
    """Remove what killed workers left half written."""
    for path in chain(*(file.parent.glob(".*.tmp") for file in (plan.part(1), plan.counts(1)))):
        if int(path.name[1:7]) in numbers:
            path.unlink(missing_ok=True)
