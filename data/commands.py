"""The command `convert`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from data.bitext import read_lengths
from data.errors import UsageError
from data.link_formats import FORMATS, link_format
from data.links import GoldAlignment, format_lines, read_gold
from data.streams import check_paths, write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@click.command()
@click.argument("links")
@click.option("-o", "--output", default="-", show_default=True, help="Where to write; - is standard output.")
@click.option("--from", "from_format", required=True, metavar="FORMAT", help="Format of LINKS.")
@click.option("--to", "to_format", required=True, metavar="FORMAT", help="Format to write.")
@click.option(
    "--one-based/--zero-based",
    default=None,
    help="What LINKS counts from. Default: 1 for naacl and talp, else 0.",
)
@click.option(
    "--to-one-based/--to-zero-based",
    default=None,
    help="What to count from in the output. Same default.",
)
@click.option("--swap", is_flag=True, help="Exchange the two positions of every link.")
@click.option("-s", "--source", metavar="FILE", help="Source text (after --swap), to check links against.")
@click.option("-t", "--target", metavar="FILE", help="Target text (after --swap), to check links against.")
@click.option("--all-sure", is_flag=True, help="Make possible links sure.")
@click.option("--ignore-possible", is_flag=True, help="Leave possible links out.")
@click.option("--comment-prefix", metavar="TEXT", help="Leave out lines of LINKS that begin with TEXT.")
@click.option("--overwrite", is_flag=True, help="Replace OUTPUT if it exists.")
def convert(
    links: str,
    output: str,
    from_format: str,
    to_format: str,
    one_based: bool | None,
    to_one_based: bool | None,
    swap: bool,
    source: str | None,
    target: str | None,
    all_sure: bool,
    ignore_possible: bool,
    comment_prefix: str | None,
    overwrite: bool,
) -> None:
    """Convert the alignment file LINKS (- is standard input) from one format to another.

    Formats: pharaoh `0-0 1-2`; gold `0-0 1p2` with possible links; numbered, the same behind an id and a
    tab; naacl `18 1 2 S`, a line a link; talp `1-1 2s3 4p5`. Text may be plain or marked
    `<s snum=18> ... </s>`; the marks give naacl its sentence ids.
    """
    formats = {link_format(from_format), link_format(to_format)}
    if (source is None) != (target is None):
        raise UsageError("--source and --target belong together")
    if all_sure and ignore_possible:
        raise UsageError("--all-sure and --ignore-possible exclude each other")
    check_paths((links, source, target), output, overwrite=overwrite)
    ids: Sequence[int] | None = None
    lengths: Iterable[tuple[int, int]] | None = None
    if source is not None and target is not None:
        text = read_lengths(source, target)
        if FORMATS["naacl"] in formats:
            text = iter(known := list(text))
            ids = [sentence for sentence, _ in known]
        lengths = (size for _, size in text)
    alignments = read_gold(
        links,
        from_format,
        one_based=one_based,
        swap=swap,
        lengths=lengths,
        ids=ids,
        comment_prefix=comment_prefix,
    )
    if all_sure:
        alignments = (GoldAlignment(gold.possible, gold.possible) for gold in alignments)
    if ignore_possible:
        alignments = (GoldAlignment(gold.sure, gold.sure) for gold in alignments)
    with write_atomically(output) as file:
        file.writelines(format_lines(alignments, to_format, one_based=to_one_based, ids=ids))
