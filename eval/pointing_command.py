"""`nmt-align pointing` and `nmt-align known-answers`: do methods point at causes that are known?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from align.options import ModelArguments, TextArguments, model_options, text_options
from align.specs import split_list
from data.errors import UsageError
from data.streams import check_paths, write_atomically
from eval.faithfulness_command import METHODS
from eval.options import result_options
from eval.purpose import opening, purpose_option, render_report
from eval.tables import Format

if TYPE_CHECKING:
    from collections.abc import Sequence

    from align.methods.base import Method
    from align.models.base import TranslationModel
    from eval.faithfulness_scores import Row
    from eval.pointing import Posed

ASKED = "where the cause of a target word is known, is it the source word with the highest score?"
READING = (
    "pointing: the share of questions in which it is; random is what a word drawn by chance would get, and p is of the "
    "hypothesis that a method does no better",
    "pointing_context: the same among the words that the target word does not translate, as it rests on those as well",
    "pointing_contrast: the same for the scores less those of the form that the other sentence decides for: why this "
    "form rather than that one; attention at the step that predicts the word cannot tell them apart",
    "possible: how many questions there would be if the model followed every pair; only what it follows is asked",
)

COLUMNS = (
    "phenomenon measures method pointing pointing_low pointing_high pointing_p pointing_context pointing_contrast "
    "questions possible"
).split()


@click.command()
@model_options
@text_options
@purpose_option
@click.option(
    "--cases",
    metavar="FILE",
    help="Minimal pairs instead of text: phenomenon, sentence, other sentence, forms, word translated; by tabs.",
)
@click.option("--methods", default=METHODS, help="Names with options, as for `faithfulness`.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the first N pairs.")
@result_options
def pointing(
    model: ModelArguments,
    text: TextArguments,
    reader: str,
    cases: str | None,
    methods: str,
    limit: int | None,
    bootstrap: int,
    seed: int,
    form: Format,
    output: str,
    overwrite: bool,
) -> None:
    """Tell which methods point at a cause that is known.

    With --cases: minimal pairs, whose translations part because of one source word. With text: each sentence joined
    with the next, where a target word of one half should not rest on the other.
    """
    check_paths((*text.paths, cases), output, overwrite=overwrite)
    from align.models.load import load_model
    from data.minimal_pairs import read_minimal_pairs
    from eval.pointing import from_hybrids, from_minimal_pairs

    if bool(text.paths) == (cases is not None):
        raise UsageError("give either minimal pairs as --cases, or text to join")
    options, stream = model.load_options(text.pairs() if text.paths else ())
    loaded = load_model(model.model, options)
    if cases is not None:
        posed = from_minimal_pairs(loaded, list(read_minimal_pairs(cases))[:limit])
    else:
        posed = from_hybrids(loaded, list(stream)[:limit])
    chosen = _usable(methods, loaded)
    rows = _rows(loaded, chosen, posed, bootstrap, seed)
    _write(rows, chosen, reader, form, output)


@click.command("known-answers")
@purpose_option
@click.option("--methods", default=METHODS, help="Names with options, as for `faithfulness`.")
@click.option(
    "--hybrids", type=click.IntRange(2, 500), default=40, show_default=True, help="Sentences to join in turn."
)
@result_options
def known_answers(
    reader: str, methods: str, hybrids: int, bootstrap: int, seed: int, form: Format, output: str, overwrite: bool
) -> None:
    """Tell which methods point at known causes, on the models and the language that ship with the package.

    Minimal pairs of the demo's grammar plant a cause: a verb that decides a pronoun, an article a number, a particle a
    verb, a noun or a verb an article. Hybrids join two sentences.
    """
    check_paths((), output, overwrite=overwrite)
    from importlib.resources import as_file, files
    from pathlib import Path

    from align.models.load import LoadOptions, load_model
    from data.bitext import Pair
    from data.demo import held_out
    from data.demo.known import english, german
    from eval.pointing import from_hybrids, from_minimal_pairs

    with as_file(files("data.demo") / "model") as folder:
        models = [load_model(Path(folder) / f"{name}.pt", LoadOptions()) for name in ("de-en", "en-de")]
    pairs = [Pair(number, pair.source, pair.target) for number, pair in enumerate(held_out(hybrids))]
    asked = [
        (models[0], from_minimal_pairs(models[0], german())),
        (models[1], from_minimal_pairs(models[1], english())),
        (models[0], from_hybrids(models[0], pairs)),
    ]
    chosen = _usable(methods, models[0])
    rows = [row for model, posed in asked for row in _rows(model, chosen, posed, bootstrap, seed)]
    _write(rows, chosen, reader, form, output)


def _usable(specs: str, model: TranslationModel) -> list[Method]:
    from eval.faithfulness_report import usable

    chosen, notes = usable(split_list(specs), model)
    for note in notes:
        click.echo(f"note: {note}", err=True)
    return chosen


def _rows(model: TranslationModel, methods: Sequence[Method], posed: Posed, resamples: int, seed: int) -> list[Row]:
    from align.signature import signature
    from eval.pointing import score

    rows = score(model, methods, posed, resamples, seed)
    full = {method.label: str(method) for method in methods}
    for row in rows:
        method = full.get(str(row["method"]), row["method"])
        asked = {"questions": row["questions"], "seed": seed}
        row["signature"] = signature({"method": method, "model": model.identity, **asked})
    return rows


def _write(rows: Sequence[Row], methods: Sequence[Method], reader: str, form: Format, output: str) -> None:
    with write_atomically(output) as out:
        out.write(render_report(form, [*opening(reader, ASKED, methods), *READING], rows, columns=COLUMNS))
