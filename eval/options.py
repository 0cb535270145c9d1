"""Command-line options that several commands of `eval` share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from align.options import collecting
from data.links import FORMATS as LINK_FORMATS
from data.links import GoldAlignment, read_gold
from eval.bootstrap import RESAMPLES, SEED
from eval.tables import FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

F = TypeVar("F", bound="Callable[..., Any]")


def result_options(command: F) -> F:
    """`--bootstrap`, `--seed`, `--format`, `--output` and `--overwrite` of a table of results."""
    options: list[Callable[[F], F]] = [
        click.option(
            "--bootstrap",
            type=click.IntRange(0),
            default=RESAMPLES,
            show_default=True,
            metavar="N",
            help="Resamples for intervals and p-values; 0 for none.",
        ),
        click.option(
            "--seed",
            type=click.IntRange(0),
            default=SEED,
            show_default=True,
            envvar="NMT_ALIGN_SEED",
            show_envvar=True,
            help="Seed of the bootstrap.",
        ),
        click.option("--format", "form", type=click.Choice(FORMATS), default="table", show_default=True),
        click.option("-o", "--output", default="-", metavar="FILE", help="Where to write (default: standard output)."),
        click.option("--overwrite", is_flag=True, help="Replace existing output files."),
    ]
    return _apply(command, options)


@dataclass(frozen=True)
class GoldFormat:
    """Everything `gold_format_options` collects: how a file of gold alignments is written."""

    form: str
    one_based: bool | None
    swap: bool

    def __str__(self) -> str:
        return f"{self.form}{'+swap' if self.swap else ''}"

    def read(self, path: str, lengths: Sequence[tuple[int, int]]) -> list[GoldAlignment]:
        """The gold alignments of pairs of these `lengths` (source, target).

        Raises:
            DataError: as `data.links.read_gold`.
        """
        lines = read_gold(path, self.form, one_based=self.one_based, swap=self.swap, lengths=lengths, option="--gold-")
        return list(lines)


def gold_format_options(command: F) -> F:
    """`--gold-format`, `--gold-one-based` and `--gold-swap`, collected as `gold_format`."""
    return collecting(command, _GOLD_OPTIONS, "gold_format", lambda values: GoldFormat(*values.values()))


_GOLD_OPTIONS = [
    click.Option(["--gold-format"], type=click.Choice(list(LINK_FORMATS)), default="gold", show_default=True),
    click.Option(
        ["--gold-one-based/--gold-zero-based"], default=None, help="Base of GOLD (default: the format's own)."
    ),
    click.Option(["--gold-swap"], is_flag=True, help="GOLD has its links as target-source."),
]


def _apply(command: F, options: list[Callable[[F], F]]) -> F:
    """The options in the order in which the help shows them."""
    for option in reversed(options):
        command = option(command)
    return command
