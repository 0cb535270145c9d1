"""`nmt-align choose`: a method or layer for text without gold links."""

from __future__ import annotations

from itertools import islice

import click

from align.options import ModelArguments, TextArguments, extraction, extraction_options, model_options, text_options
from align.progress import progress_bar
from data.errors import UsageError
from data.streams import check_paths, write_atomically


@click.command("choose")
@model_options
@text_options
@click.option(
    "--method",
    default="auto",
    show_default=True,
    help="What to choose from: `auto`, `auto(attention,lrp)`, or `attention:layer=auto`.",
)
@click.option("--pooling", type=click.Choice(["piece", "word"]), default="word", show_default=True)
@click.option("--pairs", "limit", type=click.IntRange(1), default=100, show_default=True, help="Pairs to choose on.")
@extraction_options
@click.option("--top", type=click.IntRange(1), default=10, show_default=True, help="Choices to print.")
@click.option("-o", "--output", default="-", metavar="FILE", help="Where to write (default: standard output).")
@click.option("--overwrite", is_flag=True, help="Replace an existing output file.")
def choose_command(
    model: ModelArguments,
    text: TextArguments,
    method: str,
    pooling: str,
    limit: int,
    extractor: str,
    threshold: float,
    eos: str,
    punctuation: bool,
    batch_pieces: int,
    max_unknown: float,
    top: int,
    output: str,
    overwrite: bool,
) -> None:
    """Choose a method for each direction without gold links, as TSV, best first.

    The criterion is how far the links of both directions agree: 2 |A and B| / (|A| + |B|). It needs both models; for
    links of one direction, choose here and give the method to `run`. What agrees is not for that reason faithful to
    the model. `auto` tries every method that takes at most a pass for each piece of a pair; name dear ones.
    """
    check_paths(text.paths, output, overwrite=overwrite)
    if model.reverse_model is None:
        raise UsageError("choosing compares the links of both directions: give --reverse-model")
    from align.choose import choose
    from align.models.load import load_model

    options, stream = model.load_options(text.pairs())
    forward, reverse = load_model(model.model, options), load_model(model.reverse_model, options.swapped())
    how = extraction(pooling, extractor, threshold, eos, punctuation)
    pairs = list(islice(stream, limit))
    found = choose(method, forward, reverse, pairs, how, batch_pieces, max_unknown, progress_bar)
    with write_atomically(output) as out:
        out.write("agreement\tmethod\treverse_method\n")
        for choice in found[:top]:
            out.write(f"{choice.agreement:.4f}\t{choice.method}\t{choice.reverse_method}\n")
