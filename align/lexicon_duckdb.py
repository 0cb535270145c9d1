"""Counts of large corpora in a duckdb database that spills to disk; needs the extra `duckdb`."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from align.lexicon import NOWHERE, Entry, Key, Lexicon
from align.lexicon_input import UNIT
from data.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from duckdb import DuckDBPyConnection

    from align.lexicon_examples import Examples

MEMORY_LIMIT = "2GB"
"""What duckdb may hold in memory, beside the part that is being counted."""
_FETCH = 10_000

_ENTRIES = """
    WITH pairs AS (SELECT source, target, sum(count)::BIGINT AS count FROM counts GROUP BY source, target),
    sources AS (SELECT source, sum(count)::BIGINT AS source_count FROM counts GROUP BY source),
    targets AS (SELECT target, sum(count)::BIGINT AS target_count FROM counts GROUP BY target),
    found AS (SELECT source, target, min(DISTINCT place, $most) AS found FROM places GROUP BY source, target)
    SELECT source, target, count, source_count, target_count, found
    FROM pairs JOIN sources USING (source) JOIN targets USING (target) LEFT JOIN found USING (source, target)
    ORDER BY source, count DESC, target
"""


@contextmanager
def duckdb_table(examples: Examples | None = None, memory_limit: str = MEMORY_LIMIT) -> Iterator[DuckdbTable]:
    """A `Table` on disk, in the folder for temporary files (`TMPDIR`), gone after the block.

    Raises:
        UsageError: duckdb is not installed.
    """
    try:
        import duckdb
    except ImportError:
        raise UsageError("counting on disk needs duckdb: pip install 'nmt-align[duckdb]'") from None
    with TemporaryDirectory(prefix="nmt-align-") as folder:
        settings: dict[str, Any] = {"memory_limit": memory_limit, "temp_directory": str(Path(folder, "spill"))}
        connection = duckdb.connect(Path(folder, "counts.db"), config=settings)
        try:
            yield DuckdbTable(connection, examples)
        finally:
            connection.close()


class DuckdbTable:
    """Counts in a database; the same entries in the same order as `align.lexicon.MemoryTable` gives."""

    def __init__(self, connection: DuckDBPyConnection, examples: Examples | None = None) -> None:
        self._connection, self._examples = connection, examples
        connection.execute("SET enable_progress_bar = false")
        connection.execute("CREATE TABLE counts (source VARCHAR, target VARCHAR, count BIGINT)")
        connection.execute("CREATE TABLE places (source VARCHAR, target VARCHAR, place BIGINT)")

    def add(self, counts: Mapping[Key, int], places: Mapping[Key, Sequence[int]] = NOWHERE) -> None:
        self._insert("counts", counts.items())
        self._insert("places", [(key, place) for key, found in places.items() for place in found])

    def _insert(self, table: str, rows: Collection[tuple[Key, int]]) -> None:
        """Append rows of a pair and a number to one of our tables."""
        import numpy as np

        part = {
            "source": np.array([source for (source, _), _ in rows], dtype=object),
            "target": np.array([target for (_, target), _ in rows], dtype=object),
            "number": np.fromiter((number for _, number in rows), np.int64, len(rows)),
        }
        if rows:
            self._connection.register("part", part)
            self._connection.execute(f"INSERT INTO {table} SELECT source, target, number FROM part")  # noqa: S608
            self._connection.unregister("part")

    def lexicon(self, measures: tuple[str, ...] = ()) -> Lexicon:
        row = self._connection.execute("SELECT coalesce(sum(count), 0)::BIGINT FROM counts").fetchone()
        return Lexicon(self._entries(), (row[0] if row else 0) / UNIT, measures, self._examples)

    def _entries(self) -> Iterator[Entry]:
        most = self._examples.most if self._examples else 1
        result = self._connection.execute(_ENTRIES, {"most": most})
        while rows := result.fetchmany(_FETCH):
            for source, target, joint, left, right, places in rows:
                yield Entry(source, target, joint / UNIT, left / UNIT, right / UNIT, tuple(places or ()))
