"""Shards worked on by Ray actors. Ray finds them a place; what is done is read from our own logs, not from Ray's."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from align.batch.engines import WorkerDied, schedule
from align.batch.plan import load_plan
from align.batch.shard import attempt
from data.errors import AlignError, UsageError

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence
    from pathlib import Path

    from align.batch.engines import Load, Said
    from align.batch.plan import Plan
    from align.batch.shard import Outcome

HERE = ("127.0.0.1", "localhost", "auto", "local")


@dataclass(frozen=True)
class RayActors:
    """An engine of `workers` actors of the cluster at `address`, or of one that is made on this machine.

    Each takes the CPUs that the job computes with, or a GPU. All machines must have the folder and the models under
    the same names.
    """

    workers: int
    address: str | None

    def __call__(self, plan: Plan, numbers: Sequence[int], load: Load, tries: int) -> Iterator[Outcome]:
        ray = _ray(self.address)
        begun = not ray.is_initialized()
        if begun:
            ray.init(
                self.address or "local", log_to_driver=False, include_dashboard=False if not self.address else None
            )
        try:
            on_gpu = str(plan.job.model_options["device"]).startswith("cuda")
            needs = {"num_cpus": plan.job.threads, "num_gpus": int(on_gpu)}
            yield from schedule(_Crew(ray, needs, plan.folder, load, tries), self.workers, numbers, tries)
        finally:
            if begun:
                ray.shutdown()


def _ray(address: str | None) -> Any:
    """The module. Whoever reaches a cluster without login runs code on it: refused beyond this machine."""
    try:
        import ray
    except ImportError:
        raise UsageError("--engine ray needs Ray: pip install 'nmt-align[ray]'") from None
    away = address is not None and address.rpartition("//")[2].partition(":")[0] not in HERE
    if away and os.environ.get("RAY_AUTH_MODE") == "disabled":
        raise UsageError(f"RAY_AUTH_MODE=disabled: whoever reaches {address} can run code there; set it to token")
    return ray


class _Actor:
    """One worker; `ready` loads the plan and the model."""

    def __init__(self, folder: Path, load: Load, tries: int) -> None:
        self.folder, self.load, self.tries = folder, load, tries

    def ready(self) -> str | None:
        try:
            self.plan = load_plan(self.folder)
            self.align = self.load(self.plan.job)
        except AlignError as error:
            return str(error)
        return None

    def run(self, shard: int) -> Outcome | str:
        try:
            return attempt(self.plan, shard, self.align, self.tries)
        except AlignError as error:
            return str(error)


class _Crew:
    """Workers are known by their actors; `calls` are those that have not been answered."""

    def __init__(self, ray: Any, needs: dict[str, int], *work: object) -> None:
        self.ray, self.needs, self.work = ray, needs, work
        self.calls: dict[Any, Any] = {}

    def hire(self) -> Hashable:
        actor = self.ray.remote(_Actor).options(**self.needs).remote(*self.work)
        self.calls[actor.ready.remote()] = actor
        return actor  # type: ignore[no-any-return]

    def give(self, worker: Any, shard: int) -> None:
        self.calls[worker.run.remote(shard)] = worker

    def listen(self) -> Iterator[tuple[Hashable, Said | WorkerDied]]:
        answered, _ = self.ray.wait(list(self.calls))
        for call in answered:
            worker = self.calls.pop(call)
            try:
                yield worker, self.ray.get(call)
            except self.ray.exceptions.RayActorError as error:
                yield worker, WorkerDied(f"({str(error).splitlines()[0]})")
