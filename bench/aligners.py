"""Alignments from NMT models beside statistical aligners, on one gold set, in one table.

    pip install sil-thot
    python -m bench.aligners --corpus FOLDER --gold FOLDER --model en-fr.pt --reverse-model fr-en.pt \\
        --method 'mean(lrp,vector-norm:layer=0)' --symmetrize agreement

The statistical aligners are trained on the first pairs of the corpus and, after them, the text of the gold set, and
align the latter. Folders hold `train.src.gz` and `train.tgt.gz`, and `src`, `tgt` and `gold` (zero-based, `p` for
possible).
"""

from __future__ import annotations

import gzip
import time
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from align.symmetrize import symmetrize
from bench.statistical import ALIGNERS, align
from data.bitext import read_bitext
from data.links import read_gold
from eval.aer import corpus_stats
from eval.bootstrap import RESAMPLES, SEED
from eval.compare import Comparison, compare, score_systems
from eval.score import measure
from eval.tables import render

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from data.bitext import Pair
    from data.links import GoldAlignment, Links

FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
FILE = click.Path(exists=True, path_type=Path)
COLUMNS = ("aer", "aer_low", "aer_high", "precision", "recall", "links")


@click.command()
@click.option("--corpus", type=FOLDER, required=True)
@click.option("--gold", type=FOLDER, required=True)
@click.option("--pairs", type=int, default=60_000, show_default=True, help="Pairs to train the aligners on.")
@click.option("--aligner", "aligners", type=click.Choice(ALIGNERS), multiple=True, default=ALIGNERS)
@click.option("--model", type=FILE, help="The NMT model, with --reverse-model.")
@click.option("--reverse-model", type=FILE)
@click.option("--method", "methods", multiple=True, help="Of nmt-align; repeatable.")
@click.option("--symmetrize", "names", multiple=True, default=("intersection", "grow-diag", "grow-diag-final-and"))
def main(
    corpus: Path,
    gold: Path,
    pairs: int,
    aligners: tuple[str, ...],
    model: Path | None,
    reverse_model: Path | None,
    methods: tuple[str, ...],
    names: tuple[str, ...],
) -> None:
    """Print AER, precision and recall of each aligner and method, best first; seconds are of this machine."""
    test = list(read_bitext(gold / "src", gold / "tgt"))
    reference = list(read_gold(gold / "gold", "gold"))
    text = [*islice(zip(*(_lines(corpus / f"train.{side}.gz") for side in ("src", "tgt")), strict=True), pairs)]
    text += [(pair.source, pair.target) for pair in test]
    rows: list[dict[str, object]] = []
    for name in aligners:
        start = time.perf_counter()
        found = list(_statistical(name, text, len(test), [n for n in names if not n.startswith("agreement")]))
        scored = _scored([links for _, links in found], reference)
        seconds = time.perf_counter() - start
        rows += [
            {"aligner": name, "direction": direction, **row, "seconds": round(seconds)}
            for (direction, _), row in zip(found, scored, strict=True)
        ]
    if model and reverse_model:
        rows += _neural(model, reverse_model, methods, names, test, reference)
    click.echo(render(sorted(rows, key=lambda row: str(row["aer"])), "table"), nl=False)


def _lines(path: Path) -> Iterator[tuple[str, ...]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from (tuple(line.split()) for line in file)


def _statistical(
    name: str, text: list[tuple[tuple[str, ...], tuple[str, ...]]], last: int, names: Sequence[str]
) -> Iterator[tuple[str, list[Links]]]:
    """Both directions, as (source, target), and their combinations."""
    forward = align(name, text, last)
    turned = align(name, [(target, source) for source, target in text], last)
    reverse = [frozenset((i, j) for j, i in links) for links in turned]
    for combination in ("forward", "reverse", *names):
        yield combination, [symmetrize(a, b, combination) for a, b in zip(forward, reverse, strict=True)]


def _scored(systems: Sequence[Sequence[Links]], reference: Sequence[GoldAlignment]) -> list[dict[str, object]]:
    measured = measure([corpus_stats(links, reference) for links in systems], resamples=RESAMPLES, seed=SEED)
    return [{key: row[key] for key in COLUMNS} for row in measured]


def _neural(
    model: Path,
    reverse: Path,
    methods: Sequence[str],
    names: Sequence[str],
    test: Sequence[Pair],
    reference: Sequence[GoldAlignment],
) -> list[dict[str, object]]:
    from align.extract import Extraction
    from align.models.load import LoadOptions, load_model

    plan = Comparison(methods, [Extraction(pooling="word")], names)
    systems = compare(plan, load_model(model, LoadOptions()), load_model(reverse, LoadOptions()), test)
    ranked = score_systems(systems, reference, {}, RESAMPLES, SEED)
    return [
        {
            "aligner": str(system.run.method),
            "direction": system.direction,
            **{key: row[key] for key in COLUMNS},
            "seconds": round(system.seconds),
        }
        for system, row in ranked
    ]


if __name__ == "__main__":
    main()
