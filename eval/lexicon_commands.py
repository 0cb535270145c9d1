"""`nmt-align lexicon-score`: lexicons against a dictionary or gold alignments."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from align.lexicon import lowercased
from align.lexicon_formats import format_of
from align.lexicon_input import LinkFile, read_paired
from align.lexicon_readers import READABLE, read_translations
from align.options import TextArguments, text_options
from align.signature import signature
from data.errors import UsageError
from data.streams import check_paths, write_atomically
from eval.lexicon import (
    WordStats,
    dictionary_reference,
    gold_reference,
    intervals,
    lexicon_scores,
    lexicon_stats,
)
from eval.options import GoldFormat, gold_format_options, result_options
from eval.tables import Format, render

if TYPE_CHECKING:
    from collections.abc import Sequence

_SHOWN = (
    "file",
    "words",
    "coverage",
    "precision_1",
    "precision_1_low",
    "precision_1_high",
    "precision_5",
    "precision_10",
    "entries",
    "precision",
    "recall",
    "f1",
    "f1_low",
    "f1_high",
)


@click.command("lexicon-score")
@click.argument("lexicons", metavar="LEXICON...", nargs=-1, required=True)
@click.option("--reference", metavar="FILE", help="A dictionary of right pairs.")
@click.option("--reference-format", type=click.Choice(READABLE), default="muse", show_default=True, help="Its format.")
@click.option("--gold", metavar="FILE", help="Gold alignments; with their text, they make the reference.")
@gold_format_options
@text_options
@click.option(
    "--lexicon-format",
    type=click.Choice(READABLE),
    help="Format of the lexicons (default: by name, else tsv); moses is a lex.f2e.",
)
@click.option("--lowercase", is_flag=True, help="Compare in lower case.")
@result_options
def lexicon_score(
    lexicons: tuple[str, ...],
    reference: str | None,
    reference_format: str,
    gold: str | None,
    gold_format: GoldFormat,
    text: TextArguments,
    lexicon_format: str | None,
    lowercase: bool,
    bootstrap: int,
    seed: int,
    form: Format,
    output: str,
    overwrite: bool,
) -> None:
    """Score lexicons against a dictionary (--reference) or the pairs that gold alignments link (--gold).

    Coverage is the share of the reference's source words that have an entry; precision@k the share of those for
    which one of the k best entries is right. Precision and recall are of entries, for source words of the
    reference. Intervals are of 95%, by resampling source words. The signature tells how figures were made.
    """
    if (reference is None) == (gold is None):
        raise UsageError("give either --reference or --gold")
    check_paths((*lexicons, reference, gold, *text.paths), output, overwrite=overwrite)
    if gold is None:
        right = dictionary_reference(read_translations(str(reference), reference_format, lowercase=lowercase))
    else:
        pairs = text.pairs()
        links = LinkFile(gold, gold_format.form, gold_format.one_based, gold_format.swap, option="--gold-")
        right = gold_reference(read_paired(lowercased(pairs) if lowercase else pairs, links))
    settings = {
        "reference": reference_format if gold is None else f"gold-{gold_format.form}",
        "case": "lower" if lowercase else "kept",
        "bootstrap": bootstrap,
        "seed": seed if bootstrap else None,
    }
    rows = []
    for path in lexicons:
        kind = lexicon_format or format_of(path)
        stats = lexicon_stats(read_translations(path, kind, lowercase=lowercase), right)
        told = signature({"lexicon": kind, **settings})
        rows.append({"file": path, **_row(stats, bootstrap, seed), "signature": told})
    shown = [key for key in _SHOWN if bootstrap or not key.endswith(("_low", "_high"))]
    with write_atomically(output) as out:
        out.write(render(rows, form, shown))


def _row(stats: Sequence[WordStats], resamples: int, seed: int) -> dict[str, object]:
    """The summed statistics, the scores, and both ends of the interval of each score, None without a bootstrap."""
    summed = sum(stats, WordStats())
    row: dict[str, object] = asdict(summed)
    ends = intervals(stats, resamples, seed) if resamples else {}
    for name, value in asdict(lexicon_scores(summed)).items():
        row[name] = value
        row[f"{name}_low"], row[f"{name}_high"] = ends.get(name) or (None, None)
    return row
