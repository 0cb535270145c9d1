"""Text, JSON and TSV of result rows."""

from __future__ import annotations

import json

import pytest

from eval.tables import render

ROWS = [
    {"file": "one", "aer": 0.2345, "p_value": None, "links": 7, "seconds": 21.5, "signature": "a:1"},
    {
        "file": "a\tb\x1b",
        "aer": float("nan"),
        "p_value": 0.0123,
        "links": 1234,
        "seconds": 0.25,
        "signature": "a:1",
    },
]


def test_text_table() -> None:
    assert render(ROWS, "table").splitlines() == [
        "file      AER %      p   links  seconds",
        "one        23.4       –      7       22",
        r"a\tb\x1b      –  0.012*   1234     0.25",
        "signature: a:1",
    ]


def test_chosen_columns() -> None:
    lines = render(ROWS, "table", ["links", "file"]).splitlines()
    assert lines[:2] == ["links  file", "    7  one"]


def test_different_signatures_are_numbered() -> None:
    rows = [{"aer": 0.5, "signature": "a:1"}, {"aer": 0.25, "signature": "a:2"}]
    assert render(rows, "table") == "#  AER %\n1   50.0\n2   25.0\nsignature 1: a:1\nsignature 2: a:2\n"


def test_json_has_fractions_and_null() -> None:
    rows = json.loads(render(ROWS, "json", ["file"]))
    assert rows[0] == ROWS[0]
    assert rows[1] == {**ROWS[1], "aer": None}


def test_tsv_has_fractions_and_empty_fields() -> None:
    assert render(ROWS, "tsv").splitlines() == [
        "file\taer\tp_value\tlinks\tseconds\tsignature",
        "one\t0.2345\t\t7\t21.5\ta:1",
        "a\\tb\\x1b\t\t0.0123\t1234\t0.25\ta:1",
    ]


@pytest.mark.parametrize(("form", "text"), [("table", ""), ("tsv", ""), ("json", "[]\n")])
def test_no_rows(form: str, text: str) -> None:
    assert render([], form) == text  # type: ignore[arg-type]


@pytest.mark.parametrize(("p_value", "shown"), [(0.0499, "0.050*"), (0.05, "0.050"), (1.0, "1.000")])
def test_the_star(p_value: float, shown: str) -> None:
    assert render([{"p_value": p_value}], "table").splitlines()[1].strip() == shown
