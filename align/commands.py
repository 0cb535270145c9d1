"""The commands of `align`: each reads its options, calls the library and writes."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

import click

from align.symmetrize import METHODS, method_name
from align.symmetrize import symmetrize as combine
from data.errors import DataError
from data.links import format_links, read_links
from data.streams import check_paths, write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterator

    from data.links import Links


@click.command()
@click.option("-f", "--forward", required=True, metavar="FILE", help="Links of the source-to-target model.")
@click.option("-r", "--reverse", required=True, metavar="FILE", help="Links of the target-to-source model.")
@click.option("-m", "--method", default="grow-diag-final-and", show_default=True, help=f"One of: {', '.join(METHODS)}.")
@click.option("-o", "--output", default="-", metavar="FILE", help="Where to write (default: standard output).")
@click.option("--overwrite", is_flag=True, help="Replace an existing output file.")
@click.option(
    "--reverse-is-target-source",
    is_flag=True,
    help="The reverse file has its links as target-source: turn them round.",
)
def symmetrize(
    forward: str, reverse: str, method: str, output: str, overwrite: bool, reverse_is_target_source: bool
) -> None:
    """Combine the alignments of both directions, line by line.

    Both files hold zero-based Pharaoh links (`0-0 1-2`), source word first whatever the direction of the
    model, as `nmt-align run`, fast_align and eflomal write them. A FILE of - is standard input or output.

    The grow-diag methods follow Moses; those of fast_align's atools and of alignment-scripts (lilt) differ
    and have names of their own.
    """
    method = method_name(method)
    check_paths((forward, reverse), output, overwrite=overwrite)
    with write_atomically(output) as out:
        for links, reverse_links in _both(forward, reverse, reverse_is_target_source):
            out.write(format_links(combine(links, reverse_links, method)) + "\n")


_CONVERT = "by `nmt-align convert`, --"
"""This command has no options of how to read links."""


def _both(forward: str, reverse: str, swap: bool) -> Iterator[tuple[Links, Links]]:
    """The links of both files, line by line; an error with both counts where one file ends first."""
    rows = zip_longest(read_links(forward, option=_CONVERT), read_links(reverse, swap=swap, option=_CONVERT))
    for number, (left, right) in enumerate(rows):
        if left is None or right is None:
            shorter, longer = (forward, reverse) if left is None else (reverse, forward)
            more = number + 1 + sum(1 for _ in rows)
            raise DataError(f"ends after {number} lines, but {longer} has {more}; both need one line a pair", shorter)
        yield left, right
