"""`nmt-align run`: align sentence pairs with one method."""

from __future__ import annotations

import json
import sys
from collections import Counter
from contextlib import ExitStack
from importlib import import_module
from itertools import repeat, tee
from typing import TYPE_CHECKING, cast

import click

from align.options import (
    ModelArguments,
    TextArguments,
    extraction,
    extraction_options,
    method_options,
    model_options,
    text_options,
)
from align.progress import progress_bar
from align.specs import is_auto
from data.bitext import read_joint
from data.errors import UsageError
from data.links import format_links
from data.streams import check_paths, write_atomically, write_bytes_atomically

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from align.extract import Extraction
    from align.methods.base import Method
    from align.models.base import TranslationModel
    from align.pipeline import Aligned
    from data.bitext import Pair

    Writer = Callable[[Aligned, Aligned | None], object]


@click.command()
@model_options
@text_options
@method_options
@click.option("--tune-on", metavar="FILE", help="`source ||| target` lines to choose on (default: the text itself).")
@click.option(
    "--tune-pairs",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    help="How many pairs to choose on where the method or an option of it is `auto` (see `nmt-align choose`).",
)
@click.option("--translate", is_flag=True, help="Let the model translate --source first, and align its translations.")
@click.option("--beam", type=click.IntRange(1), default=5, show_default=True, help="Beam of --translate.")
@click.option(
    "--translations",
    metavar="FILE",
    help="Where --translate writes the translations, one a line, words as links count them.",
)
@extraction_options
@click.option("-o", "--output", default="-", metavar="FILE", help="Links, Pharaoh format (default: standard output).")
@click.option("--scores", metavar="FILE", help="Write the score of each link, one line a pair.")
@click.option("--matrices", metavar="FILE", help="Write soft alignments [J, I]: .npz, or .jsonl with words and links.")
@click.option(
    "--over",
    type=click.Choice(["source", "prefix", "both"]),
    default="source",
    show_default=True,
    help="What .jsonl --matrices explain from: source words, the target words before (`prefix` [J, J]), or both. "
    "Of --model, for every method but attention, vector-norm and flow, which read the source alone.",
)
@click.option("--report", metavar="FILE", help="Write a page to look at: words, links and soft alignments.")
@click.option("--overwrite", is_flag=True, help="Replace existing output files.")
@click.option("--fail-on", multiple=True, metavar="STATUS", help="Exit with 1 if a pair ends as STATUS, e.g. too_long.")
def run(
    model: ModelArguments,
    text: TextArguments,
    method: str,
    reverse_method: str | None,
    pooling: str,
    symmetrisation: str,
    tune_on: str | None,
    tune_pairs: int,
    translate: bool,
    beam: int,
    translations: str | None,
    extractor: str,
    threshold: float,
    eos: str,
    punctuation: bool,
    batch_pieces: int,
    max_unknown: float,
    output: str,
    scores: str | None,
    matrices: str | None,
    over: str,
    report: str | None,
    overwrite: bool,
    fail_on: tuple[str, ...],
) -> int:
    """Align sentence pairs with one method and write Pharaoh links, line n for pair n.

    Links are source-target and zero-based. The score of a link is the share of its row in the soft alignment; with
    two models, the mean of both directions' shares. A pair that is empty, too long for the model, or whose scores are
    not finite gets an empty line and is counted on standard error.
    """
    for path in (output, scores, matrices, report, translations):
        check_paths(text.paths, path, overwrite=overwrite)
    if translate != (translations is not None):
        raise UsageError("--translate and --translations FILE belong together: links need the words they count")
    _check_choice(model, method, reverse_method, tune_on, translate)
    if over != "source" and (matrices is None or not matrices.endswith((".jsonl", ".jsonl.gz"))):
        raise UsageError(f"--over {over} goes into --matrices FILE.jsonl: name that file")
    from align.bidirectional import Aligner
    from align.methods import make_method
    from align.methods.prefix import explain_prefix
    from align.models.load import load_model

    options, pairs = model.load_options(text.sources() if translate else text.pairs())
    forward = load_model(model.model, options)
    reverse = load_model(model.reverse_model, options.swapped()) if model.reverse_model else None
    how = extraction(pooling, extractor, threshold, eos, punctuation)
    if is_auto(method):
        ours, theirs, pairs = _chosen(method, forward, reverse, pairs, tune_on, tune_pairs, how)
    else:
        ours, theirs = make_method(method), make_method(reverse_method or method)
    other = theirs if theirs != ours else None
    aligner = Aligner(forward, reverse, ours, how, symmetrisation, batch_pieces, max_unknown, other)
    statuses: Counter[str] = Counter()
    # By name, as `align.cli` finds its commands: this package imports nothing of `eval`.
    page = import_module("eval.report.files").RunReport() if report else None
    with ExitStack() as files:
        if translations is not None:
            pairs = translated(forward, pairs, beam, files.enter_context(write_atomically(translations)).write)
        writers = _writers(files, output, scores, matrices, over, aligner.signature)
        prefixes: Iterator[Aligned | None] = repeat(None)
        if over != "source":
            pairs, again = tee(pairs)
            prefixes = explain_prefix(forward, again, ours, batch_pieces, max_unknown)
        # Strict would ask `repeat` for one more.
        for result, prefix in zip(_with_progress(aligner.align(pairs)), prefixes, strict=False):
            statuses[result.status] += 1
            for write in writers:
                write(result, prefix)
            if page:
                page.add(result)
    for note in page.write(report, aligner.signature) if page else ():
        click.echo(f"note: {report}: {note}", err=True)
    click.echo(f"{aligner.signature}\n" + ", ".join(f"{n} {status}" for status, n in statuses.items()), err=True)
    return int(any(status in statuses for status in fail_on))


