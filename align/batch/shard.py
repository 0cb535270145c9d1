"""The unit of work: the text of a shard in, a file of records out, whole or absent."""

from __future__ import annotations

import gzip
import hashlib
import json
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from align.batch.counts import DIGITS, write_counts
from data.bitext import Pair
from data.errors import AlignError, DataError
from data.streams import write_bytes_atomically

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from align.batch.job import Align
    from align.batch.plan import Plan
    from data.links import Link


@dataclass(frozen=True, slots=True)
class Record:
    """What became of one pair; `matrix` is its soft alignment [J, I], if wanted."""

    id: int
    source: tuple[str, ...]
    target: tuple[str, ...]
    scores: Mapping[Link, float]
    status: str
    matrix: list[list[float]] | None = None

    def as_json(self, **more: str) -> str:
        """One line without its end. Links are [i, j, score]."""
        fields: dict[str, Any] = {
            "id": self.id,
            "src": self.source,
            "tgt": self.target,
            "links": [[i, j, round(score, DIGITS)] for (i, j), score in sorted(self.scores.items())],
            "status": self.status,
            **more,
        }
        if self.matrix is not None:
            fields["matrix"] = [[round(value, DIGITS) for value in row] for row in self.matrix]
        return json.dumps(fields, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def read_records(path: Path) -> Iterator[Record]:
    """The records of a finished shard."""
    for o in _json_lines(path):
        scores = {(i, j): score for i, j, score in o["links"]}
        yield Record(o["id"], tuple(o["src"]), tuple(o["tgt"]), scores, o["status"], o.get("matrix"))


@dataclass(frozen=True)
class Outcome:
    """How a shard ended: with the sha256 of its records and the number of pairs of each status, or an `error`.

    `counts` is the sha256 of its lexicon counts, if the job collects them.
    """

    shard: int
    seconds: float
    sha256: str | None = None
    statuses: dict[str, int] = field(default_factory=dict)
    error: str | None = None
    counts: str | None = None

    @property
    def pairs(self) -> int:
        return sum(self.statuses.values())


def attempt(plan: Plan, number: int, align: Align, tries: int) -> Outcome:
    """Align shard `number`; an error that comes `tries` times becomes its outcome.

    Raises:
        AlignError: the output cannot be written, which would hit every shard.
    """
    start = time.monotonic()
    message = ""
    for _ in range(tries):
        try:
            statuses = align_shard(plan, number, align)
        except Exception as error:
            if isinstance(error, AlignError) and isinstance(error.__cause__, OSError):
                raise
            message = str(error) if isinstance(error, AlignError) else f"{type(error).__name__}: {error}"
        else:
            counts = digest(plan.counts(number)) if plan.job.lexicon else None
            seconds = round(time.monotonic() - start, 3)
            return Outcome(number, seconds, digest(plan.part(number)), dict(statuses), counts=counts)
    return Outcome(number, round(time.monotonic() - start, 3), error=message)


def align_shard(plan: Plan, number: int, align: Align) -> Counter[str]:
    """Write the records of shard `number`, and its counts if wanted; returns how many pairs have each status.

    Raises:
        DataError: the text of the shard is not as it was planned.
        AlignError: what aligning raises, and a write that failed.
    """
    shard, text = plan.shards[number - 1], plan.text(number)
    if not text.is_file() or digest(text) != shard.sha256:
        raise DataError("is not as it was planned; plan in a new folder", text)
    pairs = [Pair(shard.first + n, tuple(o[0]), tuple(o[1])) for n, o in enumerate(_json_lines(text))]
    screened = {pair.id: status for pair in pairs if (status := plan.job.screen(pair))}
    aligned = iter(align([pair for pair in pairs if pair.id not in screened]))
    statuses: Counter[str] = Counter()
    with write_bytes_atomically(plan.part(number)) as out:
        for pair in pairs:
            status = screened.get(pair.id)
            record = Record(pair.id, pair.source, pair.target, {}, status) if status else next(aligned)
            if record.id != pair.id:
                raise AlignError(f"pair {pair.id + 1} came out as pair {record.id + 1}")
            statuses[record.status] += 1
            out.write(record.as_json().encode() + b"\n")
    if plan.job.lexicon:
        write_counts(plan.counts(number), read_records(plan.part(number)), plan.job.lexicon)
    return statuses


def digest(path: Path) -> str:
    """sha256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_text(path: Path, pairs: Iterable[Pair]) -> None:
    """Write the text of a shard, to be read by `align_shard`: its words, not its lines."""
    with write_bytes_atomically(path) as out:
        for pair in pairs:
            line = json.dumps([pair.source, pair.target], ensure_ascii=False, separators=(",", ":"))
            out.write(line.encode() + b"\n")


def _json_lines(path: Path) -> Iterator[Any]:
    with gzip.open(path, "rb") as file:
        for line in file:
            yield json.loads(line)
