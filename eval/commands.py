"""The commands of `eval`: each reads its options, calls the library and writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from align.signature import signature
from data.bitext import read_bitext
from data.errors import DataError, UsageError
from data.links import diagnose, read_gold, read_links
from data.streams import check_paths, write_atomically
from eval.aer import corpus_stats, with_possible
from eval.bootstrap import RESAMPLES, SEED
from eval.score import measure
from eval.tables import FORMATS, SIGNIFICANT, Format, render

if TYPE_CHECKING:
    from collections.abc import Sequence

    from data.links import GoldAlignment, Links


@click.command()
@click.argument("gold")
@click.argument("hypotheses", metavar="HYP...", nargs=-1, required=True)
@click.option("--gold-format", type=click.Choice(GOLD_FORMATS), default="gold", show_default=True)
@click.option("--gold-one-based/--gold-zero-based", default=None, help="Base of GOLD (default: the format's own).")
@click.option("--gold-swap", is_flag=True, help="GOLD has its links as target-source.")
@click.option("--hyp-format", type=click.Choice(LINK_FORMATS), default="pharaoh", show_default=True)
@click.option("--hyp-one-based/--hyp-zero-based", default=None, help="Base of HYP (default: the format's own).")
@click.option("--hyp-swap", is_flag=True, help="HYP has its links as target-source.")
@click.option("--comment-prefix", metavar="TEXT", help="Skip lines of GOLD and HYP that begin with TEXT.")
@click.option("--all-sure", is_flag=True, help="Count possible gold links as sure.")
@click.option("--ignore-possible", is_flag=True, help="Leave possible gold links out.")
@click.option("-s", "--source", metavar="FILE", help="Source text; with --target, links are checked against it.")
@click.option("-t", "--target", metavar="FILE", help="Target text.")
@click.option(
    "--alpha",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.5,
    show_default=True,
    help="Weight of precision in F-alpha.",
)
@click.option(
    "--bootstrap",
    type=click.IntRange(0),
    default=RESAMPLES,
    show_default=True,
    metavar="N",
    help="Resamples for intervals and p-values; 0 for none.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=SEED,
    show_default=True,
    envvar="NMT_ALIGN_SEED",
    show_envvar=True,
    help="Seed of the bootstrap.",
)
@click.option("--format", "form", type=click.Choice(FORMATS), default="table", show_default=True)
@click.option("-o", "--output", default="-", metavar="FILE", help="Where to write (default: standard output).")
@click.option("--overwrite", is_flag=True, help="Replace an existing output file.")
def score(
    gold: str,
    hypotheses: tuple[str, ...],
    gold_format: str,
    gold_one_based: bool | None,
    gold_swap: bool,
    hyp_format: str,
    hyp_one_based: bool | None,
    hyp_swap: bool,
    comment_prefix: str | None,
    all_sure: bool,
    ignore_possible: bool,
    source: str | None,
    target: str | None,
    alpha: float,
    bootstrap: int,
    seed: int,
    form: Format,
    output: str,
    overwrite: bool,
) -> None:
    """Score alignment files HYP against the gold alignments of GOLD.

    Prints AER with its 95% bootstrap interval, precision, recall and F, all over the whole corpus. With several HYP,
    p is that of the difference to the first one's AER, and * marks p < 0.05. The signature tells how the figures were
    made; give it with them. One file may be -, standard input.
    """
    if all_sure and ignore_possible:
        raise UsageError("--all-sure and --ignore-possible exclude each other")
    if (source is None) != (target is None):
        raise UsageError("--source and --target are needed together")
    check_paths((gold, *hypotheses, source, target), output, overwrite=overwrite)
    lengths = source and target and [(len(p.source), len(p.target)) for p in read_bitext(source, target)] or None
    ...
