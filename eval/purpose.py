"""For whom an explanation is evaluated: every report opens with what was asked and what each method measures."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar

import click

from eval.tables import render

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from align.methods.base import Method
    from eval.tables import Format, Row

F = TypeVar("F", bound="Callable[..., Any]")
READERS = {
    "developer": "a model developer, who asks how the model comes to its prediction; what people would link is no "
    "evidence for that",
    "end-user": "an end user, who asks why a word was translated so; only saliency answers, and it must be faithful "
    "to the model before it is worth showing",
}


def purpose_option(command: F) -> F:
    """`--for developer|end-user`, collected as `reader`."""
    return click.option(
        "--for",
        "reader",
        type=click.Choice(list(READERS)),
        default="developer",
        show_default=True,
        help="Who asks: the report opens with what this reader can take from it.",
    )(command)


def opening(reader: str, asked: str, methods: Iterable[Method] = ()) -> list[str]:
    """The first lines of a report: the question, the reader, and what the methods measure, kind by kind.

    Args:
        reader: a key of `READERS`.
        asked: the question that the report answers.
        methods: those whose scores it shows; sensitivity and saliency stand apart.
    """
    lines = [f"Asked: {asked}", f"For: {READERS[reader]}."]
    by_kind: dict[str, list[str]] = {}
    for method in methods:
        by_kind.setdefault(method.measured, []).append(method.label)
    if by_kind:
        from align.methods.cards import MEASURES

        lines += [
            f"{kind} ({MEASURES.get(kind, MEASURES['mixed'])}): {', '.join(names)}"
            for kind, names in sorted(by_kind.items())
        ]
    return lines


def render_report(
    form: Format,
    first: Sequence[str],
    rows: Sequence[Row],
    last: Sequence[str] = (),
    columns: Sequence[str] | None = None,
) -> str:
    """A report in one of the formats of `eval.tables`: opening lines, a table, conclusions.

    JSON is an object with `opening`, `rows` and `conclusions`; TSV is the rows alone, which name what is measured.
    """
    if form == "json":
        listed = json.loads(render(rows, form))
        whole = {"opening": list(first), "rows": listed, "conclusions": list(last)}
        return json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    if form == "tsv":
        return render(rows, form)
    parts = ["\n".join(first), render(rows, form, columns).rstrip("\n"), "\n".join(last)]
    return "\n\n".join(part for part in parts if part) + "\n"
