"""Shards worked on by a pool of Ray actors. Ray only schedules; which shards are done is read from our own logs."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from align.batch.plan import load_plan
from align.batch.shard import Outcome, attempt
from data.errors import AlignError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from align.batch.engines import Load
    from align.batch.plan import Plan


class ShardActor:
    """Loads the model once, then takes one shard after the other. The folder must be the same on every machine."""

    def __init__(self, folder: str, load: Load, tries: int) -> None:
        from pathlib import Path

        self.plan, self.tries = load_plan(Path(folder)), tries
        self.align = load(self.plan.job)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        number = int(batch["shard"][0])
        try:
            outcome = asdict(attempt(self.plan, number, self.align, self.tries))
        except AlignError as error:  # for the whole run
            outcome = {"stop": str(error)}
        return {"outcome": [outcome]}
