"""`nmt-align compare`: which method aligns best with the model at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from align.options import (
    ModelArguments,
    TextArguments,
    extraction,
    extraction_options,
    model_options,
    text_options,
)
from align.progress import progress_bar
from align.specs import split_list
from data.errors import UsageError
from data.streams import check_paths, write_atomically
from eval.model_gold import model_gold
from eval.options import GoldFormat, gold_format_options, result_options
from eval.tables import Format, render

if TYPE_CHECKING:
    from collections.abc import Sequence

    from align.models.base import Encoded, TranslationModel
    from eval.erasure import Floats

COLUMNS = (
    "method",
    "options",
    "layer",
    "heads",
    "position",
    "direction",
    "pooling",
    "measures",
    "aer",
    "aer_low",
    "aer_high",
    "precision",
    "recall",
    "f1",
    "links",
    "passes",
    "seconds",
)
SYMMETRISATIONS = "intersection,grow-diag,grow-diag-final-and,agreement"


@click.command()
@model_options
@text_options
@click.option("-g", "--gold", required=True, metavar="FILE", help="Gold alignments, one line a pair.")
@gold_format_options
@click.option(
    "--methods",
    default="all",
    show_default=True,
    help="Names with options, `smoothgrad:samples=10,attention:layer=2`, or `all`. Options left open are gone through.",
)
@click.option(
    "--pooling",
    default="piece,word",
    show_default=True,
    help="Choose links by `piece`, by `word`, or by both in turn.",
)
@click.option(
    "--symmetrize",
    "symmetrisations",
    default=SYMMETRISATIONS,
    show_default=True,
    help="With --reverse-model: how to combine directions (see `nmt-align symmetrize`), "
    "`agreement:threshold=0.2:mean=harmonic` of soft scores, or `none`.",
)
@extraction_options
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the first N pairs.")
@result_options
@click.option("--top", type=click.IntRange(1), metavar="N", help="Print only the best N rows.")
@click.option("--report", metavar="FILE", help="Write a page to look at: the table, and the links of every pair.")
@click.option(
    "--interactions",
    type=click.IntRange(2, 40),
    metavar="I",
    help="With --report: show which source words act on a target word together, in pairs of at most I source words "
    "(about I x I / 2 passes for a pair).",
)
def compare(
    model: ModelArguments,
    text: TextArguments,
    gold: str,
    gold_format: GoldFormat,
    methods: str,
    pooling: str,
    symmetrisations: str,
    extractor: str,
    threshold: float,
    eos: str,
    punctuation: bool,
    batch_pieces: int,
    max_unknown: float,
    limit: int | None,
    bootstrap: int,
    seed: int,
    top: int | None,
    form: Format,
    output: str,
    report: str | None,
    interactions: int | None,
    overwrite: bool,
) -> None:
    """Rank every method and layer of a model by AER against gold alignments.

    Forces the model through the sentence pairs and aligns them by each method; with --reverse-model also in the
    other direction and combined. Attention tells where the model looks, a gradient norm to what the prediction is
    sensitive, the other methods on which source words it rests (saliency); AER tells which of them agrees with
    people. Passes are forward and backward passes for a pair; seconds are for all pairs, as if a method ran alone.
    """
    for path in (output, report):
        check_paths((*text.paths, gold), path, overwrite=overwrite)
    if interactions is not None and report is None:
        raise UsageError("--interactions are shown in the page: name it by --report")
    from align.methods import usable_methods
    from align.models.load import load_model
    from eval.compare import Comparison, check_symmetrisation, mixture_warning, score_systems
    from eval.compare import compare as compare_methods

    names = [] if symmetrisations == "none" else split_list(symmetrisations)
    for name in names:
        check_symmetrisation(name)
    plan = Comparison(
        split_list(methods),
        [extraction(name, extractor, threshold, eos, punctuation) for name in pooling.split(",")],
        names,
        batch_pieces,
        max_unknown,
    )
    options, stream = model.load_options(text.pairs())
    pairs = list(stream)
    loaded = load_model(model.model, options)
    reverse = load_model(model.reverse_model, options.swapped()) if model.reverse_model else None
    reference = model_gold(gold, gold_format, loaded, pairs)
    pairs, reference = pairs[:limit], reference[:limit]
    if "all" in plan.specs:
        for name, lack in usable_methods(loaded).items():
            if lack is not None:
                click.echo(f"note: {name} is left out: {lack}", err=True)
    systems = compare_methods(plan, loaded, reverse, pairs, progress_bar)
    _note_statuses(systems[0].run.aligned.values())
    settings = {
        "model": loaded.identity,
        "reverse": reverse.identity if reverse else None,
        "pairs": len(pairs),
        "gold": str(gold_format),
    }
    ranked = score_systems(systems, reference, settings, bootstrap, seed)
    warning = mixture_warning(systems)
    if warning:
        click.echo(f"warning: {warning}", err=True)
    with write_atomically(output) as out:
        out.write(render([row for _, row in ranked[:top]], form, COLUMNS))
    if report:
        from eval.report.compared import comparison_report
        from eval.report.render import write_report

        facts = [f"{key}: {settings[key]}" for key in ("pairs", "model", "reverse") if settings[key]]
        facts += [f"Mind that {warning}."] if warning else []
        encoded = [result.encoded for result in systems[0].run.aligned.values()]
        together = {} if interactions is None else _interactions(loaded, encoded, interactions)
        for note in write_report(comparison_report(ranked, reference, facts, together), report):
            click.echo(f"note: {report}: {note}", err=True)


def _interactions(model: TranslationModel, pairs: Sequence[Encoded], longest: int) -> dict[int, Floats]:
    from eval.erasure import make_corruptions
    from eval.interactions import of_short_pairs

    blanking = make_corruptions(model, ["zero"])["zero"]
    return of_short_pairs(model, pairs, blanking, longest, progress_bar(len(pairs), "pair"))


def _note_statuses(results: Any) -> None:
    from collections import Counter

    for status, count in sorted(Counter(result.status for result in results).items()):
        if status != "ok":
            click.echo(f"note: {count} pairs are {status} and have no links", err=True)
