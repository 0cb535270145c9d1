"""What `nmt-align batch` costs beside bare computation, what more processes give, and whether memory stays flat.

    python -m bench.batch -m en-fr.pt -s src -t tgt --pairs 20000 --workers 2

The corpus is the given text over and over. All engines must give the same bytes. The cost of the machinery (plan, run
in this process, merge) is told in processor time, which other programs disturb least; speeds of engines are pairs a
second from the end of the first shard on, so without loading the model.
"""

from __future__ import annotations

import hashlib
import resource
import time
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from align.batch.engines import local
from align.batch.job import Job, load
from align.batch.merge import Outputs, merge
from align.batch.plan import make_plan
from align.batch.processes import Processes
from align.batch.ray_engine import RayActors
from align.batch.run import run_batch
from data.bitext import Pair, read_bitext
from data.corpus import Corpus

if TYPE_CHECKING:
    from align.batch.engines import Engine
    from align.batch.plan import Plan

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
OPTIONS = dict.fromkeys(
    "source_lang target_lang source_dict target_dict bpe_codes source_bpe_codes target_bpe_codes source_bpe_vocabulary "
    "target_bpe_vocabulary bpe_threshold sentencepiece source_sentencepiece target_sentencepiece".split()
) | {"input_kind": "words", "unspaced": "auto", "allow_download": False, "device": "cpu", "dtype": "float32"}


@click.command()
@click.option("-m", "--model", type=FILE, required=True)
@click.option("-s", "--source", type=FILE, required=True)
@click.option("-t", "--target", type=FILE, required=True)
@click.option("--method", default="attention:position=awi", show_default=True)
@click.option("--pairs", type=click.IntRange(1), default=20_000, show_default=True)
@click.option("--shard-size", type=click.IntRange(1), default=1000, show_default=True)
@click.option("--workers", type=click.IntRange(2), default=2, show_default=True)
@click.option("--ray", "with_ray", is_flag=True, help="Ray too.")
def main(
    model: Path, source: Path, target: Path, method: str, pairs: int, shard_size: int, workers: int, with_ray: bool
) -> None:
    """Measure."""
    text = list(read_bitext(source, target))
    settings = ("word", "argmax", 0.0, "mask", False, "grow-diag-final-and", 1000, 0.2, 1, None, None, False)
    job = Job(model.resolve(), None, OPTIONS, method, *settings)
    files = Corpus((str(source),), (str(target),))
    align = load(job)
    for _ in align(text[:100]):
        pass
    whole = corpus(text, pairs)
    start = time.process_time()
    for first in range(0, pairs, shard_size):
        for _ in align(whole[first : first + shard_size]):
            pass
    bare = time.process_time() - start
    click.echo(f"bare computation: {1000 * bare / pairs:.2f} ms a pair (processor time)")
    engines: dict[str, Engine] = {"local": partial(local)}
    engines |= {f"{count} processes": Processes(count) for count in (1, workers)}
    if with_ray:
        engines["ray"] = RayActors(workers, None)
    hashes = set()
    for name, engine in engines.items():
        with TemporaryDirectory() as folder:
            start, begun = time.perf_counter(), time.process_time()
            plan = make_plan(Path(folder), corpus(text, pairs), files, job, "bench", shard_size)
            planned = time.perf_counter() - start
            rate, memory = measured(plan, engine, (lambda job: align) if name == "local" else load)
            start = time.perf_counter()
            merge(plan, Outputs(links=f"{folder}/merged", scores=f"{folder}/scores"))
            merged = time.perf_counter() - start
            hashes.add(
                hashlib.sha256(Path(folder, "merged").read_bytes() + Path(folder, "scores").read_bytes()).digest()
            )
            used = time.process_time() - begun
        if name == "local":
            click.echo(f"batch: {1000 * used / pairs:.2f} ms a pair, {used / bare:.3f} times the bare computation")
        click.echo(f"{name}: {rate:,.0f} pairs/s; plan {planned:.1f} s, merge {merged:.1f} s; {memory}")
    click.echo("same bytes" if len(hashes) == 1 else "DIFFERENT bytes")


def corpus(text: list[Pair], pairs: int) -> list[Pair]:
    """The text over and over."""
    return [Pair(n, pair.source, pair.target) for n, pair in enumerate(islice(cycle(text), pairs))]


def measured(plan: Plan, engine: Engine, loading: object) -> tuple[float, str]:
    """Pairs a second from the end of the first shard on, and the peak of memory after a quarter and at the end."""
    times: list[float] = []
    peaks: list[float] = []

    def report(progress: object) -> None:
        times.append(time.perf_counter())
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)

    run_batch(plan, range(1, len(plan.shards) + 1), engine, load=loading, report=report)  # type: ignore[arg-type]
    rate = (plan.pairs - plan.shards[0].pairs) / (times[-1] - times[0])
    return rate, f"peak memory {peaks[len(peaks) // 4]:.0f} MiB after a quarter, {peaks[-1]:.0f} MiB at the end"


if __name__ == "__main__":
    main()
