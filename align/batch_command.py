"""`nmt-align batch`: align whole corpora in shards that can be stopped, resumed and spread over machines."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from align.batch.counts import WEIGHTS
from align.options import ModelArguments, extraction_options, method_options, model_options
from data.corpus import Corpus
from data.errors import UsageError
from data.streams import STANDARD_STREAM, check_paths

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from align.batch.engines import Engine
    from align.batch.merge import Outputs
    from align.batch.plan import Plan
    from align.batch.run import Progress

F = TypeVar("F", bound="Callable[..., Any]")
FOLDER = click.Path(file_okay=False, path_type=Path)
_SECONDS = 5.0
"""Least time between two lines of progress."""


def _options(*options: Callable[[F], F]) -> Callable[[F], F]:
    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


corpus_options = _options(
    click.option("-s", "--source", multiple=True, metavar="FILE", help="Source sentences, one a line; repeatable."),
    click.option("-t", "--target", multiple=True, metavar="FILE", help="Target sentences, one file for each --source."),
    click.option("-i", "--input", "joint", multiple=True, metavar="FILE", help="Pairs as `source ||| target`."),
    click.option("--tsv", multiple=True, metavar="FILE", help="Pairs as columns separated by tabs."),
    click.option("--corpus", "files", multiple=True, metavar="FILE", help="Pairs as .jsonl, .parquet or .tmx."),
    click.option("--columns", default="1,2", show_default=True, help="Columns of --tsv, from 1."),
    click.option("--fields", default="src,tgt", show_default=True, help="Fields of JSONL and Parquet; a.b is b in a."),
    click.option("--languages", metavar="S,T", help="Languages of TMX, such as de,en."),
    click.option("--tokenize", metavar="S,T", help="Languages, such as de,en: tokenise raw text, with sacremoses."),
)
job_options = _options(
    method_options,
    extraction_options,
    click.option("--max-tokens", type=click.IntRange(1), metavar="N", help="Longer sides get the status too_long."),
    click.option("--max-ratio", type=click.FloatRange(1), metavar="R", help="More unequal sides get the status ratio."),
    click.option(
        "--lexicon",
        type=click.Choice(WEIGHTS),
        help="Count a lexicon on the way, for `nmt-align lexicon --merge FOLDER`: a link counts 1, or its score.",
    ),
    click.option("--matrices", is_flag=True, help="Keep soft alignments [J, I]; they show in --jsonl."),
    click.option("--shard-size", type=click.IntRange(1), default=10_000, show_default=True, help="Pairs of a shard."),
)
run_options = _options(
    click.option(
        "--engine", type=click.Choice(["local", "processes", "ray"]), help="Default: processes if --workers is above 1."
    ),
    click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Each has its own model."),
    click.option("--address", metavar="HOST:PORT", help="Of a Ray cluster (default: one on this machine)."),
    click.option("--tries", type=click.IntRange(1), default=2, show_default=True, help="Before a shard is given up."),
    click.option("--fail-on", multiple=True, metavar="STATUS", help="Exit with 1 if a pair ends as STATUS, e.g. oom."),
)
output_options = _options(
    click.option("-o", "--links", default="-", metavar="FILE", help="Links, Pharaoh format (default: stdout)."),
    click.option("--scores", metavar="FILE", help="The score of each link, one line a pair."),
    click.option("--statuses", metavar="FILE", help="The status of each pair, one a line."),
    click.option("--source-words", metavar="FILE", help="The source words that links count."),
    click.option("--target-words", metavar="FILE", help="The target words that links count."),
    click.option("--jsonl", metavar="FILE", help="Words, links, scores, status and settings of each pair."),
    click.option("--parquet", metavar="FILE", help="The same as a Parquet file."),
    click.option("--overwrite", is_flag=True, help="Replace existing output files."),
)


@click.group()
def batch() -> None:
    """Align a corpus of any size, in shards that can be stopped, resumed and spread over machines.

    `batch all` does everything, and goes on where it was stopped; `plan`, `run`, `status` and `merge` are its steps.
    """


@batch.command()
@click.argument("folder", type=FOLDER)
@model_options
@corpus_options
@job_options
def plan(folder: Path, model: ModelArguments, **values: Any) -> None:
    """Cut a corpus into shards in FOLDER and write down what is to be done with them."""
    made = _plan(folder, model, _corpus(values), values)
    click.echo(f"{folder}: {made.pairs:,} pairs in {len(made.shards):,} shards, {made.fingerprint[:12]}", err=True)


@batch.command()
@click.argument("folder", type=FOLDER)
@click.option("--shards", metavar="A-B", help="Only these, from 1 (default: all); for jobs that run side by side.")
@run_options
def run(folder: Path, shards: str | None, **values: Any) -> int:
    """Align the shards of FOLDER that are not finished."""
    from align.batch.plan import load_plan

    made = load_plan(folder)
    return _run(made, _numbers(shards, len(made.shards)), **values)


@batch.command()
@click.argument("folder", type=FOLDER)
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def status(folder: Path, as_json: bool) -> None:
    """Tell what is done of FOLDER, what failed, and who is at work."""
    from align.batch.plan import load_plan
    from align.batch.status import status as state_of
    from align.batch.status import status_lines

    state = state_of(load_plan(folder))
    click.echo(json.dumps(state, ensure_ascii=False) if as_json else "\n".join(status_lines(state)))


@batch.command()
@click.argument("folder", type=FOLDER)
@output_options
def merge(folder: Path, **values: Any) -> None:
    """Join the finished shards of FOLDER into files, line n for pair n."""
    from align.batch.plan import load_plan

    made = load_plan(folder)
    _merge(made, _outputs(values, [entry.path for entry in made.inputs]))


@batch.command("all")
@click.argument("folder", type=FOLDER)
@model_options
@corpus_options
@job_options
@run_options
@output_options
def everything(
    folder: Path,
    model: ModelArguments,
    engine: str | None,
    workers: int,
    address: str | None,
    tries: int,
    fail_on: tuple[str, ...],
    **values: Any,
) -> int:
    """Plan, run and merge; called again, go on where the last call stopped. FOLDER keeps what is done."""
    corpus = _corpus(values)
    outputs = _outputs(values, [*corpus.paths.values()])
    made = _plan(folder, model, corpus, values)
    code = _run(made, _numbers(None, len(made.shards)), engine, workers, address, tries, ())
    return code or _merge(made, outputs, fail_on)


def _plan(folder: Path, model: ModelArguments, corpus: Corpus, values: dict[str, Any]) -> Plan:
    from align.agreement import Agreement, combination
    from align.batch.job import Job
    from align.batch.plan import make_plan

    shard_size = values.pop("shard_size")
    options, pairs = model.load_options(corpus.pairs())
    job = Job(
        model=_absolute(model.model),
        reverse_model=model.reverse_model and _absolute(model.reverse_model),
        model_options={
            **{name: _absolute(value) if isinstance(value, Path) else value for name, value in model.options.items()},
            "input_kind": options.input_kind,
        },
        threads=click.get_current_context().params["threads"] or 1,
        **values,
    )
    if isinstance(how := combination(job.symmetrisation), Agreement) and how.needs_text:
        raise UsageError(
            "agreement with a lexicon reads the whole text, of which batch sees a shard at a time: use `run`"
        )
    signature = job.aligner().signature  # a model that cannot be loaded shows before the corpus is cut
    return make_plan(folder, pairs, corpus, job, signature, shard_size)


def _absolute(path: Path) -> Path:
    """For workers elsewhere; a name on a hub stays."""
    return path.absolute() if path.exists() else path


def _corpus(values: dict[str, Any]) -> Corpus:
    """The corpus that `corpus_options` name; takes them out of `values`."""
    columns, fields = values.pop("columns"), values.pop("fields")
    languages, split = values.pop("languages"), values.pop("tokenize")
    if not re.fullmatch("[0-9]{1,4},[0-9]{1,4}", columns):
        raise UsageError(f"--columns takes two numbers from 1, such as 1,2, not {columns!r}")
    first, second = columns.split(",")
    return Corpus(
        **{name: values.pop(name) for name in ("source", "target", "joint", "tsv", "files")},
        columns=(int(first), int(second)),
        fields=_two(fields, "--fields"),
        languages=_two(languages, "--languages") if languages else None,
        tokenize=_two(split, "--tokenize") if split else None,
    )


def _two(text: str, option: str) -> tuple[str, str]:
    parts = text.split(",")
    if len(parts) != 2 or not all(parts):
        raise UsageError(f"{option} takes two names, such as de,en, not {text!r}")
    return parts[0], parts[1]


def _numbers(shards: str | None, total: int) -> range:
    """The shards that `A-B` or `A` names."""
    if shards is None:
        return range(1, total + 1)
    match = re.fullmatch("([0-9]{1,9})(?:-([0-9]{1,9}))?", shards)
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not 1 <= first <= last <= total:
        raise UsageError(f"--shards takes a range within 1-{total}, such as 1-{total}, not {shards!r}")
    return range(first, last + 1)


def _run(
    made: Plan,
    numbers: range,
    engine: str | None,
    workers: int,
    address: str | None,
    tries: int,
    fail_on: tuple[str, ...],
) -> int:
    from align.batch.run import run_batch

    progress = run_batch(made, numbers, _engine(engine, workers, address), tries, report=_reporter())
    click.echo(progress.line(), err=True)
    for number, error in sorted(progress.failed.items()):
        click.echo(f"shard {number} failed: {error}", err=True)
    return int(bool(progress.failed) or _has(progress.statuses, fail_on))


def _engine(name: str | None, workers: int, address: str | None) -> Engine:
    from align.batch.engines import local

    name = name or ("processes" if workers > 1 else "local")
    if address is not None and name != "ray":
        raise UsageError("--address is for --engine ray")
    if name == "ray":
        from align.batch.ray_engine import RayActors

        return RayActors(workers, address)
    if name == "local" and workers > 1:
        raise UsageError("--engine local has one worker; --engine processes takes --workers")
    if name == "local":
        return local
    from align.batch.processes import Processes

    return Processes(workers)


def _reporter() -> Callable[[Progress], None]:
    """A function that tells the progress, every few seconds."""
    last = time.monotonic()

    def report(progress: Progress) -> None:
        nonlocal last
        if time.monotonic() - last >= _SECONDS:
            last = time.monotonic()
            click.echo(progress.line(), err=True)

    return report


def _outputs(values: dict[str, Any], inputs: list[str]) -> Outputs:
    """The files that `output_options` name, none of them an input; takes them out of `values`."""
    from align.batch.merge import Outputs

    overwrite = values.pop("overwrite")
    names = ("links", "scores", "statuses", "source_words", "target_words", "jsonl", "parquet")
    outputs = Outputs(**{name: values.pop(name) for name in names})
    paths = [path for path in vars(outputs).values() if path is not None]
    for path in paths:
        check_paths(inputs, path, overwrite=overwrite)
    if len({path if path == STANDARD_STREAM else os.path.realpath(path) for path in paths}) < len(paths):
        raise UsageError("two outputs go to the same place")
    return outputs


def _merge(made: Plan, outputs: Outputs, fail_on: tuple[str, ...] = ()) -> int:
    from align.batch.merge import merge

    statuses = merge(made, outputs)
    counts = ", ".join(f"{count:,} {status}" for status, count in sorted(statuses.items()))
    click.echo(f"{made.signature}\n{counts or 'no pairs'}", err=True)
    return int(_has(statuses, fail_on))


def _has(statuses: Iterable[str], fail_on: tuple[str, ...]) -> bool:
    return bool(set(fail_on) & set(statuses))
