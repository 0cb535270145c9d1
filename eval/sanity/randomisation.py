"""Do maps change when the model is no longer the model? Randomisation after Adebayo et al. 2018.

Weights are drawn anew from the output down to the embeddings, block after block (cascading), or one block at a time
(independent); maps before and after are compared by Spearman's rho over source words, row by row. A method whose maps
stay explains the input, not the model. Two random models also agree somewhat, by length and position alone: the floor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from align.extract import Extraction
from align.many import run_methods
from align.models.altered import blocks, randomised
from eval.agreement import spearman_rows
from eval.bootstrap import paired_means

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from align.methods.base import Method
    from align.models.base import Encoded, TranslationModel
    from eval.agreement import Floats

    Maps = dict[Method, list[Floats]]
    """For each method its word maps [J, I], pair by pair."""

ORDERS = ("cascading", "independent")
FLOOR = "floor"
UNCHANGED = 0.3


@dataclass(frozen=True)
class Step:
    """A state of the model: which blocks are random. `block` is the one that became so last."""

    order: str
    block: str
    random: tuple[str, ...]


def steps(model: TranslationModel, orders: Sequence[str]) -> list[Step]:
    """Every state that is looked at. Raises ModelError as `align.models.altered.blocks`."""
    names = list(blocks(model))
    found = []
    if "cascading" in orders:
        found += [Step("cascading", name, tuple(names[: n + 1])) for n, name in enumerate(names)]
    if "independent" in orders:
        found += [Step("independent", name, (name,)) for name in names]
    return found


def randomise(
    model: TranslationModel,
    pairs: Sequence[Encoded],
    methods: Sequence[Method],
    orders: Sequence[str],
    seed: int,
    batch_pieces: int,
    advance: Callable[[float], object] = lambda states: None,
) -> dict[Method, dict[Step, list[float]]]:
    """Mean rho of each sentence's maps before and after every step, NaN where no row has one.

    The floor is a step too: the maps of two models that are random altogether, against each other.
    """

    def maps(random: Sequence[str], with_seed: int) -> Maps:
        with randomised(model, random, with_seed):
            runs = run_methods(model, pairs, methods, [Extraction()], batch_pieces)
        advance(1)
        return {run.method: [run.aligned[pair.pair.id].matrix for pair in pairs] for run in runs}

    before = maps((), seed)
    found: dict[Method, dict[Step, list[float]]] = {method: {} for method in methods}
    everything = tuple(blocks(model))
    last: Maps | None = None
    for step in steps(model, orders):
        after = maps(step.random, seed)
        if step.random == everything:
            last = after
        for method in methods:
            found[method][step] = _rhos(before[method], after[method])
    if last is not None:
        other = maps(everything, seed + 1)
        for method in methods:
            found[method][Step("cascading", FLOOR, everything)] = _rhos(last[method], other[method])
    return found


def _rhos(before: Sequence[Floats], after: Sequence[Floats]) -> list[float]:
    """The mean over rows of Spearman's rho, for each sentence."""
    means = []
    for one, other in zip(before, after, strict=True):
        rows = spearman_rows(np.stack([one, other]))[0, 1]
        defined = rows[~np.isnan(rows)]
        means.append(float(defined.mean()) if len(defined) else float("nan"))
    return means


def randomisation_rows(
    found: dict[Method, dict[Step, list[float]]], resamples: int, seed: int
) -> list[dict[str, object]]:
    """A row for each method and step: `rho` over the corpus, the mean of sentences, with its 95% interval."""
    rows: list[dict[str, object]] = []
    for method, by_step in found.items():
        tables = [[(0.0, 0.0) if np.isnan(v) else (v, 1.0) for v in values] for values in by_step.values()]
        for step, mean in zip(by_step, paired_means(tables, resamples, seed), strict=True):
            row: dict[str, object] = {"method": method.label, "measures": method.measured}
            row |= {"order": step.order, "block": step.block}
            rows.append(row | {"rho": mean.value, "rho_low": mean.low, "rho_high": mean.high})
    return rows


def pivoted(rows: Sequence[dict[str, object]], order: str) -> list[dict[str, object]]:
    """The rho of one order as a table: methods down, blocks across."""
    table: dict[str, dict[str, object]] = {}
    for row in rows:
        if row["order"] == order:
            cells = table.setdefault(str(row["method"]), {"method": row["method"]})
            cells[str(row["block"])] = row["rho"]
    return list(table.values())


def conclusions(rows: Sequence[dict[str, object]]) -> list[str]:
    """Which methods do not see that the model became random, in words."""
    kept = [row for row in rows if row["order"] == "cascading" and row["block"] == "embeddings"]
    lines = []
    for row in kept:
        low = row["rho_low"] if row["rho_low"] is not None else row["rho"]
        if isinstance(low, float) and low > UNCHANGED:
            lines.append(
                f"{row['method']}: maps stay ({row['rho']:.2f}) when all weights are random: they explain the input"
            )
    if kept and not lines:
        lines = ["No method's maps stay when all weights are random: all of them depend on the model."]
    return lines
