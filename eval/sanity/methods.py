"""All checks of methods, and their report."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from align.progress import progress_bar
from eval.sanity import invariance, randomisation
from eval.sanity.patterns import check_names
from eval.tables import render

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from align.methods.base import Method
    from align.models.base import Encoded, TranslationModel
    from eval.tables import Format

    Tables = dict[str, list[dict[str, object]]]

CHECKS = (*randomisation.ORDERS, "invariance")
COLUMNS = ("method", "measures", *invariance.CHECKS, "invariant")


def check(
    model: TranslationModel,
    pairs: Sequence[Encoded],
    methods: Sequence[Method],
    checks: Sequence[str],
    settings: Mapping[str, Any],
    batch_pieces: int,
    resamples: int,
) -> Tables:
    """The tables `randomisation` and `invariance`, empty where not asked for.

    Args:
        checks: some of `CHECKS`.
        settings: fields of `invariance.Settings`.

    Raises:
        UsageError: an unknown check.
        ModelError: a model whose weights cannot be made random.
    """
    orders = [name for name in check_names("check", checks, CHECKS) if name in randomisation.ORDERS]
    seed = int(settings["seed"])
    tables: Tables = {"randomisation": [], "invariance": []}
    if orders:
        states = len(randomisation.steps(model, orders)) + 1 + ("cascading" in orders)
        found = randomisation.randomise(model, pairs, methods, orders, seed, batch_pieces, progress_bar(states))
        tables["randomisation"] = randomisation.randomisation_rows(found, resamples, seed)
    if "invariance" in checks:
        held = invariance.check_methods(
            model,
            pairs,
            methods,
            invariance.Settings(**settings),
            batch_pieces,
            progress_bar(len(pairs) * len(methods)),
        )
        tables["invariance"] = invariance.check_rows(held, pairs, resamples, seed)
    return tables


def report(form: Format, first: Sequence[str], tables: Tables) -> str:
    """The tables after the opening lines `first`; TSV is the first table that is not empty."""
    closing = randomisation.conclusions(tables["randomisation"])
    if form == "json":
        whole: dict[str, Any] = {"opening": list(first)}
        whole |= {name: json.loads(render(rows, form)) for name, rows in tables.items()}
        return json.dumps({**whole, "conclusions": closing}, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    if form == "tsv":
        return render(tables["randomisation"] or tables["invariance"], form)
    parts = ["\n".join(first)]
    for order in randomisation.ORDERS:
        pivot = randomisation.pivoted(tables["randomisation"], order)
        if pivot:
            parts.append(f"Randomised, {order}: Spearman's rho of maps with those of the model\n{render(pivot, form)}")
    parts += ["\n".join(closing)] if closing else []
    if tables["invariance"]:
        parts.append(render(tables["invariance"], form, COLUMNS))
        parts.append("\n".join(f"{name}: {text}" for name, text in invariance.CHECKS.items()))
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"
