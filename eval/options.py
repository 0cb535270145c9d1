"""Command-line options that several commands of `eval` share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

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
    for option in reversed(options):
        command = option(command)
    return command
