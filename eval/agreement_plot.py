"""The clustered table of agreement as a figure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from data.errors import UsageError
from data.streams import write_bytes_atomically
from eval.agreement import MEASURES, clustering, order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from eval.agreement import Floats

CELL = 0.46  # inches
TREE = 1.0  # inches
LABELS = 3.4  # inches


def draw(labels: Sequence[str], table: Floats, measure: str, path: str) -> None:
    """Write the figure of `heat_map`; equal input gives equal bytes.

    Raises:
        UsageError: matplotlib is not installed.
    """
    figure = heat_map(labels, table, measure)
    form = Path(path).suffix[1:]
    undated = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(form)
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "nmt-align"}), write_bytes_atomically(path) as out:
        figure.savefig(out, format=form, dpi=150, metadata=undated, bbox_inches="tight")


def heat_map(labels: Sequence[str], table: Floats, measure: str) -> Figure:
    """A table of `eval.agreement.matrix` in the order of its clustering, with the tree above it and numbers in it.

    Red is agreement and blue its contrary, white none; for divergence, dark is far apart.

    Raises:
        UsageError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError("--plot needs matplotlib: pip install 'nmt-align[plot]'") from None
    places = order(table, measure)
    size = CELL * len(places)
    width, height = LABELS + size + 0.2, TREE + size + LABELS
    figure = Figure(figsize=(width, height))
    left, bottom = LABELS / width, LABELS / height
    axes = figure.add_axes((left, bottom, size / width, size / height))
    shown = table[places][:, places]
    if measure == "jsd":
        axes.imshow(shown, aspect="auto", cmap="Greys", vmin=0, vmax=0.7)
    else:
        axes.imshow(shown, aspect="auto", cmap="RdBu_r", vmin=-1, vmax=1)
    for a, row in enumerate(shown):
        for b, value in enumerate(row):
            if value == value:
                dark = abs(value) > (0.45 if measure == "jsd" else 0.6)
                colour = "white" if dark else "black"
                axes.text(b, a, f"{value:.2f}", ha="center", va="center", fontsize=7, color=colour)
    names = [labels[n] for n in places]
    axes.set_xticks(range(len(names)), names, rotation=90, fontsize=8, parse_math=False)
    axes.set_yticks(range(len(names)), names, fontsize=8, parse_math=False)
    axes.tick_params(length=0)
    if len(places) > 2:
        _tree(figure.add_axes((left, bottom + size / height, size / width, TREE / height * 0.75)), table, measure)
    figure.text(0.5, 1 - 0.12 / height, MEASURES[measure], ha="center", va="top", fontsize=9)
    return figure


def _tree(axes: object, table: Floats, measure: str) -> None:
    """The clustering above its columns."""
    from scipy.cluster.hierarchy import dendrogram

    dendrogram(
        clustering(table, measure),
        ax=axes,
        no_labels=True,
        color_threshold=0,
        above_threshold_color="black",
    )
    axes.axis("off")  # type: ignore[attr-defined]
