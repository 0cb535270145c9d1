"""What `view`, `show` and `plot` look at: alignment files, the text they count, and gold alignments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from align.options import TextArguments, text_options
from data.errors import DataError, UsageError
from data.links import FORMATS, read_links
from eval.options import GoldFormat, gold_format_options
from eval.soft_alignments import is_soft, read_soft

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from data.bitext import Pair
    from data.links import GoldAlignment, Links

F = TypeVar("F", bound="Callable[..., Any]")


@dataclass(frozen=True)
class Alignment:
    """A file of links; `matrices` [J, I] and the `signature` are those of soft alignments."""

    name: str
    links: Sequence[Links]
    matrices: Sequence[NDArray[np.float64]] | None = None
    signature: str | None = None


@dataclass(frozen=True)
class Material:
    """Pairs, alignments of them, and the gold alignments if there are any."""

    pairs: Sequence[Pair]
    alignments: Sequence[Alignment]
    gold: Sequence[GoldAlignment] | None


def material_options(command: F) -> F:
    """The text, how link files are written, and the gold alignments; collected as the rest of `read_material`."""
    command = gold_format_options(command)
    for option in reversed(_OPTIONS):
        command = option(command)
    return text_options(command)


_OPTIONS: list[Callable[[Any], Any]] = [
    click.option(
        "--format",
        "form",
        type=click.Choice(list(FORMATS)),
        default="pharaoh",
        show_default=True,
        help="How links are written.",
    ),
    click.option("--one-based/--zero-based", default=None, help="Base of the links (default: the format's own)."),
    click.option("--swap", is_flag=True, help="Links are written as target-source."),
    click.option("-g", "--gold", metavar="FILE", help="Gold alignments, one line a pair."),
]


def read_material(
    paths: Sequence[str],
    *,
    text: TextArguments,
    form: str,
    one_based: bool | None,
    swap: bool,
    gold: str | None,
    gold_format: GoldFormat,
) -> Material:
    """Read alignment files, in a link format or as soft alignments (`.jsonl`), with their text and gold.

    Raises:
        DataError: files that are malformed or do not fit the text.
        UsageError: no text, neither by options nor in soft alignments.
    """
    alignments, pairs = [], None
    if text.paths:
        pairs = list(text.pairs())
    for path in filter(is_soft, paths):
        alignment, own = _read_soft(path)
        pairs = own if pairs is None else pairs
        _check_words(path, own, pairs)
        alignments.append(alignment)
    if pairs is None:
        raise UsageError("no text: give --source and --target, or --input, or --tsv; a .jsonl file holds its own")
    lengths = [(len(pair.source), len(pair.target)) for pair in pairs]
    for path in paths:
        if not is_soft(path):
            links = list(read_links(path, form, one_based=one_based, swap=swap, lengths=lengths))
            alignments.append(Alignment(path, links))
    alignments.sort(key=lambda alignment: paths.index(alignment.name))
    reference = None
    if gold is not None:
        reference = gold_format.read(gold, lengths)
    return Material(pairs, alignments, reference)


def _read_soft(path: str) -> tuple[Alignment, list[Pair]]:
    found = list(read_soft(path))
    signature = found[0].signature if found else None
    alignment = Alignment(path, [one.links for one in found], [one.matrix for one in found], signature)
    return alignment, [one.pair for one in found]


def _check_words(path: str, own: Sequence[Pair], pairs: Sequence[Pair]) -> None:
    """The words of soft alignments must be those of the text."""
    if len(own) != len(pairs):
        raise DataError(f"soft alignments of {len(own)} pairs, a text of {len(pairs)}", path)
    for ours, theirs in zip(own, pairs, strict=True):
        if (ours.source, ours.target) != (theirs.source, theirs.target):
            raise DataError("the words are not those of the text", path, ours.id + 1)
