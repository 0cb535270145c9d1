"""The page of a report as text: whole, closed to the network, and with nothing of its data as markup."""

from __future__ import annotations

import base64
import hashlib
import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from data.bitext import Pair
from data.errors import UsageError
from data.links import GoldAlignment
from eval.report.build import Report, System
from eval.report.render import render_report, write_report

HOSTILE = ("<script>alert(1)</script>", "</textarea>", "\"'`", "&amp;", "<!--", "]]>", "{{7*7}}", "=cmd()")


def report() -> Report:
    row = {"aer": 0.25, "aer_low": None, "aer_high": None, "signature": HOSTILE[0]}
    return Report(
        title=HOSTILE[0],
        facts=HOSTILE,
        pairs=[Pair(0, HOSTILE, ("</script>", "x"))],
        systems=[System(HOSTILE[0], HOSTILE[2], [frozenset({(0, 0)})], row)],
        gold=[GoldAlignment(frozenset({(1, 1)}))],
        cards={HOSTILE[0]: [(HOSTILE[4], HOSTILE[5])]},
    )


class Page(HTMLParser):
    """Tags with their attributes, and the text of scripts, styles and all else."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inside: dict[str, str] = {}
        self.open = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.open = dict(attrs).get("type") or tag

    def handle_endtag(self, tag: str) -> None:
        self.open = ""

    def handle_data(self, data: str) -> None:
        self.inside[self.open] = self.inside.get(self.open, "") + data


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(render_report(report())[0])


def digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_only_the_scripts_and_styles_of_the_page_may_run(page: Page) -> None:
    policy = next(a["content"] for t, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    rules = dict(rule.split(maxsplit=1) for rule in policy.split("; "))
    assert rules == {
        "default-src": "'none'",
        "script-src": f"'sha256-{digest(page.inside['module'])}'",
        "style-src": f"'sha256-{digest(page.inside['style'])}'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }


def test_data_is_never_markup(page: Page) -> None:
    assert [a for t, a in page.tags if t == "script"] == [
        {"type": "application/json", "id": "data"},
        {"type": "module"},
    ]
    assert not any(name.startswith("on") or name == "style" for _, a in page.tags for name in a)
    assert {"img", "iframe", "textarea", "form", "object", "base"}.isdisjoint(t for t, _ in page.tags)


def test_nothing_is_fetched(page: Page) -> None:
    assert not any("src" in attributes for _, attributes in page.tags)
    assert [a["href"] for _, a in page.tags if "href" in a] == ["data:,"]
    assert "url(" not in page.inside["style"]
    assert "@import" not in page.inside["style"]


def test_words_arrive_as_they_were(page: Page) -> None:
    text = page.inside["application/json"]
    assert not set("<>&'") & set(text)
    (pair,) = json.loads(text)["pairs"]
    assert tuple(pair["source"]) == HOSTILE
    assert page.inside["h1"] == HOSTILE[0]


def test_equal_reports_are_equal_bytes() -> None:
    assert render_report(report()) == render_report(report())


def test_a_report_that_fails_leaves_no_file(tmp_path: Path) -> None:
    broken = report()
    del broken.systems[0].row["aer_low"]  # type: ignore[attr-defined]
    with pytest.raises(Exception, match="aer_low"):
        write_report(broken, tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        write_report(report(), tmp_path / "no" / "page.html")
