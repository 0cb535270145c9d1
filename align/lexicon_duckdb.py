"""Counts of large corpora in a duckdb database that spills to disk; needs the extra `duckdb`."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from align.lexicon import Entry, Key, Lexicon
from align.lexicon_input import UNIT
from data.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from duckdb import DuckDBPyConnection

MEMORY_LIMIT = "2GB"
"""What duckdb may hold in memory, beside the part that is being counted."""
_FETCH = 10_000

_ENTRIES = """
    WITH pairs AS (SELECT source, target, sum(count)::BIGINT AS count FROM counts GROUP BY source, target),
    sources AS (SELECT source, sum(count)::BIGINT AS source_count FROM counts GROUP BY source),
    targets AS (SELECT target, sum(count)::BIGINT AS target_count FROM counts GROUP BY target)
    SELECT source, target, count, source_count, target_count
    FROM pairs JOIN sources USING (source) JOIN targets USING (target)
    ORDER BY source, count DESC, target
"""


@contextmanager
def duckdb_table(memory_limit: str = MEMORY_LIMIT) -> Iterator[DuckdbTable]:
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
            yield DuckdbTable(connection)
        finally:
            connection.close()


class DuckdbTable:
    """Counts in a database; the same entries in the same order as `align.lexicon.MemoryTable` gives."""

    def __init__(self, connection: DuckDBPyConnection) -> None:
        self._connection = connection
        connection.execute("SET enable_progress_bar = false")
        connection.execute("CREATE TABLE counts (source VARCHAR, target VARCHAR, count BIGINT)")

    def add(self, counts: Mapping[Key, int]) -> None:
        import numpy as np

        part = {
            "source": np.array([source for source, _ in counts], dtype=object),
            "target": np.array([target for _, target in counts], dtype=object),
            "count": np.fromiter(counts.values(), np.int64, len(counts)),
        }
        if counts:
            self._connection.register("part", part)
            self._connection.execute("INSERT INTO counts SELECT source, target, count FROM part")
            self._connection.unregister("part")

    def lexicon(self, measures: tuple[str, ...] = ()) -> Lexicon:
        row = self._connection.execute("SELECT coalesce(sum(count), 0)::BIGINT FROM counts").fetchone()
        return Lexicon(self._entries(), (row[0] if row else 0) / UNIT, measures)

    def _entries(self) -> Iterator[Entry]:
        result = self._connection.execute(_ENTRIES)
        while rows := result.fetchmany(_FETCH):
            for source, target, *counts in rows:
                yield Entry(source, target, *(count / UNIT for count in counts))
