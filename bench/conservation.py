"""Where the logits of target pieces go under LRP, and what their parts lack of them.

    python -m bench.conservation --model en-fr.pt --gold FOLDER --method lrp --method lrp:attention=held

The folder holds `src` and `tgt`.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click
import torch

from align.methods import make_method
from align.methods.propagation import Lrp, budget
from align.models.load import LoadOptions, load_model
from data.bitext import read_bitext
from data.errors import UsageError
from eval.tables import render

if TYPE_CHECKING:
    from align.models.base import Encoded, TranslationModel

PARTS = ("source", "inputs", "biases", "softmax")


@click.command()
@click.option("--model", type=click.Path(exists=True, path_type=Path), required=True)
@click.option("--gold", type=click.Path(exists=True, file_okay=False, path_type=Path), required=True)
@click.option("--method", "specs", multiple=True, default=("lrp",), show_default=True, help="LRP with its options.")
@click.option("--dtype", type=click.Choice(["float32", "float64"]), default="float64", show_default=True)
@click.option("--limit", default=20, show_default=True, help="Pairs to look at.")
def main(model: Path, gold: Path, specs: tuple[str, ...], dtype: str, limit: int) -> None:
    """Print, over all target pieces, the mean logit, its parts, and the largest error of conservation."""
    loaded = load_model(model, LoadOptions(dtype=dtype))
    pairs = [loaded.encode_pair(pair) for pair in islice(read_bitext(gold / "src", gold / "tgt"), limit)]
    rows = [_row(loaded, [pair for pair in pairs if pair.status == "ok"], spec) for spec in specs]
    click.echo(render(rows, "table"), nl=False)


def _row(model: TranslationModel, pairs: list[Encoded], spec: str) -> dict[str, object]:
    method = make_method(spec)
    if not isinstance(method, Lrp):
        raise UsageError(f"{spec} is not LRP, which alone conserves the logit")
    budgets = [budget(model, pair, method) for pair in pairs]
    logits = torch.cat([found.logit for found in budgets])
    parts = {part: torch.cat([getattr(found, part) for found in budgets]) for part in PARTS}
    errors = torch.cat([found.error for found in budgets])
    return {
        "method": method.label,
        "pieces": len(logits),
        "logit": float(logits.mean()),
        **{part: float(values.mean()) for part, values in parts.items()},
        "largest error": f"{float(errors.max()):.1e}",
    }


if __name__ == "__main__":
    main()
