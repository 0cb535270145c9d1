"""`nmt-align faithfulness`: does the model rest on the words that a method names?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from align.options import ModelArguments, TextArguments, batch_options, model_options, text_options
from align.progress import progress_bar
from align.specs import split_list
from data.errors import UsageError
from data.streams import check_paths, write_atomically
from eval.model_gold import model_gold
from eval.options import GoldFormat, gold_format_options, result_options
from eval.purpose import purpose_option
from eval.tables import Format, render

if TYPE_CHECKING:
    from align.models.base import TranslationModel
    from data.bitext import Pair
    from eval.faithfulness_report import Report

METHODS = ",".join(
    (
        "attention:position=awo",
        "vector-norm:layer=-1:position=awo",
        "alti:layer=-1:position=awo:scope=decoder",
        "gradient-norm:norm=l1",
        "gradient-x-input:sign=signed",
        "integrated-gradients:sign=signed:steps=12",
        "lrp:attention=propagated:sign=signed",
        "occlusion:baseline=zero:sign=signed",
        "omission:sign=signed",
    )
)
COLUMNS = (
    "corruption measures rank method comp comp_low comp_high p_value p_best suff suff_low suff_high comp_reversed "
    "deletion insertion of_ceiling own"
).split()
TITLES = {
    "faithfulness": "Faithfulness, by corruption and by what is measured:",
    "corruptions": "How unnatural the input became (mean over the same shares of random words):",
    "stability": "Do corruptions rank the methods alike? Kendall's tau, over all kinds of measure together:",
    "plausibility": "Are plausible maps faithful? Spearman's rho over sentences, 1 - AER with comprehensiveness above "
    "random:",
}


@click.command()
@model_options
@text_options
@click.option("--translate", is_flag=True, help="Let the model translate --source, and erase for its own words.")
@click.option("--beam", type=click.IntRange(1), default=5, show_default=True, help="Beam of --translate.")
@purpose_option
@click.option("-g", "--gold", metavar="FILE", help="Gold alignments, to tell whether plausible maps are faithful.")
@gold_format_options
@click.option("--methods", default=METHODS, help="Names with options, as for `compare` (default: nine, one a family).")
@click.option(
    "--corruptions",
    default="zero,unk,delete,resample,neighbour",
    show_default=True,
    help="How words are taken out.",
)
@click.option("--words", metavar="FILE", help="Words and counts to replace from (default: the model's, or the text's).")
@click.option(
    "--source-ngrams", metavar="FILE", help="An n-gram model of the source in ARPA format: how natural is it?"
)
@click.option("--draws", type=click.IntRange(1), default=1, show_default=True, help="Replacements for each word.")
@click.option("--bins", default="1,5,10,20,50", show_default=True, help="Per cent of source words, at least one word.")
@click.option(
    "--targets", type=click.IntRange(0), default=0, show_default=True, help="Target words of a sentence; 0 for all."
)
@click.option("--random-orders", type=click.IntRange(1), default=3, show_default=True, help="Orders of the floor.")
@click.option(
    "--oracle-words",
    type=click.IntRange(0, 14),
    default=7,
    show_default=True,
    help="Longest source that gets an exhaustive oracle (2^N passes).",
)
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the first N pairs.")
@batch_options
@result_options
def faithfulness(
    model: ModelArguments,
    text: TextArguments,
    translate: bool,
    beam: int,
    reader: str,
    gold: str | None,
    gold_format: GoldFormat,
    methods: str,
    corruptions: str,
    words: str | None,
    source_ngrams: str | None,
    draws: int,
    bins: str,
    targets: int,
    random_orders: int,
    oracle_words: int,
    limit: int | None,
    batch_pieces: int,
    max_unknown: float,
    bootstrap: int,
    seed: int,
    form: Format,
    output: str,
    overwrite: bool,
) -> None:
    """Tell whether the model rests on the source words that a method names, by erasing them.

    For each target word the most important source words go, or stay alone, and the loss of log p is measured against
    random orders and an oracle, under several ways to take words out. JSON holds every table, TSV the first one.
    """
    check_paths((*text.paths, gold, source_ngrams), output, overwrite=overwrite)
    if translate and gold is not None:
        raise UsageError("--gold has links of the text, not of the words that --translate puts there")
    from align.models.load import load_model
    from align.pipeline import translated_pairs
    from eval.erasure import make_corruptions
    from eval.faithfulness import Plan
    from eval.faithfulness_report import Evaluation, usable
    from eval.ngrams import read_arpa

    plan = Plan(_shares(bins), targets, random_orders, oracle_words, seed)
    options, stream = model.load_options(text.sources() if translate else text.pairs())
    pairs = list(stream)
    loaded = load_model(model.model, options)
    reverse = load_model(model.reverse_model, options.swapped()) if model.reverse_model else None
    reference = None
    if gold is not None:
        reference = model_gold(gold, gold_format, loaded, pairs)[:limit]
    pairs = pairs[:limit]
    if translate:
        pairs = list(translated_pairs(loaded, pairs, beam))
    chosen, notes = usable(split_list(methods), loaded)
    for note in notes:
        click.echo(f"note: {note}", err=True)
    if not chosen:
        raise UsageError("no method is left: name one that this model has what it needs for")
    found = make_corruptions(loaded, corruptions.split(","), words or word_source(loaded, pairs), draws, seed)
    ngrams = None if source_ngrams is None else read_arpa(source_ngrams)
    evaluation = Evaluation(loaded, reverse, chosen, found, plan, batch_pieces, max_unknown, ngrams)
    advance = progress_bar(len(pairs) * len(found), "sentence")
    report = evaluation.run(pairs, reference, reader, bootstrap, seed, advance)
    with write_atomically(output) as out:
        out.write(written(report, form))
    if form == "tsv":
        for line in report.conclusions:
            click.echo(line, err=True)


def _shares(text: str) -> tuple[float, ...]:
    try:
        shares = tuple(float(part) / 100 for part in text.split(","))
    except ValueError:
        shares = ()
    if not shares or not all(0 < share <= 1 for share in shares):
        raise UsageError(f"--bins takes per cents such as 1,5,10,20,50, not {text!r}")
    return shares


def word_source(model: TranslationModel, pairs: list[Pair]) -> str | dict[str, float]:
    """Nothing where the model brings word counts, else the counts of the source text."""
    from collections import Counter

    from align.models.inside import CountsWords

    if isinstance(model, CountsWords):
        return ""
    return {word: float(count) for word, count in Counter(word for pair in pairs for word in pair.source).items()}


def written(report: Report, form: Format) -> str:
    """The report as text that opens with its purpose, as one JSON object, or as TSV of its first table."""
    if form == "json":
        import json

        return (
            json.dumps(
                {"opening": report.opening, **report.tables, "conclusions": report.conclusions},
                indent=2,
                ensure_ascii=False,
            )
            + "\n"
        )
    if form == "tsv":
        return render(next(iter(report.tables.values())), "tsv")
    parts = ["\n".join(report.opening) + "\n"]
    for name, rows in report.tables.items():
        if rows:
            shown = [{key: row[key] for key in COLUMNS} for row in rows] if name == "faithfulness" else rows
            parts.append(f"{TITLES[name]}\n{render(shown, 'table')}")
    parts += ["".join(f"{line}\n" for line in report.conclusions)] * bool(report.conclusions)
    return "\n".join(parts)
