"""The report of alignment files: plain links, or soft alignments with their heat maps."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from eval.report.build import Report, System

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from eval.alignment_input import Material

SOFT_NOTE = "Share of each source word in what is found for a target word; a row adds up to 1."


def files_report(material: Material, rows: Sequence[Mapping[str, object]]) -> Report:
    """The report of alignments, each with its row of scores; the best AER comes first."""
    systems = [
        System(
            alignment.name,
            "",
            alignment.links,
            {"signature": alignment.signature, **row},
            None if alignment.matrices is None else partial(_shares, alignment.matrices),
            SOFT_NOTE,
        )
        for alignment, row in zip(material.alignments, rows, strict=True)
    ]
    if material.gold is not None:
        systems.sort(key=lambda system: (system.row["aer"] is None, system.row["aer"]))
    facts = [f"{len(material.pairs):,} sentence pairs"]
    if material.gold is not None:
        sure = sum(len(pair.sure) for pair in material.gold)
        possible = sum(len(pair.possible) for pair in material.gold)
        facts.append(f"{sure:,} sure and {possible - sure:,} merely possible gold links")
    return Report("Word alignments", facts, material.pairs, systems, material.gold)


def _shares(matrices: Sequence[NDArray[np.float64]], k: int) -> NDArray[np.float64]:
    from align.extract import row_shares  # it brings torch along, which plain links do without

    return row_shares(matrices[k])
