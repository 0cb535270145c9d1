"""Alignments from NMT models beside statistical aligners, on one gold set, in one table.

    pip install sil-thot
    python -m bench.aligners --corpus FOLDER --gold FOLDER --model en-fr.pt --reverse-model fr-en.pt \\
        --method 'mean(lrp,vector-norm:layer=0)' --symmetrize intersection --symmetrize agreement

The statistical aligners are trained on the first pairs of the corpus and, after them, the text of the gold set, and
align the latter. Folders hold `train.src.gz` and `train.tgt.gz`, and `src`, `tgt` and `gold` (zero-based, `p` for
possible).
"""

from __future__ import annotations

import gzip
import time
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from align.symmetrize import symmetrize
from bench.statistical import ALIGNERS, align
from data.bitext import read_bitext
from data.links import read_gold
from eval.aer import corpus_stats
from eval.bootstrap import RESAMPLES, SEED, paired_bootstrap
from eval.compare import Comparison, compare
from eval.score import measure
from eval.tables import render

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from data.bitext import Pair
    from data.links import GoldAlignment, Links


class System(NamedTuple):
    """A row before it is scored: links of every pair as (source, target)."""

    name: str
    direction: str
    links: list[Links]
    seconds: float


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
    """Print AER, precision and recall of each aligner and method, best first; seconds are of this machine.

    A column of p-values belongs to the best combination that a statistical aligner reaches: two-sided, of the
    hypothesis that a row's AER equals its, by paired bootstrap over the sentence pairs.
    """
    test = list(read_bitext(gold / "src", gold / "tgt"))
    reference = list(read_gold(gold / "gold", "gold"))
    text = [*islice(zip(*(_lines(corpus / f"train.{side}.gz") for side in ("src", "tgt")), strict=True), pairs)]
    text += [(pair.source, pair.target) for pair in test]
    hard = [name for name in names if not name.startswith("agreement")]
    systems = [system for name in aligners for system in _statistical(name, text, len(test), hard)]
    if model and reverse_model:
        systems += _neural(model, reverse_model, methods, names, test)
    click.echo(render(_rows(systems, reference, aligners), "table"), nl=False)


def _lines(path: Path) -> Iterator[tuple[str, ...]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from (tuple(line.split()) for line in file)


def _statistical(
    name: str, text: list[tuple[tuple[str, ...], tuple[str, ...]]], last: int, names: Sequence[str]
) -> list[System]:
    """Both directions, as (source, target), and their combinations; the seconds are of all together."""
    start = time.perf_counter()
    forward = align(name, text, last)
    turned = align(name, [(target, source) for source, target in text], last)
    reverse = [frozenset((i, j) for j, i in links) for links in turned]
    seconds = time.perf_counter() - start
    return [
        System(name, how, [symmetrize(a, b, how) for a, b in zip(forward, reverse, strict=True)], seconds)
        for how in ("forward", "reverse", *names)
    ]


def _neural(
    model: Path, reverse: Path, methods: Sequence[str], names: Sequence[str], test: Sequence[Pair]
) -> list[System]:
    from align.extract import Extraction
    from align.models.load import LoadOptions, load_model

    plan = Comparison(methods, [Extraction(pooling="word")], names)
    systems = compare(plan, load_model(model, LoadOptions()), load_model(reverse, LoadOptions()), test)
    return [System(system.run.method.label, system.direction, system.links, system.seconds) for system in systems]


def _rows(
    systems: Sequence[System], reference: Sequence[GoldAlignment], aligners: Sequence[str]
) -> list[dict[str, object]]:
    """Scores, best first, and the p-value of each difference to the best that each statistical aligner reaches."""
    stats = [corpus_stats(system.links, reference) for system in systems]
    scored = measure(stats, resamples=RESAMPLES, seed=SEED)
    aer = [float(row["aer"] or 0) for row in scored]
    p_values: dict[str, list[float | None]] = {}
    for name in aligners:
        best = min((n for n, system in enumerate(systems) if system.name == name), key=aer.__getitem__)
        _, *others = paired_bootstrap([stats[best], *stats])
        p_values[f"p {name} {systems[best].direction}"] = [
            None if n == best else interval.p_value for n, interval in enumerate(others)
        ]
    return [
        {
            "aligner": systems[n].name,
            "direction": systems[n].direction,
            **{key: scored[n][key] for key in COLUMNS},
            **{title: values[n] for title, values in p_values.items()},
            "seconds": systems[n].seconds,
        }
        for n in sorted(range(len(systems)), key=aer.__getitem__)
    ]


if __name__ == "__main__":
    main()
