"""`nmt-align methods`: the methods and their cards."""

from __future__ import annotations

import click

from data.errors import UsageError


@click.command()
@click.argument("name", required=False)
@click.option("--markdown", "as_markdown", is_flag=True, help="Print all cards as one page in Markdown.")
def methods(name: str | None, as_markdown: bool) -> None:
    """List the methods, or print the card of the method NAME.

    A card says what the method measures, which question it answers and for whom, what it costs, its options, how it
    fails, and the papers it comes from in BibTeX.
    """
    if name is not None and as_markdown:
        raise UsageError("--markdown prints all cards; leave NAME out")
    from align.methods import cards

    if as_markdown:
        click.echo(cards.markdown(), nl=False)
    else:
        click.echo(cards.overview() if name is None else cards.card_text(name), nl=False)
