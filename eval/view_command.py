"""`nmt-align view`: a page to look at alignments, without any model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from data.errors import UsageError
from data.streams import check_paths
from eval.alignment_input import Material, material_options, read_material

if TYPE_CHECKING:
    from eval.report.build import Report


@click.command()
@click.argument("alignments", nargs=-1)
@material_options
@click.option(
    "--lexicon", metavar="FILE", help="Instead of ALIGNMENTS: a lexicon in .jsonl, with its examples (--context)."
)
@click.option("-o", "--output", default="alignment.html", show_default=True, metavar="FILE", help="The page.")
@click.option("--overwrite", is_flag=True, help="Replace an existing page.")
def view(alignments: tuple[str, ...], lexicon: str | None, output: str, overwrite: bool, **where: Any) -> None:
    """Make a page to look at ALIGNMENTS: words linked across, pair by pair, errors marked where there is gold.

    ALIGNMENTS are link files, such as an aligner's Pharaoh output, with the text by --source and --target; or .jsonl
    files of `run --matrices`, which hold words and soft alignments. The page is one file that needs no network.
    """
    if bool(alignments) == (lexicon is not None):
        raise UsageError("give either ALIGNMENTS or --lexicon")
    inputs = (*alignments, lexicon, where["gold"], *where["text"].paths)
    check_paths(inputs, output, overwrite=overwrite)
    if len(set(alignments)) < len(alignments):
        raise UsageError("an alignment file is given twice")
    from eval.report.render import write_report

    report, notes = _lexicon(lexicon) if lexicon is not None else (_alignments(alignments, where), [])
    for note in (*notes, *write_report(report, output)):
        click.echo(f"note: {note}", err=True)
    click.echo(f"{len(report.pairs):,} pairs in {output}", err=True)


def _lexicon(path: str) -> tuple[Report, list[str]]:
    from eval.report.lexicon import lexicon_report

    return lexicon_report(path)


def _alignments(paths: tuple[str, ...], where: dict[str, Any]) -> Report:
    from eval.report.files import files_report

    material = read_material(paths, **where)
    return files_report(material, _rows(material))


def _rows(material: Material) -> list[dict[str, Any]]:
    """Scores where there is gold, else the numbers of links."""
    if material.gold is None:
        return [{"links": sum(map(len, alignment.links))} for alignment in material.alignments]
    from eval.aer import corpus_stats
    from eval.bootstrap import RESAMPLES, SEED
    from eval.score import measure

    stats = [corpus_stats(alignment.links, material.gold) for alignment in material.alignments]
    return [{**row} for row in measure(stats, resamples=RESAMPLES, seed=SEED)]
