"""`nmt-align plot`: the soft alignment of one pair as a figure for a paper."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import click

from data.errors import DataError, UsageError, printable
from data.streams import check_paths, write_bytes_atomically
from eval.soft_alignments import is_soft, read_soft
from eval.text import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from eval.soft_alignments import SoftAlignment

SUFFIXES = (".pdf", ".png")
CELL = 0.24  # inches


@click.command()
@click.argument("alignment")
@click.option("--pair", "number", type=click.IntRange(1), default=1, show_default=True, help="Which pair, from 1.")
@click.option("-o", "--output", required=True, metavar="FILE", help="The figure, .pdf or .png.")
@click.option("--font", multiple=True, metavar="NAME", help="Font of the words; further ones fill its gaps.")
@click.option("--links/--no-links", default=True, show_default=True, help="Mark the links.")
@click.option("--overwrite", is_flag=True, help="Replace an existing figure.")
def plot(alignment: str, number: int, output: str, font: tuple[str, ...], links: bool, overwrite: bool) -> None:
    """Draw the soft alignment of one pair of ALIGNMENT, a .jsonl file of `run --matrices`.

    Rows are target words, columns source words; the darker a cell, the greater its share of the row. Dots are links.
    """
    if not is_soft(alignment):
        raise UsageError(f"{alignment}: expected a .jsonl file of `nmt-align run --matrices`")
    suffix = Path(output).suffix
    if suffix not in SUFFIXES:
        raise UsageError(f"{output}: the name must end in {' or '.join(SUFFIXES)}")
    check_paths((alignment,), output, overwrite=overwrite)
    soft = next((one for one in read_soft(alignment) if one.pair.id == number - 1), None)
    if soft is None:
        raise DataError(f"there is no pair {number}", alignment)
    figure = heat_map(soft, links=links, fonts=font)
    # Without a date, equal input gives equal bytes.
    undated = {"CreationDate": None} if suffix == ".pdf" else None
    with write_bytes_atomically(output) as out, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        figure.savefig(out, format=suffix[1:], dpi=200, bbox_inches="tight", metadata=undated)
    for message in sorted({str(warning.message) for warning in caught}):
        hint = "; --font names a font that has it" if message.startswith("Glyph") else ""
        click.echo(f"note: {message}{hint}", err=True)


def heat_map(soft: SoftAlignment, *, links: bool = True, fonts: Sequence[str] = ()) -> Figure:
    """The shares of a soft alignment in grey, a row for each target word, with dots on its links.

    Raises:
        UsageError: matplotlib is not installed, or does not know a font.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError("plot needs matplotlib: pip install 'nmt-align[plot]'") from None
    from align.extract import row_shares

    families = [*map(_known_font, fonts), "DejaVu Sans"]
    source, target = ([visible(word) for word in words] for words in (soft.pair.source, soft.pair.target))
    figure = Figure(figsize=(CELL * max(1, len(source)), CELL * max(1, len(target))))
    axes = figure.add_axes((0, 0, 1, 1))
    if source and target:
        axes.imshow(row_shares(soft.matrix), cmap="Greys", vmin=0, vmax=1, aspect="auto")
    axes.xaxis.tick_top()
    axes.set_xticks(range(len(source)), source, rotation=90, fontfamily=families, parse_math=False)
    axes.set_yticks(range(len(target)), target, fontfamily=families, parse_math=False)
    axes.tick_params(length=0)
    if links:
        for i, j in sorted(soft.links):
            axes.plot(i, j, "o", markersize=4, markerfacecolor="white", markeredgecolor="black")
    return figure


def _known_font(name: str) -> str:
    from matplotlib.font_manager import findfont

    try:
        findfont(name, fallback_to_default=False)
    except ValueError:
        raise UsageError(f"font {printable(name)} is not installed") from None
    return name
