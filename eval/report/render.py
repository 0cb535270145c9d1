"""From a report to one HTML file that needs nothing else: no network, no scripts but its own."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from data.streams import write_atomically
from eval.report.build import payload
from eval.tables import TITLES, cell

if TYPE_CHECKING:
    from pathlib import Path

    from eval.report.build import Report

SCRIPTS = ("data", "draw", "links", "heat", "layers", "table", "list", "together", "pair", "lexicon", "main")
"""In this order they make up the script of the page."""
COLUMNS = ("aer", "direction", "pooling", "measures", "precision", "recall", "f1", "links", "passes", "seconds")
"""Keys of rows that the table of systems shows, where any row has them."""


def write_report(report: Report, path: str | Path) -> list[str]:
    """Write the page and return what had to be left out of it, in words."""
    page, notes = render_report(report)
    with write_atomically(path) as out:
        out.write(page)
    return notes


def render_report(report: Report) -> tuple[str, list[str]]:
    """The page, and what had to be left out of it, in words.

    What comes from files reaches the page as text only: Jinja2 escapes it in HTML and in JSON, the scripts set
    `textContent`, and a Content-Security-Policy allows the page's own script and style by their hashes and
    nothing else.
    """
    environment = Environment(
        loader=PackageLoader("eval.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {
        "ensure_ascii": False,
        "allow_nan": False,
        "separators": (",", ":"),
    }
    environment.filters["cell"] = lambda row, key: cell(key, row[key])
    style = _static("report.css")
    script = "\n".join(_static(f"{name}.js") for name in SCRIPTS)
    data, notes = payload(report)
    page = environment.get_template("report.html.j2").render(
        report=report,
        data=data,
        notes=notes,
        columns=[key for key in COLUMNS if any(system.row.get(key) is not None for system in report.systems)],
        titles=TITLES,
        style=Markup(style),  # noqa: S704 (ours)
        script=Markup(script),  # noqa: S704 (ours)
        style_hash=_hash(style),
        script_hash=_hash(script),
    )
    return page, notes


def _static(name: str) -> str:
    return (files("eval.report") / "static" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """How a Content-Security-Policy names an inline script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
