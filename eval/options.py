"""Command-line options that several commands of `eval` share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

from data.links import FORMATS as LINK_FORMATS
from eval.bootstrap import RESAMPLES, SEED
from eval.tables import FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable

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


def gold_format_options(command: F) -> F:
    """`--gold-format`, `--gold-one-based` and `--gold-swap`: how a file of gold alignments is written."""
    options: list[Callable[[F], F]] = [
        click.option("--gold-format", type=click.Choice(list(LINK_FORMATS)), default="gold", show_default=True),
        click.option(
            "--gold-one-based/--gold-zero-based", default=None, help="Base of GOLD (default: the format's own)."
        ),
        click.option("--gold-swap", is_flag=True, help="GOLD has its links as target-source."),
    ]
    return _apply(command, options)


def _apply(command: F, options: list[Callable[[F], F]]) -> F:
    """The options in the order in which the help shows them."""
    for option in reversed(options):
        command = option(command)
    return command
