"""Time, memory and disk that `nmt-align lexicon` takes as a corpus grows, for both engines.

    python -m bench.lexicon_scale --pairs 100000 --pairs 1000000

The text is made by `bench.zipf_text`, so that its vocabulary and its different pairs never stop growing. Everything
is written to a folder for temporary files (TMPDIR): some 300 bytes a pair for text and links, the lexicon, and what
duckdb spills. Seconds are of the processor.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread

import click

from bench.zipf_text import write
from data.streams import read_lines

_RUN = "from align.lexicon_commands import lexicon; lexicon()"


@click.command()
@click.option("--pairs", "sizes", type=click.IntRange(1), multiple=True, default=(100_000,), show_default=True)
@click.option(
    "--engine", "engines", type=click.Choice(["memory", "duckdb"]), multiple=True, default=("memory", "duckdb")
)
@click.option("--context", type=click.IntRange(0), default=0, show_default=True, help="Examples of each entry.")
def main(sizes: tuple[int, ...], engines: tuple[str, ...], context: int) -> None:
    """Measure the lexicon command on texts of several sizes."""
    for pairs in sizes:
        with TemporaryDirectory() as name:
            folder = Path(name)
            write(folder, pairs)
            for engine in engines:
                click.echo(f"{engine}: {pairs:,} pairs, {measured(folder, engine, context)}")
            outputs = [folder / f"{engine}.tsv" for engine in engines]
            if len(outputs) == 2:
                same = subprocess.run(["cmp", "-s", *outputs], check=False).returncode == 0  # noqa: S607
                click.echo("same output" if same else "DIFFERENT output")


def measured(folder: Path, engine: str, context: int) -> str:
    """What counting the text in `folder` takes: peak resident memory, processor time, most bytes on disk."""
    out = folder / f"{engine}.tsv"
    files = ["-s", folder / "source", "-t", folder / "target", "-a", folder / "links", "-o", out]
    command = [sys.executable, "-c", _RUN, *map(str, files), "--engine", engine, "--context", str(context)]
    spill = folder / "spill"
    spill.mkdir(exist_ok=True)
    with watched(spill) as most:
        process = subprocess.Popen(command, env={**os.environ, "TMPDIR": str(spill)})
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    entries = sum(1 for _ in read_lines(out)) - 1
    return (
        f"{entries:,} entries, peak {usage.ru_maxrss / 2**20:.2f} GiB, {usage.ru_utime + usage.ru_stime:.0f} s, "
        f"{most[0] / 2**30:.2f} GiB of temporary files"
    )


class watched:  # noqa: N801 (a context manager)
    """The most bytes that the files under `folder` have, looked at twice a second."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.most, self.over = folder, [0], Event()
        self.thread = Thread(target=self._watch)

    def _watch(self) -> None:
        while not self.over.wait(0.5):
            self.most[0] = max(self.most[0], _size(self.folder))

    def __enter__(self) -> list[int]:
        self.thread.start()
        return self.most

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()


def _size(folder: Path) -> int:
    """Bytes of all files under `folder`, some of which may be just going."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:
            continue
    return total


if __name__ == "__main__":
    main()
