"""Join the shards of a finished batch into the files that are wanted, in the order of the corpus."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from align.batch.counts import DIGITS
from align.batch.journal import outcomes
from align.batch.run import is_whole
from align.batch.shard import read_records
from data.corpus import pyarrow
from data.errors import AlignError, DataError, UsageError
from data.links import format_links
from data.streams import write_atomically, write_bytes_atomically

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from align.batch.plan import Plan
    from align.batch.shard import Record

    Write = Callable[[Record], object]

ROW_GROUP = 10_000
"""Pairs of a row group of a Parquet file."""


@dataclass(frozen=True)
class Outputs:
    """The files to write; `-` is standard output.

    Attributes:
        links: Pharaoh, line n for pair n.
        scores: as many numbers a line as there are links.
        statuses: one word a line.
        source_words, target_words: the words that links count, joined by spaces.
        jsonl: words, links with scores, status and signature of each pair.
        parquet: the same as a table.
    """

    links: str | None = None
    scores: str | None = None
    statuses: str | None = None
    source_words: str | None = None
    target_words: str | None = None
    jsonl: str | None = None
    parquet: str | None = None


def merge(plan: Plan, outputs: Outputs) -> Counter[str]:
    """Write `outputs`; returns how many pairs have each status.

    Raises:
        AlignError: shards that are not finished, or damaged.
        DataError: a shard whose records are not the pairs of its text.
    """
    check_complete(plan)
    statuses: Counter[str] = Counter()
    with ExitStack() as files:
        writers = list(_writers(files, outputs, plan.signature))
        for record in records(plan):
            statuses[record.status] += 1
            for write in writers:
                write(record)
    return statuses


def lexicon_counts(plan: Plan) -> list[Path]:
    """The lexicon counts of all shards, each as `nmt-align lexicon` writes them.

    Raises:
        UsageError: the job did not collect them.
        AlignError: shards that are not finished, or damaged.
    """
    if plan.job.lexicon is None:
        raise UsageError(f"{plan.folder}: planned without --lexicon; count its merged links instead")
    check_complete(plan)
    return [plan.counts(number) for number in range(1, len(plan.shards) + 1)]


def check_complete(plan: Plan) -> None:
    """Raise AlignError where shards are not finished or not as they were written."""
    plan.check_unchanged()
    ended = outcomes(plan)
    missing = [n for n in range(1, len(plan.shards) + 1) if n not in ended or ended[n].error is not None]
    if missing:
        raise AlignError(
            f"{plan.folder}: {len(missing)} of {len(plan.shards)} shards are not finished ({ranges(missing)}); "
            "`batch status` tells more, `batch run` goes on"
        )
    damaged = [n for n in range(1, len(plan.shards) + 1) if not is_whole(plan, ended[n])]
    if damaged:
        raise AlignError(
            f"{plan.folder}: the files of shards {ranges(damaged)} are not as they were written; `batch run` makes "
            "them again"
        )


def records(plan: Plan) -> Iterator[Record]:
    """All records, in order. Raises DataError where a shard holds other pairs than were planned."""
    for number, shard in enumerate(plan.shards, 1):
        expected = iter(range(shard.first, shard.first + shard.pairs))
        for record in read_records(plan.part(number)):
            if record.id != next(expected, None):
                raise DataError(f"pair {record.id + 1} is out of its place", plan.part(number))
            yield record
        if (absent := next(expected, None)) is not None:
            raise DataError(f"pair {absent + 1} is not there", plan.part(number))


def ranges(numbers: Iterable[int]) -> str:
    """`1, 5-7` for 1, 5, 6, 7."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ", ".join("-".join(map(str, run)) for run in runs)


def _writers(files: ExitStack, outputs: Outputs, signature: str) -> Iterator[Write]:
    """One function for each file that is wanted."""

    def lines(path: str | None, line: Callable[[Record], str]) -> Iterator[Write]:
        if path is not None:
            out = files.enter_context(write_atomically(path))
            yield lambda record: out.write(line(record) + "\n")

    yield from lines(outputs.links, lambda record: format_links(frozenset(record.scores)))
    yield from lines(outputs.scores, _scores)
    yield from lines(outputs.statuses, lambda record: record.status)
    yield from lines(outputs.source_words, lambda record: " ".join(record.source))
    yield from lines(outputs.target_words, lambda record: " ".join(record.target))
    yield from lines(outputs.jsonl, lambda record: record.as_json(method=signature))
    if outputs.parquet is not None:
        yield _parquet(files, outputs.parquet, signature)


def _scores(record: Record) -> str:
    return " ".join(f"{score:.{DIGITS}f}" for _, score in sorted(record.scores.items()))


def _parquet(files: ExitStack, path: str, signature: str) -> Write:
    arrow, parquet = pyarrow()
    link = arrow.struct([("i", arrow.int32()), ("j", arrow.int32()), ("score", arrow.float32())])
    words = arrow.list_(arrow.string())
    columns = [("id", arrow.int64()), ("src", words), ("tgt", words), ("links", arrow.list_(link))]
    schema = arrow.schema([*columns, ("status", arrow.string())], metadata={"method": signature})
    table = files.enter_context(parquet.ParquetWriter(files.enter_context(write_bytes_atomically(path)), schema))
    rows: list[dict[str, Any]] = []

    def flush() -> None:
        table.write_table(arrow.Table.from_pylist(rows, schema))
        rows.clear()

    def write(record: Record) -> None:
        links = [{"i": i, "j": j, "score": score} for (i, j), score in sorted(record.scores.items())]
        rows.append(
            {"id": record.id, "src": record.source, "tgt": record.target, "links": links, "status": record.status}
        )
        if len(rows) >= ROW_GROUP:
            flush()

    files.callback(flush)
    return write
