"""The logs of runs: one JSON line for each shard that ended, never two run together."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING

from align.batch.shard import Outcome
from data.errors import AlignError, DataError
from data.streams import sync_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from align.batch.plan import Plan


def append(path: Path, outcome: Outcome) -> None:
    """Add a line and make it last. A line that an earlier process left unfinished is dropped first.

    Raises:
        AlignError: it cannot be written.
    """
    fresh = not path.exists()
    fields = {name: value for name, value in asdict(outcome).items() if value is not None}
    line = json.dumps({**fields, "pairs": outcome.pairs, "time": datetime.now(UTC).isoformat(timespec="seconds")})
    try:
        with open(path, "ab+") as file:
            _drop_unfinished(file)
            file.write(line.encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        if fresh:
            sync_folder(path.parent)
    except OSError as error:
        raise AlignError(f"{path}: cannot be written: {error.strerror}") from error


def outcomes(plan: Plan) -> dict[int, Outcome]:
    """How each shard ended, of all runs: as finished if it ever was, else with its last error.

    Raises:
        DataError: a line that is not one of `append`.
    """
    found: dict[int, Outcome] = {}
    for path in sorted((plan.folder / "runs").glob("*.jsonl")):
        for outcome in _read(path):
            if outcome.error is None or outcome.shard not in found or found[outcome.shard].error is not None:
                found[outcome.shard] = outcome
    return found


def _read(path: Path) -> Iterator[Outcome]:
    raw = path.read_bytes()
    for number, line in enumerate(raw[: _whole(raw)].splitlines(), 1):
        try:
            fields = json.loads(line)
            fields.pop("pairs"), fields.pop("time")
            yield Outcome(**fields)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(f"not a line of a run's log ({error})", path, number) from None


def _drop_unfinished(file: IO[bytes]) -> None:
    """Cut a log that is open for appending after its last line end."""
    if file.tell():
        file.seek(-1, os.SEEK_END)
        if file.read() != b"\n":
            file.seek(0)
            file.truncate(_whole(file.read()))


def _whole(raw: bytes) -> int:
    """The number of bytes up to the last line end."""
    return raw.rfind(b"\n") + 1
