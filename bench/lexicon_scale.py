"""Time and peak memory of `nmt-align lexicon` on a large corpus, for both engines.

    python -m bench.lexicon_scale -s src -t tgt -a links --copies 500

The corpus is the given text many times over. So that its vocabulary grows as that of a real one does, words that
occur only once in the text get the number of the copy attached. Everything is written to a folder for temporary
files (TMPDIR), which needs about 400 bytes a pair, and as much again for duckdb.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from data.bitext import tokenize
from data.streams import read_lines

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_RUN = "from align.lexicon_commands import lexicon; lexicon()"


@click.command()
@click.option("-s", "--source", type=FILE, required=True)
@click.option("-t", "--target", type=FILE, required=True)
@click.option("-a", "--links", type=FILE, required=True)
@click.option("--copies", type=click.IntRange(1), default=10, show_default=True)
@click.option(
    "--engine", "engines", type=click.Choice(["memory", "duckdb"]), multiple=True, default=("memory", "duckdb")
)
def main(source: Path, target: Path, links: Path, copies: int, engines: tuple[str, ...]) -> None:
    """Measure the lexicon command on COPIES of a text."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        pairs = multiply(source, folder / "source", copies)
        multiply(target, folder / "target", copies)
        with open(folder / "links", "wb") as out:
            for _ in range(copies):
                out.write(links.read_bytes())
        for engine in engines:
            out_file = folder / f"{engine}.tsv"
            arguments = ["-s", folder / "source", "-t", folder / "target", "-a", folder / "links", "-o", out_file]
            seconds, peak = measured([sys.executable, "-c", _RUN, *map(str, arguments), "--engine", engine])
            entries = sum(1 for _ in read_lines(out_file)) - 1
            click.echo(f"{engine}: {pairs} pairs, {entries} entries, {seconds:.0f} s, peak {peak / 2**30:.2f} GiB")
        outputs = [(folder / f"{engine}.tsv").read_bytes() for engine in engines] if copies <= 10 else []
        if len(outputs) == 2:
            click.echo("same output" if outputs[0] == outputs[1] else "DIFFERENT output")


def multiply(path: Path, out: Path, copies: int) -> int:
    """Write `copies` of a text; returns the number of lines."""
    lines = [tokenize(text) for _, text in read_lines(path)]
    frequency = Counter(word for line in lines for word in line)
    once = {word for word, n in frequency.items() if n == 1}
    with open(out, "w", encoding="utf-8", newline="\n") as file:
        for copy in range(copies):
            for line in lines:
                file.write(" ".join(f"{word}_{copy}" if word in once else word for word in line) + "\n")
    return len(lines) * copies


def measured(command: list[str]) -> tuple[float, int]:
    """Seconds and peak resident bytes of a command; its temporary files count for neither."""
    start = time.perf_counter()
    process = subprocess.Popen(command)  # noqa: S603 (our own command)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return time.perf_counter() - start, usage.ru_maxrss * 1024


if __name__ == "__main__":
    main()
