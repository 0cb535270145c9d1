"""`nmt-align interactions`: which source words act together on a target word."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import click

from align.options import ModelArguments, TextArguments, model_options, text_options
from data.errors import DataError, UsageError
from data.streams import check_paths, write_atomically, write_bytes_atomically
from eval.purpose import opening, purpose_option, render_report
from eval.tables import FORMATS, Format

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from eval.interactions import Interactions

ASKED = "which source words act on a target word together, so that a list of single scores would miss it?"
READING = (
    "interaction: loss of log p without the first word + without the second - without both. Above 0 the two need each "
    "other; below 0 one can stand in for the other",
)
DEAREST = 40  # source words; passes grow with their square


@click.command()
@model_options
@text_options
@purpose_option
@click.option("--pair", "number", type=click.IntRange(1), help="Only this pair, from 1 (default: all).")
@click.option("--limit", type=click.IntRange(1), default=10, show_default=True, metavar="N", help="First N pairs.")
@click.option("--corruption", default="zero", show_default=True, help="How words are taken out, as for `faithfulness`.")
@click.option("--words", metavar="FILE", help="Words and counts to replace from (default: the model's, or the text's).")
@click.option("--top", type=click.IntRange(1), default=2, show_default=True, help="Pairs of words for a target word.")
@click.option("--plot", metavar="FILE", help="With --pair: a figure of every target word's interactions, .png or .pdf.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="table", show_default=True)
@click.option("-o", "--output", default="-", metavar="FILE", help="Where to write (default: standard output).")
@click.option("--overwrite", is_flag=True, help="Replace existing output files.")
def interactions(
    model: ModelArguments,
    text: TextArguments,
    reader: str,
    number: int | None,
    limit: int,
    corruption: str,
    words: str | None,
    top: int,
    plot: str | None,
    form: Format,
    output: str,
    overwrite: bool,
) -> None:
    """Tell which source words act together on a target word, for short sentences.

    Takes every word and every two words out of the sentence: I (I + 1) / 2 passes for I source words.
    """
    for path in (output, plot):
        check_paths(text.paths, path, overwrite=overwrite)
    if plot and (number is None or not plot.endswith((".png", ".pdf"))):
        raise UsageError("--plot draws one pair, named by --pair, as .png or .pdf")
    from align.models.load import load_model
    from eval.erasure import make_corruptions
    from eval.faithfulness_command import word_source
    from eval.interactions import interactions as measure
    from eval.interactions import strongest

    options, stream = model.load_options(text.pairs())
    loaded = load_model(model.model, options)
    pairs = list(islice(stream, limit if number is None else number))
    if number is not None:
        if len(pairs) < number:
            raise DataError(f"there is no pair {number}: the text has {len(pairs)}")
        pairs = pairs[number - 1 :]
    ways = make_corruptions(loaded, [corruption], words or word_source(loaded, pairs))[corruption]
    rows, found = [], None
    for pair in pairs:
        encoded = loaded.encode_pair(pair)
        if encoded.status != "ok" or len(encoded.source_words) > DEAREST:
            status = encoded.status if encoded.status != "ok" else f"longer than {DEAREST} words"
            click.echo(f"note: pair {pair.id + 1} is {status} and left out", err=True)
            continue
        found = measure(loaded, encoded, ways)
        rows += strongest(found, top)
    with write_atomically(output) as out:
        out.write(render_report(form, [*opening(reader, ASKED), *READING], rows))
    if plot and found is not None:
        _draw(found, plot)


def _draw(found: Interactions, path: str) -> None:
    figure = figure_of(found)
    undated = {"CreationDate": None} if path.endswith(".pdf") else None  # equal input gives equal bytes
    with write_bytes_atomically(path) as out:
        figure.savefig(out, format=path[-3:], dpi=150, bbox_inches="tight", metadata=undated)


def figure_of(found: Interactions) -> Figure:
    """A square for each target word: red where two source words need each other, blue where one stands in.

    Raises:
        UsageError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError("--plot needs matplotlib: pip install 'nmt-align[plot]'") from None
    from eval.text import visible

    source, target = ([visible(word) for word in words] for words in (found.pair.source_words, found.pair.target_words))
    across = min(4, len(target))
    down = -(-len(target) // across)
    side = 0.22 * len(source) + 0.9
    figure = Figure(figsize=(side * across, side * down), layout="constrained")
    limit = abs(found.pairs).max() or 1.0
    for j, axes in enumerate(figure.subplots(down, across, squeeze=False).flat):
        if j >= len(target):
            axes.set_axis_off()
            continue
        axes.imshow(found.pairs[j], cmap="RdBu_r", vmin=-limit, vmax=limit)
        axes.set_title(target[j], fontsize=8, parse_math=False)
        axes.set_xticks(range(len(source)), source, rotation=90, fontsize=6, parse_math=False)
        axes.set_yticks(range(len(source)), source, fontsize=6, parse_math=False)
        axes.tick_params(length=0)
    return figure
