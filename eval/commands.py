"""The commands of `eval`: each reads its options, calls the library and writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from align.signature import signature
from data.bitext import Pair, read_lengths, read_sentences
from data.errors import DataError, UsageError
from data.links import FORMATS as LINK_FORMATS
from data.links import GoldAlignment, diagnose, link_format, read_gold, read_links
from data.streams import check_paths, write_atomically
from eval.aer import corpus_stats
from eval.options import GoldFormat, gold_format_options, result_options
from eval.score import measure
from eval.tables import Format, render

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from data.links import Links


@click.command()
@click.argument("gold")
@click.argument("hypotheses", metavar="HYP...", nargs=-1, required=True)
@gold_format_options
@click.option("--hyp-format", type=click.Choice(list(LINK_FORMATS)), default="pharaoh", show_default=True)
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
@result_options
@click.option("--report", metavar="FILE", help="Write a page to look at; needs --source and --target.")
def score(
    gold: str,
    hypotheses: tuple[str, ...],
    gold_format: GoldFormat,
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
    report: str | None,
    overwrite: bool,
) -> None:
    """Score alignment files HYP against the gold alignments of GOLD.

    Prints AER with its 95% bootstrap interval, precision, recall and F1, each over the whole corpus. With
    several HYP, p belongs to the difference of AER to the first one's; * marks p < 0.05. The signature says
    how the figures were made: quote it with them. One file may be -, standard input.
    """
    if all_sure and ignore_possible:
        raise UsageError("--all-sure and --ignore-possible exclude each other")
    for written in (output, report):
        check_paths((gold, *hypotheses, source, target), written, overwrite=overwrite)
    if report and (source is None or target is None or "-" in (source, target)):
        raise UsageError("--report shows words: give --source and --target, as files")
    text = _text(source, target)
    of_gold = _Reading(gold_format.form, gold_format.one_based, gold_format.swap, comment_prefix, *text, "--gold-")
    of_hyp = _Reading(hyp_format, hyp_one_based, hyp_swap, comment_prefix, *text, "--hyp-")
    reference = of_gold.gold(gold)
    if all_sure:
        reference = [GoldAlignment(pair.possible, pair.possible) for pair in reference]
    if ignore_possible:
        reference = [GoldAlignment(pair.sure, pair.sure) for pair in reference]
    systems = []
    for path in hypotheses:
        links = of_hyp.links(path)
        _check_pair(path, links, gold, reference)
        systems.append(links)
    made = signature(
        {
            **of_gold.settings("gold"),
            "possible": "sure" if all_sure else "ignored" if ignore_possible else "kept",
            **of_hyp.settings("hyp"),
            "alpha": alpha,
            "bootstrap": bootstrap,
            "seed": seed if bootstrap else None,
        }
    )
    stats = [corpus_stats(links, reference) for links in systems]
    measured = measure(stats, resamples=bootstrap, seed=seed, alpha=alpha)
    rows = [
        {"file": path, "sentences": len(reference), **fields, "signature": made}
        for path, fields in zip(hypotheses, measured, strict=True)
    ]
    with write_atomically(output) as out:
        out.write(render(rows, form, _columns(bootstrap > 0, len(rows) > 1, alpha != 0.5)))
    if report:
        named = list(zip(hypotheses, systems, strict=True))
        _write_report(report, (str(source), str(target)), named, reference, rows)


def _write_report(
    path: str,
    text: tuple[str, str],
    systems: Sequence[tuple[str, Sequence[Links]]],
    gold: Sequence[GoldAlignment],
    rows: Sequence[Mapping[str, object]],
) -> None:
    from eval.alignment_input import Alignment, Material
    from eval.report.files import files_report
    from eval.report.render import write_report

    sides = zip(*map(read_sentences, text), strict=True)
    pairs = [Pair(index, left, right) for index, ((_, left), (_, right)) in enumerate(sides)]
    material = Material(pairs, [Alignment(name, links) for name, links in systems], gold)
    for note in write_report(files_report(material, rows), path):
        click.echo(f"note: {path}: {note}", err=True)


@dataclass(frozen=True)
class _Reading:
    """How one kind of file is to be read; see `data.links.read_gold`."""

    format: str
    one_based: bool | None
    swap: bool
    comment_prefix: str | None
    ids: list[int] | None
    lengths: list[tuple[int, int]] | None
    option: str

    def gold(self, path: str) -> list[GoldAlignment]:
        return list(read_gold(path, **vars(self)))

    def links(self, path: str) -> list[Links]:
        return list(read_links(path, **vars(self)))

    def settings(self, side: str) -> dict[str, object]:
        """What the signature says of it."""
        base = int(link_format(self.format).one_based if self.one_based is None else self.one_based)
        return {side: self.format, f"{side}-base": base, f"{side}-swap": self.swap}


def _columns(bootstrap: bool, several: bool, f_alpha: bool) -> list[str]:
    """What the text table shows."""
    interval = ["aer_low", "aer_high"] if bootstrap else []
    difference = ["p_value"] if bootstrap and several else []
    f_measures = ["f1", "f_alpha"] if f_alpha else ["f1"]
    return ["file", "aer", *interval, *difference, "precision", "recall", *f_measures, "links", "sure"]


def _text(source: str | None, target: str | None) -> tuple[list[int] | None, list[tuple[int, int]] | None]:
    """The ids of the sentence pairs and their numbers of source and target words, if there is a text."""
    if source is None and target is None:
        return None, None
    if source is None or target is None:
        raise UsageError("--source and --target belong together")
    text = list(read_lengths(source, target))
    return [sentence for sentence, _ in text], [size for _, size in text]


def _check_pair(path: str, links: Sequence[Links], gold: str, reference: Sequence[GoldAlignment]) -> None:
    """Stop if the files are not of one length; warn if one of them seems to be read the wrong way."""
    if len(links) != len(reference):
        raise DataError(
            f"{len(links)} sentence pairs, but {gold} has {len(reference)} "
            "(in the naacl format the last ones may have no line: --source and --target tell their number)",
            path,
        )
    wrong = diagnose(links, reference)
    if wrong:
        options = "--hyp-one-based, --hyp-swap, --gold-one-based, --gold-swap"
        click.echo(f"Warning: {path}: {wrong} (see {options})", err=True)
