"""Minimal pairs: files of them, and those of the demo's language."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from align.models.load import LoadOptions, load_model
from data.bitext import Pair
from data.demo.known import english, german
from data.errors import DataError
from data.minimal_pairs import MinimalPair, read_minimal_pairs


def test_columns(tmp_path):
    path = tmp_path / "cases"
    path.write_text("number\tthe dog barks\tthe dogs barks\tle les\t0\nany\ta b\ta c\n")
    number, other = read_minimal_pairs(str(path))
    assert number == MinimalPair(
        "number", ("the", "dog", "barks"), ("the", "dogs", "barks"), frozenset({"le", "les"}), 0
    )
    assert (number.cause, other.cause) == (1, 1)
    assert (other.forms, other.translated) == (frozenset(), None)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x\ta b", "cases:1: expected phenomenon"),
        ("x\ta b\ta b", "exactly one word"),
        ("x\ta b\tc d", "exactly one word"),
        ("x\ta b\ta b c", "exactly one word"),
        ("x\ta b\ta c\tu v\t2", "a number below 2, not '2'"),
        ("x\ta b\ta c\tu v\tb", "a number below 2, not 'b'"),
    ],
)
def test_mistakes(tmp_path, line, message):
    path = tmp_path / "cases"
    path.write_text(line + "\n")
    with pytest.raises(DataError, match=message):
        list(read_minimal_pairs(str(path)))


@pytest.mark.parametrize(("direction", "pairs"), [("de-en", german()), ("en-de", english())])
def test_the_demo_knows_every_word(direction, pairs):
    model = load_model(Path(str(files("data.demo") / "model" / f"{direction}.pt")), LoadOptions())
    assert len({(pair.first, pair.second) for pair in pairs}) == len(pairs)
    for pair in pairs:
        assert pair.translated != pair.cause
        for side in (pair.first, pair.second):
            assert model.encode_pair(Pair(0, side, side)).source_word_of.count(-1) == 1
            assert model.source_dictionary.unk() not in model.encode_pair(Pair(0, side, side)).source


def test_the_cases_of_french_agreement_are_minimal_pairs():
    path = Path(__file__).resolve().parents[2] / "docs" / "cases" / "french-agreement.tsv"
    pairs = list(read_minimal_pairs(str(path)))
    assert len(pairs) == 60
    for pair in pairs:
        assert pair.translated == pair.cause - 1
        assert pair.first[pair.translated] == "the"