def _check_choice(
    model: ModelArguments, method: str, reverse_method: str | None, tune_on: str | None, translate: bool
) -> None:
    if is_auto(method) and (reverse_method is not None or (translate and tune_on is None)):
        raise UsageError("--method auto chooses --reverse-method too, and with --translate needs --tune-on")
    if not is_auto(method) and tune_on is not None:
        raise UsageError("--tune-on is for --method auto, or an option of it that is auto")
    if reverse_method is not None and model.reverse_model is None:
        raise UsageError("--reverse-method needs --reverse-model")


def _chosen(
    method: str,
    forward: TranslationModel,
    reverse: TranslationModel | None,
    pairs: Iterator[Pair],
    tune_on: str | None,
    tune_pairs: int,
    how: Extraction,
) -> tuple[Method, Method, Iterator[Pair]]:
    """The methods of both directions by their agreement, and the pairs, unread."""
    from align.choose import settle

    on = None if tune_on is None else read_joint(tune_on)
    choice, pairs = settle(method, forward, reverse, pairs, on, tune_pairs, how, progress_bar)
    told = f"{choice.method}; {choice.reverse_method} for --reverse-model"
    click.echo(f"chosen by agreement ({choice.agreement:.3f}): {told}", err=True)
    return choice.method, choice.reverse_method, pairs


def translated(
    model: TranslationModel, sources: Iterable[Pair], beam: int, write: Callable[[str], object]
) -> Iterator[Pair]:
    """Pairs of sources and the model's translations, which are also written out, one a line."""
    from align.pipeline import translated_pairs

    for pair in translated_pairs(model, sources, beam):
        write(" ".join(pair.target) + "\n")
        yield pair


def _with_progress(results: Iterator[Aligned]) -> Iterator[Aligned]:
    from tqdm import tqdm

    return cast("Iterator[Aligned]", tqdm(results, unit="pair", file=sys.stderr, disable=None))


def _writers(
    files: ExitStack, output: str, scores: str | None, matrices: str | None, over: str, signature: str
) -> list[Writer]:
    """What writes a result, and what is found over the target prefix, to each of the files."""
    write_links = files.enter_context(write_atomically(output)).write
    writers: list[Writer] = [lambda result, _: write_links(format_links(result.links) + "\n")]
    if scores:
        write_scores = files.enter_context(write_atomically(scores)).write
        writers.append(lambda result, _: write_scores(_scores_line(result)))
    if matrices:
        writers.append(_matrix_writer(files, matrices, signature, over))
    return writers


def _scores_line(result: Aligned) -> str:
    return " ".join(f"{score:.6f}" for _, score in sorted(result.scores.items())) + "\n"


def _matrix_writer(files: ExitStack, path: str, signature: str, over: str) -> Writer:
    """A function that writes one soft alignment to `path`, in the format its name asks for.

    It takes what is found over the source, and over the target prefix unless `over` is `source`.

    Raises:
        UsageError: another name than `.npz` or `.jsonl`.
    """
    if path.endswith(".npz"):
        return _npz_writer(files, path)
    if not path.endswith((".jsonl", ".jsonl.gz")):
        raise UsageError(f"--matrices {path}: the name must end in .npz or .jsonl")
    out = files.enter_context(write_atomically(path))

    def write(result: Aligned, prefix: Aligned | None) -> None:
        record = {
            "id": result.encoded.pair.id,
            "src": result.encoded.source_words,
            "tgt": result.encoded.target_words,
            "links": [[i, j, round(score, 6)] for (i, j), score in sorted(result.scores.items())],
            **({} if over == "prefix" else {"matrix": result.matrix.round(6).tolist()}),
            **({} if prefix is None else {"prefix": prefix.matrix.round(6).tolist()}),
            "status": result.status,
            "method": signature,
        }
        out.write(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")

    return write


def _npz_writer(files: ExitStack, path: str) -> Writer:
    """Arrays named by the number of the pair, written one by one: `numpy.load(path)["0"]` is the first."""
    from zipfile import ZipFile, ZipInfo

    import numpy as np

    archive = files.enter_context(ZipFile(files.enter_context(write_bytes_atomically(path)), "w"))

    def write(result: Aligned, _: Aligned | None) -> None:
        # A fixed time stamp, so that equal content is equal bytes.
        with archive.open(ZipInfo(f"{result.encoded.pair.id}.npy"), "w") as entry:
            np.lib.format.write_array(entry, result.matrix.astype(np.float32), allow_pickle=False)

    return write
