"""Scores of lexicons, and `nmt-align lexicon-score`."""

from __future__ import annotations

import json
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from data.bitext import Pair
from data.errors import DataError, UsageError
from data.links import GoldAlignment
from eval.lexicon import (
    LexiconScores,
    Reference,
    WordStats,
    dictionary_reference,
    gold_reference,
    intervals,
    lexicon_scores,
    lexicon_stats,
)
from eval.lexicon_commands import lexicon_score

SOURCES, TARGETS = "abcd", [f"t{k}" for k in range(12)]
LEXICONS = st.dictionaries(st.sampled_from(SOURCES), st.lists(st.sampled_from(TARGETS), unique=True), max_size=4)


@st.composite
def references(draw: st.DrawFn) -> Reference:
    lists = draw(LEXICONS.map(lambda found: {s: t for s, t in found.items() if t}).filter(bool))
    possible = {source: frozenset(targets) for source, targets in lists.items()}
    sure = {s: frozenset(t for t in targets if draw(st.booleans())) for s, targets in possible.items()}
    return Reference(sure, possible)


def naive(lexicon: dict[str, list[str]], reference: Reference) -> LexiconScores:
    """Each score from its definition, over sets of pairs."""
    words = list(reference.possible)
    covered = [word for word in words if lexicon.get(word)]

    def at(k: int) -> float | None:
        hits = [any(target in reference.possible[word] for target in lexicon[word][:k]) for word in covered]
        return sum(hits) / len(hits) if hits else None

    entries = {(word, target) for word in words for target in lexicon.get(word, [])}
    right = {(word, target) for word in words for target in reference.possible[word]}
    sure = {(word, target) for word in words for target in reference.sure.get(word, ())}
    precision = len(entries & right) / len(entries) if entries else None
    recall = len(entries & sure) / len(sure) if sure else None
    f1 = None
    if precision is not None and recall is not None:
        f1 = 2 / (1 / precision + 1 / recall) if precision and recall else 0.0
    return LexiconScores(len(covered) / len(words), at(1), at(5), at(10), precision, recall, f1)


def summed(lexicon: dict[str, list[str]], reference: Reference) -> WordStats:
    return sum(lexicon_stats(lexicon, reference), WordStats())


@given(LEXICONS, references())
@settings(deadline=None)
def test_scores_are_those_of_the_definition(lexicon: dict[str, list[str]], reference: Reference) -> None:
    found, expected = lexicon_scores(summed(lexicon, reference)), naive(lexicon, reference)
    for field in fields(LexiconScores):
        assert getattr(found, field.name) == pytest.approx(getattr(expected, field.name)), field.name


@given(references())
@settings(deadline=None)
def test_the_reference_itself_is_perfect(reference: Reference) -> None:
    perfect = lexicon_scores(summed({s: sorted(t) for s, t in reference.possible.items()}, reference))
    assert {perfect.precision_1, perfect.precision_10, perfect.precision} == {1}
    assert perfect.recall in (1, None)


def test_nothing_in_common_is_undefined_not_an_error() -> None:
    stats = lexicon_stats({"x": ["y"]}, dictionary_reference({"a": ["b"]}))
    assert lexicon_scores(stats[0]) == LexiconScores(0, None, None, None, None, 0, None)
    ends = intervals(stats, 10, 1)
    assert (ends["coverage"], ends["precision_1"]) == ((0, 0), None)


def test_an_empty_reference_is_refused() -> None:
    with pytest.raises(DataError, match="no pairs"):
        lexicon_stats({}, Reference({}, {}))


def test_gold_spells_out_a_lexicon() -> None:
    pairs = [
        (Pair(0, ("das", "Haus"), ("the", "house")), GoldAlignment(frozenset({(1, 1)}), frozenset({(0, 0)}))),
        (Pair(1, ("Haus",), ("home", "x")), GoldAlignment(frozenset({(0, 0)}))),
        (Pair(2, (), ()), GoldAlignment(frozenset())),
    ]
    reference = gold_reference(pairs)
    assert reference.sure == {"Haus": {"house", "home"}}
    assert reference.possible == {"Haus": {"house", "home"}, "das": {"the"}}


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 9), min_size=1, max_size=6), st.integers(0, 99))
@settings(deadline=None, max_examples=30)
def test_intervals_are_percentiles_over_resampled_words(rows: list[tuple[int, ...]], seed: int) -> None:
    stats = [WordStats(*row) for row in rows]
    draws = np.random.default_rng(seed).multinomial(len(rows), [1 / len(rows)] * len(rows), 20)
    resampled: list[LexiconScores] = []
    for counts in draws:
        total = WordStats()
        for word, times in zip(stats, counts, strict=True):
            for _ in range(times):
                total += word
        resampled.append(lexicon_scores(total))
    for name, ends in intervals(stats, 20, seed).items():
        values = sorted(value for scores in resampled if (value := getattr(scores, name)) is not None)
        if not values:
            assert ends is None
        else:
            assert ends == pytest.approx((np.quantile(values, 0.025), np.quantile(values, 0.975)))


