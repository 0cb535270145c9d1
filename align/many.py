"""Several methods over the same pairs: what is dear is computed once for all that read it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from align.extract import extract
from align.models.base import plan_batches
from align.pipeline import aligned, unaligned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from align.extract import Extraction
    from align.methods.base import Evidence, Method
    from align.models.base import Encoded, TranslationModel
    from align.pipeline import Aligned
    from data.links import Links


@dataclass
class Run:
    """One method with one way of extraction on one model: an alignment for each pair, and what it cost."""

    method: Method
    how: Extraction
    aligned: dict[int, Aligned] = field(default_factory=dict)
    seconds: float = 0.0
    passes: float = 0.0
    incompleteness: float = 0.0  # sum over target pieces of |row sum - (log p(x) - log p(baseline))|
    pieces: int = 0


def run_methods(
    model: TranslationModel,
    pairs: Sequence[Encoded],
    methods: Sequence[Method],
    hows: Sequence[Extraction],
    batch_pieces: int,
    advance: Callable[[float], object] = lambda passes: None,
) -> list[Run]:
    """Run methods over pairs that are cut into pieces; methods that read the same evidence share its computation.

    Each run's seconds are those it would take alone: the evidence, its reading and the extraction of links.
    """
    groups: dict[Evidence, list[Run]] = {}
    for method in methods:
        groups.setdefault(method.evidence.on(model), []).extend(Run(method, how) for how in hows)
    good = [pair for pair in pairs if pair.status == "ok"]
    for evidence, runs in groups.items():
        for group in plan_batches(good, batch_pieces * evidence.batch_factor):
            _run_batch(model, group, evidence, runs)
            advance(sum(evidence.passes(pair).total for pair in group))
        for run in runs:
            run.passes = sum(evidence.passes(pair).total for pair in good)
            run.aligned.update({pair.pair.id: unaligned(pair) for pair in pairs if pair.status != "ok"})
    return [run for runs in groups.values() for run in runs]


def _run_batch(model: TranslationModel, group: list[Encoded], evidence: Evidence, runs: Sequence[Run]) -> None:
    start = time.perf_counter()
    batch = model.batch(group)
    found = evidence.take(model, batch)
    shared = time.perf_counter() - start
    for run in runs:
        start = time.perf_counter()
        links = extract(run.method.read(found, batch), batch, run.how)
        run.aligned.update({p.pair.id: aligned(p, x) for p, x in zip(group, links, strict=True)})
        run.seconds += shared + time.perf_counter() - start
        if "completeness" in found:
            run.incompleteness += float(found["completeness"].sum())
            run.pieces += int(batch.target_mask.sum())


def planned_passes(model: TranslationModel, pairs: Sequence[Encoded], methods: Iterable[Method]) -> float:
    """The passes that `run_methods` will report in all."""
    evidence = {method.evidence.on(model) for method in methods}
    return sum(e.passes(pair).total for e in evidence for pair in pairs if pair.status == "ok")


def links_of(result: Aligned, direction: str) -> Links:
    """Links as (source, target) of the text; the reverse model's are turned round."""
    return result.links if direction == "forward" else frozenset((j, i) for i, j in result.links)
