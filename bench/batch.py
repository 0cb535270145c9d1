"""What `nmt-align batch` costs beside bare computation, what more processes give, and whether memory stays flat.

    python -m bench.batch -m en-fr.pt -s src -t tgt --pairs 20000 --engine local --engine 1 --engine 2 --engine ray

The corpus is the given text over and over, gzip or plain. All engines must give the same bytes. In the engine `local`,
which is this process, the processor time inside the model is told from all that is around it (plan, read, write,
checksums, logs, merge), which other programs on the machine disturb least. For engines of processes there are
pairs a second from the end of the first shard on, so without loading the model, and the processor time of all workers,
with loading.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import resource
import signal
import time
from itertools import chain, repeat
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from align.batch.engines import local
from align.batch.job import load
from align.batch.merge import Outputs, merge
from align.batch.plan import load_plan
from align.batch.processes import Processes
from align.batch.ray_engine import RayActors
from align.batch.run import run_batch
from align.batch_command import batch
from data.streams import read_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from align.batch.engines import Engine
    from align.batch.job import Align, Job
    from align.batch.plan import Plan
    from align.batch.run import Progress
    from align.batch.shard import Record
    from data.bitext import Pair

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
PAGE = resource.getpagesize()
ENGINES = "local, a number of processes, ray (2 workers), or ray-killed: one of them is killed after a quarter."


@click.command()
@click.option("-m", "--model", type=FILE, required=True)
@click.option("-s", "--source", type=FILE, required=True)
@click.option("-t", "--target", type=FILE, required=True)
@click.option("--method", default="attention:position=awi", show_default=True)
@click.option("--pairs", type=click.IntRange(1), default=20_000, show_default=True)
@click.option("--shard-size", type=click.IntRange(1), default=1000, show_default=True)
@click.option("--engine", "engines", multiple=True, default=("local",), help=ENGINES)
@click.option("--lexicon", is_flag=True, help="With lexicon counts on the way.")
def main(
    model: Path,
    source: Path,
    target: Path,
    method: str,
    pairs: int,
    shard_size: int,
    engines: tuple[str, ...],
    lexicon: bool,
) -> None:
    """Measure."""
    hashes = set()
    with TemporaryDirectory() as name:
        top = Path(name)
        text = [repeated(path, top, pairs) for path in (source, target)]
        options = ["-m", model, "--method", method, "--shard-size", shard_size, *lexicon * ["--lexicon", "scores"]]
        planned_by(top / "once", [repeated(path, top, 1, "once") for path in (source, target)], options)  # imports
        for engine in engines:
            folder = top / engine
            start, clock = time.process_time(), time.perf_counter()
            plan = planned_by(folder, text, options)
            planned = time.process_time() - start - loading(plan)
            click.echo(
                f"{engine}: planned in {1000 * planned / pairs:.3f} ms a pair, {size(folder) / pairs:.0f} bytes a pair"
            )
            click.echo(f"{engine}: {measured(plan, engine, planned)}; {time.perf_counter() - clock:.0f} s in all")
            files = [folder / part for part in ("merged", "scores")]
            hashes.add(hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest())
    click.echo(f"same bytes: {next(iter(hashes))}" if len(hashes) == 1 else "DIFFERENT bytes")


def planned_by(folder: Path, text: list[Path], options: list[object]) -> Plan:
    """A plan made by the command."""
    command = ["plan", folder, "-s", text[0], "-t", text[1], *options]
    batch.main(list(map(str, command)), standalone_mode=False)
    return load_plan(folder)


def loading(plan: Plan) -> float:
    """Processor time of loading the model, which planning does too."""
    start = time.process_time()
    load(plan.job)
    return time.process_time() - start


def repeated(path: Path, folder: Path, pairs: int, name: str = "text") -> Path:
    """A file in `folder` with the lines of a text over and over, compressed."""
    lines = [text + "\n" for _, text in read_lines(path)]
    out = folder / f"{path.name}.{name}.gz"
    with gzip.open(out, "wt", encoding="utf-8", newline="\n") as file:
        file.writelines(line for line, _ in zip(chain.from_iterable(repeat(lines)), range(pairs), strict=False))
    return out


def measured(plan: Plan, name: str, planned: float) -> str:
    """Run and merge a plan by one engine, and tell what that took."""
    inside = Inside()
    with_ray = name in ("ray", "ray-killed")
    engine: Engine = local if name == "local" else RayActors(2, None) if with_ray else Processes(int(name))
    align = inside.load(plan.job) if name == "local" else None
    ends: list[float] = []
    memory: list[int] = []

    def report(progress: Progress) -> None:
        ends.append(time.perf_counter())
        memory.append(int(Path("/proc/self/statm").read_text().split()[1]) * PAGE)
        if name == "ray-killed" and len(ends) == max(1, len(plan.shards) // 4):
            kill_an_actor()

    start = time.process_time()
    run_batch(plan, range(1, len(plan.shards) + 1), engine, load=(lambda job: align) if align else load, report=report)
    ran = time.process_time() - start
    start = time.process_time()
    merge(plan, Outputs(links=f"{plan.folder}/merged", scores=f"{plan.folder}/scores"))
    merged = time.process_time() - start
    each = 1000 / plan.pairs
    storage = f"{size(plan.folder) / plan.pairs:.0f} bytes a pair on disk, merged files among them"
    ending = f"merge {each * merged:.3f} ms a pair, {storage}"
    if align:
        around = planned + ran + merged - inside.seconds
        quarters = ", ".join(f"{memory[max(0, len(memory) * k // 4 - 1)] / 2**20:.0f}" for k in range(1, 5))
        share = f"all around it {100 * around / inside.seconds:.1f} % of it"
        return (
            f"model {each * inside.seconds:.3f} ms a pair, run around it {each * (ran - inside.seconds):.3f} ms, "
            f"{ending}; {share}; resident MiB after each quarter {quarters}"
        )
    workers = resource.getrusage(resource.RUSAGE_CHILDREN)
    rate = (plan.pairs - plan.shards[0].pairs) / (ends[-1] - ends[0]) if len(ends) > 1 else float("nan")
    used = workers.ru_utime + workers.ru_stime
    return f"{rate:,.0f} pairs/s, {used:.1f} s of processor time in workers so far, {ending}"


def kill_an_actor() -> None:
    """Kill a Ray worker of ours that is aligning: its parent is a raylet, whose parent is this process."""
    for place in Path("/proc").glob("[0-9]*"):
        try:
            working = (place / "cmdline").read_bytes().startswith(b"ray::_Actor")
            parent = _parent(place)
            if working and _parent(Path("/proc") / str(parent)) == os.getpid():
                os.kill(int(place.name), signal.SIGKILL)
                click.echo(f"killed worker {place.name}")
                return
        except (FileNotFoundError, ProcessLookupError):
            continue
    raise RuntimeError("no worker of Ray found to kill")


def _parent(place: Path) -> int:
    return int((place / "stat").read_text().rpartition(")")[2].split()[1])


class Inside:
    """The processor time that passes inside a function that aligns."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def load(self, job: Job) -> Align:
        align = load(job)

        def timed(pairs: Sequence[Pair]) -> Iterator[Record]:
            records = iter(align(pairs))
            while True:
                start = time.process_time()
                record = next(records, None)
                self.seconds += time.process_time() - start
                if record is None:
                    return
                yield record

        return timed


def size(folder: Path) -> int:
    """Bytes of all files under a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    main()