def test_sums_of_statistics() -> None:
    assert astuple(WordStats(1, 1, 0, 1, 1, 5, 2, 3, 1) + WordStats(1)) == (2, 1, 0, 1, 1, 5, 2, 3, 1)


# The command.


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "lex.tsv").write_text(
        "source\ttarget\tcount\tsource_count\ttarget_count\n"
        "Haus\thome\t2\t3\t2\nHaus\thouse\t1\t3\t1\nja\tno\t1\t1\t1\nMaus\tmouse\t1\t1\t1\n"
    )
    (tmp_path / "dictionary").write_text("haus house\nja yes\nneu new\n")
    (tmp_path / "source").write_text("das Haus\nja\n")
    (tmp_path / "target").write_text("the house\nyes\n")
    (tmp_path / "gold").write_text("0p0 1-1\n0-0\n")
    return tmp_path


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(lexicon_score, list(map(str, arguments)))


def row(*arguments: object) -> dict[str, Any]:
    result = invoke(*arguments, "--format", "json", "--bootstrap", 100)
    assert result.exit_code == 0, result.exception
    (found,) = json.loads(result.stdout)
    assert isinstance(found, dict)
    return found


def test_against_a_dictionary(folder: Path) -> None:
    found = row(folder / "lex.tsv", "--reference", folder / "dictionary", "--lowercase")
    assert (found["words"], found["covered"]) == (3, 2)
    assert found["coverage"] == pytest.approx(2 / 3)
    assert (found["precision_1"], found["precision_5"]) == (0, 0.5)
    assert (found["precision"], found["recall"]) == (pytest.approx(1 / 3), pytest.approx(1 / 3))
    assert found["precision_5_low"] == 0
    assert found["precision_5_high"] == 1
    assert "reference:muse|case:lower|bootstrap:100|seed:12345" in found["signature"]
    assert row(folder / "lex.tsv", "--reference", folder / "dictionary")["covered"] == 1


def test_against_gold_alignments(folder: Path) -> None:
    text = ("-s", folder / "source", "-t", folder / "target")
    found = row(folder / "lex.tsv", "--gold", folder / "gold", *text)
    assert (found["words"], found["covered"], found["hits_1"], found["hits_5"]) == (3, 2, 0, 1)
    assert (found["entries"], found["right"], found["sure"], found["found"]) == (3, 1, 2, 1)
    assert "reference:gold-gold" in found["signature"]


def test_several_lexicons_and_formats(folder: Path) -> None:
    (folder / "f2e").write_text("house Haus 0.9\nhome Haus 0.1\n")
    arguments = (folder / "f2e", "--lexicon-format", "moses", "--reference", folder / "dictionary", "--lowercase")
    assert row(*arguments)["precision_1"] == 1
    table = invoke(folder / "lex.tsv", folder / "lex.tsv", "--reference", folder / "dictionary", "--bootstrap", 0)
    assert len(table.stdout.splitlines()) == 4
    assert "_low" not in table.stdout
    assert "signature: lexicon:tsv|reference:muse" in table.stdout


@pytest.mark.parametrize("arguments", [[], ["--reference", "x", "--gold", "y"]])
def test_one_reference_is_needed(arguments: list[str]) -> None:
    result = invoke("lexicon", *arguments)
    assert isinstance(result.exception, UsageError)
    assert "either --reference or --gold" in str(result.exception)


def test_gold_must_fit_its_text(folder: Path) -> None:
    (folder / "gold").write_text("0-0\n")
    result = invoke(folder / "lex.tsv", "--gold", folder / "gold", "-s", folder / "source", "-t", folder / "target")
    assert isinstance(result.exception, DataError)
    assert "pair 2 has no partner" in str(result.exception)
