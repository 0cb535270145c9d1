"""Locks that end with the process that holds them, and who holds them."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING

from data.errors import AlignError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATIENCE = 0.5
"""Seconds to go on trying: who looks whether a lock is held holds it for a moment."""


@contextmanager
def locked(path: Path, what: str) -> Iterator[None]:
    """Hold `path` for the time of the block. Raises AlignError if another process holds it."""
    with open(path, "a+", encoding="utf-8") as file:
        deadline = time.monotonic() + PATIENCE
        while not _take(file, fcntl.LOCK_EX):
            if time.monotonic() > deadline:
                raise AlignError(_refusal(path, what))
            time.sleep(0.05)
        file.truncate(0)
        started = datetime.now(UTC).isoformat(timespec="seconds")
        json.dump({"host": socket.gethostname(), "pid": os.getpid(), "started": started}, file)
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)


@contextmanager
def locked_range(folder: Path, first: int, last: int) -> Iterator[Path]:
    """Hold shards `first` to `last`; yields the place for the log of this run.

    Every run first locks its own range, then looks at the others: of two that overlap at most one goes on.

    Raises:
        AlignError: another process holds some of the shards.
    """
    path = folder / f"{first:06}-{last:06}.lock"
    with locked(path, f"shards {first} to {last}"):
        for other in folder.glob("*.lock"):
            low, high = map(int, other.stem.split("-"))
            if other != path and low <= last and first <= high and holder(other) is not None:
                raise AlignError(_refusal(other, f"shards {low} to {high}"))
        yield path.with_suffix(".jsonl")


def holder(path: Path) -> dict[str, str | int] | None:
    """Host, pid and start of the process that holds `path`; None if nobody does."""
    with open(path, encoding="utf-8") as file:
        if _take(file, fcntl.LOCK_SH):
            return None
        try:
            found: dict[str, str | int] = json.loads(file.read())
        except ValueError:  # just taken, or just left
            return {}
        return found


def _take(file: IO[str], kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _refusal(path: Path, what: str) -> str:
    who = holder(path) or {}
    return (
        f"{what}: another process is at work there (host {who.get('host', 'unknown')}, process "
        f"{who.get('pid', 'unknown')}, since {who.get('started', 'just now')}). Wait for it or end it. The lock ends "
        f"with its process; if that is gone and the lock is still held, delete {path}"
    )
