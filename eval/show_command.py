"""`nmt-align show`: one sentence pair in the terminal."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any

import click

from data.errors import DataError
from data.streams import check_paths
from eval.alignment_input import material_options, read_material
from eval.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from data.bitext import Pair
    from data.links import GoldAlignment, Link, Links

LEGEND = "* hit   + hit, possible only   x false   o missed   . nothing"


@click.command()
@click.argument("alignment")
@material_options
@click.option("--pair", "number", type=click.IntRange(1), default=1, show_default=True, help="Which pair, from 1.")
def show(alignment: str, number: int, **where: Any) -> None:
    """Print one sentence pair of ALIGNMENT as a matrix, and the linked words beside it.

    Rows are target words, columns source words. ALIGNMENT is a link file with the text by --source and --target, or
    a .jsonl file of `run --matrices`.
    """
    check_paths((alignment, where["gold"], *where["text"].paths))
    material = read_material((alignment,), **where)
    if number > len(material.pairs):
        raise DataError(f"there is no pair {number}: {len(material.pairs)} pairs", alignment)
    gold = material.gold[number - 1] if material.gold else None
    for line in picture(material.pairs[number - 1], material.alignments[0].links[number - 1], gold):
        click.echo(line)


def picture(pair: Pair, links: Links, gold: GoldAlignment | None = None) -> Iterator[str]:
    """The lines of a pair: source words with their numbers, then a row for each target word with what is linked."""
    source, target = ([visible(word) for word in words] for words in (pair.source, pair.target))
    yield "  ".join(f"{i} {word}" for i, word in enumerate(source))
    yield ""
    width = max(map(_width, target), default=0)
    margin = " " * (width + 5)
    if len(source) > 10:
        yield (margin + " ".join(" " if i % 10 else str(i // 10) for i in range(len(source)))).rstrip()
    yield margin + " ".join(str(i % 10) for i in range(len(source)))
    for j, word in enumerate(target):
        marks = [_mark((i, j), links, gold) for i in range(len(source))]
        ends = [source[i] + (f"({mark})" if gold else "") for i, mark in enumerate(marks) if mark != "."]
        cells = f"{j:>3} {word}{' ' * (width - _width(word))} {' '.join(marks)}"
        yield f"{cells}  {' '.join(ends)}".rstrip()
    if gold is not None:
        yield ""
        yield LEGEND


def _mark(link: Link, links: Links, gold: GoldAlignment | None) -> str:
    made = link in links
    if gold is None:
        return "*" if made else "."
    if link in gold.sure:
        return "*" if made else "o"
    return ("+" if link in gold.possible else "x") if made else "."


def _width(word: str) -> int:
    """Columns that a word takes in a terminal."""
    return sum(
        0 if unicodedata.category(c) in ("Mn", "Me", "Cf") else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in word
    )
