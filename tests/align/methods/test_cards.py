"""Cards: one for every method, complete, and the same text on the command line and in `docs`."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest
from click.testing import CliRunner

from align.cli import cli
from align.methods import METHODS, cards
from align.methods.references import BIBTEX
from data.errors import UsageError

PAGE = Path(__file__).resolve().parents[3] / "docs" / "methods.md"


@pytest.fixture
def printed():
    def call(*arguments: str) -> str:
        result = CliRunner().invoke(cli, ["methods", *arguments])
        assert result.exit_code == 0, result.output
        return result.output

    return call


def test_every_method_has_a_card_and_every_card_a_method():
    assert set(cards.CARDS) == set(METHODS)


@pytest.mark.parametrize("name", sorted(METHODS))
def test_cards_are_complete(name):
    method, card = METHODS[name], cards.CARDS[name]
    assert method.name == name
    assert method.measures in cards.MEASURES
    assert list(card.options) == [field.name for field in fields(method)]
    assert card.references
    assert card.question.endswith("?")
    for text in (card.readers, card.cost, card.failure, *card.options.values()):
        assert text


def test_every_paper_is_well_formed_and_cited():
    cited = {"bastings2020"}.union(*(card.references for card in cards.CARDS.values()))
    assert cited == set(BIBTEX)
    for key, entry in BIBTEX.items():
        assert re.match(rf"@(inproceedings|article|misc)\{{{key},\n", entry)
        assert entry.count("{") == entry.count("}")
        assert re.search(r"^  year +\= \{\d{4}\}", entry, re.MULTILINE)


def test_the_list_names_every_method(printed):
    lines = printed().splitlines()
    assert [line.split()[0] for line in lines] == sorted(METHODS)


def test_a_card_shows_defaults_and_bibtex(printed):
    text = printed("lrp")
    assert "linear=epsilon" in text
    assert "patented" in text
    assert "@inproceedings{achtibat2024," in text
    assert max(map(len, text.splitlines())) <= 120


def test_the_page_in_docs_is_what_the_command_prints(printed):
    assert PAGE.read_text(encoding="utf-8") == printed("--markdown")


def test_unknown_names():
    with pytest.raises(UsageError, match="did you mean 'smoothgrad'"):
        cards.card_text("smothgrad")
    result = CliRunner().invoke(cli, ["methods", "lrp", "--markdown"])
    assert isinstance(result.exception, UsageError)
