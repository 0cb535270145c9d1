"""`nmt-align demo`: a real comparison on the sentence pairs and models that ship with the package."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import as_file, files
from typing import TYPE_CHECKING

import click

from eval.tables import render

if TYPE_CHECKING:
    from collections.abc import Sequence

    from align.models.base import TranslationModel
    from data.bitext import Pair
    from data.demo import DemoPair

METHODS = (
    "attention",
    "vector-norm",
    "gradient-norm",
    "gradient-x-input",
    "smoothgrad:samples=5:base=input",
    "integrated-gradients:steps=5:sign=positive",
    "lrp:attention=held",
    "occlusion:baseline=zero",
)
SYMMETRISATIONS = ("intersection", "grow-diag-final-and", "agreement")
COLUMNS = ("method", "options", "layer", "position", "direction", "aer", "aer_low", "aer_high", "precision", "recall")
NAMES = {"generated": "pairs from the grammar, held out from training", "handmade": "pairs written and aligned by hand"}


@click.command()
@click.option("--pairs", type=click.IntRange(1, 500), default=60, show_default=True, help="Pairs from the grammar.")
@click.option("--top", type=click.IntRange(1), default=15, show_default=True, help="Print only the best N rows.")
@click.option("--report", default="nmt-align-demo.html", show_default=True, metavar="FILE", help="The page to look at.")
@click.option("--threads", type=click.IntRange(1), metavar="N", help="CPU threads (default: torch's choice).")
def demo(pairs: int, top: int, report: str, threads: int | None) -> None:
    """Compare methods on a small German-English model, and write a page to look at.

    Text, gold links and both models ship with the package: nothing is downloaded. The language is a toy, a few hundred
    words in regular sentences, and shows what the methods do, not how well they do on real text. An existing page is
    replaced.
    """
    from data.demo import handmade, held_out

    if threads:
        import torch

        torch.set_num_threads(threads)
    sets = {"generated": held_out(pairs), "handmade": handmade()}
    with as_file(files("data.demo") / "model") as folder:
        from pathlib import Path

        from align.models.load import LoadOptions, load_model

        german, english = (load_model(Path(folder) / name, LoadOptions()) for name in ("de-en.pt", "en-de.pt"))
    _translate(german, english, sets)
    _compare(german, english, sets, top, report)


def _pairs(demo_pairs: Sequence[DemoPair], turned: bool = False) -> list[Pair]:
    from data.bitext import Pair

    sides = ((p.target, p.source) if turned else (p.source, p.target) for p in demo_pairs)
    return [Pair(number, *side) for number, side in enumerate(sides)]


def _translate(german: TranslationModel, english: TranslationModel, sets: dict[str, tuple[DemoPair, ...]]) -> None:
    """Print how well the models translate: an explanation of a model that does not would say little."""
    from eval.quality import translation_quality

    rows = []
    for name, demo_pairs in sets.items():
        for model, turned in ((german, False), (english, True)):
            quality = translation_quality(model, _pairs(demo_pairs, turned))
            rows.append({"model": model.name, "text": NAMES[name], "BLEU": quality.bleu, "chrF": quality.chrf})
    click.echo(render(rows, "table"))


def _compare(
    german: TranslationModel,
    english: TranslationModel,
    sets: dict[str, tuple[DemoPair, ...]],
    top: int,
    report: str,
) -> None:
    from align.extract import Extraction
    from align.progress import progress_bar
    from eval.bootstrap import RESAMPLES, SEED
    from eval.compare import Comparison, compare, score_systems
    from eval.report.compared import comparison_report
    from eval.report.render import write_report

    together = [pair for demo_pairs in sets.values() for pair in demo_pairs]
    plan = Comparison(METHODS, [Extraction(pooling="word")], SYMMETRISATIONS)
    systems = compare(plan, german, english, _pairs(together), progress_bar)
    settings: dict[str, object] = {"model": german.name, "reverse": english.name, "pairs": len(together)}
    start = 0
    for name, demo_pairs in sets.items():
        part = slice(start, start := start + len(demo_pairs))
        gold = [pair.gold for pair in demo_pairs]
        ranked = score_systems(
            [replace(system, links=system.links[part]) for system in systems], gold, settings, RESAMPLES, SEED
        )
        click.echo(f"{len(gold)} {NAMES[name]}, the best {top} of {len(ranked)} rows:")
        rows = [{key: row[key] for key in COLUMNS} for _, row in ranked[:top]]
        click.echo(render(rows, "table"))
    ranked = score_systems(systems, [pair.gold for pair in together], settings, RESAMPLES, SEED)
    facts = [f"{len(demo_pairs)} {NAMES[name]}" for name, demo_pairs in sets.items()]
    for note in write_report(comparison_report(ranked, [pair.gold for pair in together], facts), report):
        click.echo(f"note: {note}", err=True)
    click.echo(f"All rows, and the links of every pair: {report}")
