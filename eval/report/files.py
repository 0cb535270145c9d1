"""The report of alignments without a comparison: link files, soft alignments, or what `run` has just made."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from data.bitext import Pair
from eval.report.build import MAX_PAIRS, Report, System
from eval.report.render import write_report

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from align.pipeline import Aligned
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


class RunReport:
    """The report of `run`, which streams: it keeps the first pairs and counts the rest."""

    def __init__(self) -> None:
        self._kept: list[Aligned] = []
        self._seen = 0

    def add(self, result: Aligned) -> None:
        """Take the next result."""
        self._seen += 1
        if len(self._kept) < MAX_PAIRS:
            self._kept.append(result)

    def write(self, path: str, signature: str) -> list[str]:
        """Write the page and return what is not in it, in words."""
        kept = [result.encoded for result in self._kept]
        pairs = [Pair(k, tuple(pair.source_words), tuple(pair.target_words)) for k, pair in enumerate(kept)]
        links = [result.links for result in self._kept]
        shares = partial(_shares, [result.matrix for result in self._kept])
        row = {"links": sum(map(len, links)), "signature": signature}
        system = System(signature.partition("|")[0].removeprefix("method:"), "", links, row, shares, SOFT_NOTE)
        cut = f"the first {len(kept):,} of " if self._seen > len(kept) else ""
        fact = f"{cut}{self._seen:,} sentence pairs"
        return write_report(Report("Word alignment", [fact], pairs, [system]), path) + ([fact] if cut else [])
