"""The opening of a report."""

from __future__ import annotations

import json

from align.methods import make_method
from eval.purpose import READERS, opening, render_report


def test_kinds_stand_apart() -> None:
    specs = ("gradient-norm", "attention:layer=1", "occlusion", "lrp", "smoothgrad:base=l1")
    methods = [make_method(spec) for spec in specs]
    lines = opening("end-user", "what?", methods)
    assert lines[:2] == ["Asked: what?", f"For: {READERS['end-user']}."]
    kinds = {line.partition(" ")[0]: line.partition("): ")[2] for line in lines[2:]}
    assert kinds == {
        "attention": "attention:layer=1",
        "saliency": "occlusion, lrp",
        "sensitivity": "gradient-norm, smoothgrad:base=l1",
    }
    assert opening("developer", "what?") == ["Asked: what?", f"For: {READERS['developer']}."]


def test_reports_open_with_the_purpose_and_close_with_conclusions() -> None:
    rows = [{"x": 1, "y": None}]
    assert render_report("table", ["why"], rows, ["so"]) == "why\n\nx  y\n1  –\n\nso\n"
    assert render_report("table", ["why"], rows) == "why\n\nx  y\n1  –\n"
    assert render_report("tsv", ["why"], rows, ["so"]) == "x\ty\n1\t\n"
    assert json.loads(render_report("json", ["why"], rows, ["so"])) == {
        "opening": ["why"],
        "rows": rows,
        "conclusions": ["so"],
    }
