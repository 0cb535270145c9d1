"""`nmt-align shares`: how much of each target word comes from the source, and how much from the target prefix."""

from __future__ import annotations

import click

from align.options import ModelArguments, TextArguments, model_options, text_options
from data.streams import check_paths, write_atomically


@click.command()
@model_options
@text_options
@click.option("-o", "--output", default="-", metavar="FILE", help="Where to write (default: standard output).")
@click.option("--overwrite", is_flag=True, help="Replace an existing output file.")
def shares(
    model: ModelArguments,
    text: TextArguments,
    output: str,
    overwrite: bool,
) -> None:
    """Write a TSV row for each target word: line, position from 0, word, share of the source, share of the prefix.

    The shares are contributions by ALTI+ through all layers, a word's being the mean over its pieces; they sum to 1.
    A small share of the source means that the word follows from the words before it, rightly or not. Pairs that are
    empty or too long for the model have no rows and are counted on standard error.
    """
    check_paths(text.paths, output, overwrite=overwrite)
    from align.methods.shares import word_shares
    from align.models.load import load_model

    options, pairs = model.load_options(text.pairs())
    loaded = load_model(model.model, options)
    left_out = 0
    with write_atomically(output) as out:
        out.write("line\tposition\tword\tsource\tprefix\n")
        for pair, found in word_shares(loaded, pairs):
            left_out += pair.status != "ok"
            for position, (word, share) in enumerate(zip(pair.target_words, found, strict=True) if found else ()):
                out.write(f"{pair.pair.id + 1}\t{position}\t{word}\t{share:.4f}\t{1 - share:.4f}\n")
    if left_out:
        click.echo(f"note: {left_out} pairs are empty or too long and have no rows", err=True)
