"""How much is lost by choosing without gold: `nmt-align choose` against the best choice by gold, in AER points.

    python -m bench.regret --gold FOLDER --model en-fr.pt --reverse-model fr-en.pt --method 'auto(attention)'

A folder holds `src`, `tgt` and `gold` (zero-based, `p` for possible). Both directions are counted: the AER of the
method chosen for a direction, less the least AER of any candidate for it; and the same for links of both directions
by soft agreement, where one method stands for both.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from align.agreement import Agreement
from align.bidirectional import combined_scores
from align.choose import candidates, ranked
from align.extract import Extraction
from align.many import links_of, run_methods
from align.models.load import LoadOptions, load_model
from align.pipeline import BATCH_PIECES, encode_pairs
from data.bitext import Pair, read_bitext
from data.links import read_gold
from eval.aer import corpus_stats, scores, total
from eval.tables import render

if TYPE_CHECKING:
    from collections.abc import Sequence

    from align.many import Run
    from align.methods.base import Method
    from data.links import GoldAlignment, Links

FILE = click.Path(exists=True, path_type=Path)


@click.command()
@click.option("--gold", type=FILE, required=True)
@click.option("--model", type=FILE, required=True)
@click.option("--reverse-model", type=FILE, required=True)
@click.option("--method", "specs", multiple=True, default=("auto",), show_default=True, help="As for `choose`.")
@click.option("--limit", type=int, default=100, show_default=True, help="Pairs of the gold set.")
def main(gold: Path, model: Path, reverse_model: Path, specs: tuple[str, ...], limit: int) -> None:
    """Print what is chosen from each --method, and its regret; every candidate runs once."""
    pairs = list(islice(read_bitext(gold / "src", gold / "tgt"), limit))
    flipped = [Pair(pair.id, pair.target, pair.source) for pair in pairs]
    reference = list(islice(read_gold(gold / "gold", "gold"), limit))
    runs: list[list[Run]] = []
    wanted: list[list[set[Method]]] = []
    for path, text in ((model, pairs), (reverse_model, flipped)):
        loaded = load_model(path, LoadOptions())
        encoded = encode_pairs(loaded, text)
        wanted.append([set(candidates(spec, loaded, encoded)) for spec in specs])
        methods = sorted(set().union(*wanted[-1]), key=str)
        runs.append(run_methods(loaded, encoded, methods, [Extraction()], BATCH_PIECES))
    rows = []
    for number, spec in enumerate(specs):
        forward, reverse = ([run for run in runs[k] if run.method in wanted[k][number]] for k in (0, 1))
        rows += _rows(spec, forward, reverse, reference)
    click.echo(render(rows, "table"), nl=False)


def _rows(
    spec: str, forward: Sequence[Run], reverse: Sequence[Run], reference: Sequence[GoldAlignment]
) -> list[dict[str, object]]:
    """Three rows: the direction of each model, and both by soft agreement of one method."""
    found = ranked(forward, reverse)
    best, one = found[0], next(choice for choice in found if choice.method == choice.reverse_method)
    ours = {
        run.method: _error([links_of(a, "forward") for _, a in sorted(run.aligned.items())], reference)
        for run in forward
    }
    theirs = {
        run.method: _error([links_of(a, "reverse") for _, a in sorted(run.aligned.items())], reference)
        for run in reverse
    }
    other = {run.method: run for run in reverse}
    both = {run.method: _agreed(run, other[run.method], reference) for run in forward if run.method in other}
    return [
        _row(spec, "forward", best.method, best.agreement, ours),
        _row(spec, "reverse", best.reverse_method, best.agreement, theirs),
        _row(spec, "agreement", one.method, one.agreement, both),
    ]


def _agreed(forward: Run, reverse: Run, reference: Sequence[GoldAlignment]) -> float:
    links = [
        frozenset(combined_scores(a, reverse.aligned[key], Agreement())) for key, a in sorted(forward.aligned.items())
    ]
    return _error(links, reference)


def _error(links: Sequence[Links], reference: Sequence[GoldAlignment]) -> float:
    return float(scores(total(corpus_stats(links, reference))).aer or 0.0)


def _row(spec: str, direction: str, chosen: Method, agreement: float, errors: dict[Method, float]) -> dict[str, object]:
    best = min(errors, key=errors.__getitem__)
    return {
        "from": spec,
        "candidates": len(errors),
        "direction": direction,
        "chosen": chosen.label,
        "agree": agreement,
        "aer": errors[chosen],
        "best by gold": best.label,
        "best": f"{100 * errors[best]:.1f}",
        "regret": f"{100 * (errors[chosen] - errors[best]):.1f}",
    }


if __name__ == "__main__":
    main()
