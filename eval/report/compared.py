"""The report of a comparison: every method, layer, direction and symmetrisation as a system."""

from __future__ import annotations

from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from align.extract import row_shares
from align.methods.cards import card_facts
from data.bitext import Pair
from eval.report.build import Report, System

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from align.extract import Matrix
    from align.methods.base import Method
    from align.pipeline import Aligned
    from data.links import GoldAlignment
    from eval import compare


def comparison_report(
    ranked: Sequence[tuple[compare.System, Mapping[str, object]]],
    gold: Sequence[GoldAlignment],
    facts: Sequence[str],
    interactions: Mapping[int, Matrix] = MappingProxyType({}),
) -> Report:
    """The report of systems with their rows, best first (see `eval.compare.score_systems`).

    Args:
        interactions: by the number of the pair, see `eval.interactions.of_short_pairs`.
    """
    first = next(system.run.aligned for system, _ in ranked if system.direction == "forward")
    keys = sorted(first)
    reverse = {(s.run.method, s.run.how): s.run.aligned for s, _ in ranked if s.direction == "reverse"}
    readers: dict[tuple[Method, str], Callable[[int], Matrix]] = {}
    systems = []
    for system, row in ranked:
        run, side = system.run, system.direction if system.direction in _SHARES else "both"
        other = reverse.get((run.method, run.how), {})
        reader = readers.setdefault((run.method, side), partial(_SHARES[side], run.aligned, other, keys))
        systems.append(System(run.method.name, details(row), system.links, row, reader, _NOTES[side]))
    return Report(
        "Word alignment: methods compared",
        facts,
        [Pair(k, tuple(first[k].encoded.source_words), tuple(first[k].encoded.target_words)) for k in keys],
        systems,
        gold,
        {name: card_facts(name) for name in dict.fromkeys(system.run.method.name for system, _ in ranked)},
        interactions={k: interactions[key] for k, key in enumerate(keys) if key in interactions},
    )


def _forward(ours: Mapping[int, Aligned], _: Mapping[int, Aligned], keys: Sequence[int], k: int) -> Matrix:
    return row_shares(ours[keys[k]].matrix)


def _reverse(ours: Mapping[int, Aligned], _: Mapping[int, Aligned], keys: Sequence[int], k: int) -> Matrix:
    return row_shares(ours[keys[k]].matrix).T


def _both(ours: Mapping[int, Aligned], theirs: Mapping[int, Aligned], keys: Sequence[int], k: int) -> Matrix:
    mean: Matrix = (_forward(ours, theirs, keys, k) + _reverse(theirs, ours, keys, k)) / 2
    return mean


_SHARES = {"forward": _forward, "reverse": _reverse, "both": _both}
_NOTES = {
    "forward": "Share of each source word in what is found for a target word; a row adds up to 1.",
    "reverse": "Share of each target word in what is found for a source word; a column adds up to 1.",
    "both": "Mean of the shares that both directions give.",
}


def details(row: Mapping[str, object]) -> str:
    """What tells a row of a comparison from others of its method, direction and pooling, for people."""
    parts = [f"layer {row['layer']}" if row["layer"] is not None else ""]
    parts.append("" if row["heads"] in (None, "mean") else f"head {row['heads']}")
    parts.append(str(row["position"] or "").upper())
    parts.append(str(row["options"]).replace(":", ", "))
    return ", ".join(filter(None, parts))
