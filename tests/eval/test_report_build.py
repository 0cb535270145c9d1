"""The data of a report: packed numbers, what goes in, and what is said of what does not."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from data.bitext import Pair
from data.links import GoldAlignment, Links
from eval.report.build import ALPHABET, Report, System, pack_interactions, pack_links, pack_matrix, payload
from eval.text import visible

ROW: dict[str, object] = {"aer": 0.5, "aer_low": None, "aer_high": None}


def unpack_links(text: str, size: tuple[int, int]) -> list[tuple[int, int]]:
    """The twin of `pack_links`, backwards: how many digits a number has is found by trying."""
    width = next(w for w in (1, 2, 3) if len(ALPHABET) ** w >= max(size))
    numbers = []
    for k in range(0, len(text), width):
        number = 0
        for digit in text[k : k + width]:
            number = 64 * number + ALPHABET.index(digit)
        numbers.append(number)
    return list(zip(numbers[::2], numbers[1::2], strict=True))


@st.composite
def sized_links(draw: st.DrawFn) -> tuple[Links, tuple[int, int]]:
    size = draw(st.tuples(st.integers(1, 70), st.integers(1, 70)) | st.tuples(st.just(5000), st.integers(1, 9)))
    link = st.tuples(st.integers(0, size[0] - 1), st.integers(0, size[1] - 1))
    return frozenset(draw(st.lists(link, max_size=20))), size


@settings(deadline=None)
@given(sized_links())
def test_links_survive_packing(case: tuple[Links, tuple[int, int]]) -> None:
    links, size = case
    assert unpack_links(pack_links(links, size), size) == sorted(links)


@pytest.mark.parametrize(("longest", "digits"), [(1, 1), (64, 1), (65, 2), (4096, 2), (4097, 3)])
def test_digits_of_a_position(longest: int, digits: int) -> None:
    assert len(pack_links(frozenset({(0, 0)}), (1, longest))) == 2 * digits


@settings(deadline=None)
@given(st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), min_size=1, max_size=4))
def test_shares_survive_packing_to_half_a_level(rows: list[list[float]]) -> None:
    text = pack_matrix(np.array(rows))
    for k, share in enumerate(share for row in rows for share in row):
        assert abs(ALPHABET.index(text[k]) / 63 - share) <= 0.5 / 63 + 1e-12


def test_alphabet_needs_no_escape() -> None:
    assert len(set(ALPHABET)) == 64
    assert not set(ALPHABET) & set("<>&'\"\\")


WORDS = ("a", "b", "c")
PAIRS = [Pair(k, WORDS, WORDS) for k in range(4)]
DIAGONAL: Links = frozenset({(0, 0), (1, 1), (2, 2)})


def shares(_: int) -> NDArray[np.float64]:
    return np.eye(3)


def system(name: str, soft: bool = False) -> System:
    return System(name, "", [DIAGONAL] * len(PAIRS), ROW, (lambda k: np.eye(3)) if soft else None)


def with_links(data: dict[str, object]) -> list[int]:
    systems = data["systems"]
    assert isinstance(systems, list)
    return [k for k, entry in enumerate(systems) if entry["links"] is not None]


def test_the_best_of_each_name_comes_in_first() -> None:
    systems = [system("x"), system("x"), system("y"), system("x"), system("y")]
    each = 4 * 6  # characters of the links of a system
    for room, expected in ((1, [0]), (2, [0, 2]), (3, [0, 1, 2]), (4, [0, 1, 2, 4]), (5, [0, 1, 2, 3, 4])):
        data, notes = payload(Report("", [], PAIRS, systems), budget=2 * room * each)
        assert with_links(data) == expected
        assert notes == ([f"The browser holds the links of {room} of 5 systems."] if room < 5 else [])


def test_one_system_comes_in_whatever_its_size() -> None:
    data, _ = payload(Report("", [], PAIRS, [system("x"), system("y")]), budget=0)
    assert with_links(data) == [0]


def test_heat_maps_fill_what_the_links_leave() -> None:
    systems = [system("x", soft=True), system("y"), system("z", soft=True)]
    links, matrices = 3 * 4 * 6, 4 * 9
    data, notes = payload(Report("", [], PAIRS, systems), budget=2 * links + 2)
    entries = data["systems"]
    assert isinstance(entries, list)
    assert [entry["soft"] for entry in entries] == [0, None, 1]
    assert notes == []
    data, notes = payload(Report("", [], PAIRS, systems), budget=2 * links - matrices)
    entries = data["systems"]
    assert isinstance(entries, list)
    assert [entry["soft"] for entry in entries][1:] == [None, None]
    assert notes[-1].endswith("of 2 systems have their heat map in the page.")


def test_equal_heat_maps_are_held_once() -> None:
    systems = [System(name, "", [DIAGONAL] * 4, ROW, shares) for name in "xyz"]
    data, _ = payload(Report("", [], PAIRS, systems))
    matrices = data["matrices"]
    assert isinstance(matrices, list)
    assert len(matrices) == 1
    assert matrices[0][0] == "_000_000_"


@settings(deadline=None)
@given(st.integers(0, 5), st.integers(1, 3), st.integers(0, 9))
def test_interactions_survive_packing(words: int, targets: int, seed: int) -> None:
    below = np.tril(np.random.default_rng(seed).normal(size=(targets, words, words)), -1)
    packed = pack_interactions(below + below.transpose(0, 2, 1))
    most, cells = packed["most"], packed["cells"]
    assert isinstance(most, float)
    assert isinstance(cells, list)
    assert most == abs(below).max(initial=0)
    for row, text in zip(below, cells, strict=True):
        expected = [row[i, k] for i in range(words) for k in range(i)]
        got = [(ALPHABET.index(digit) - 31) / 31 * most for digit in text]
        assert got == pytest.approx(expected, abs=most / 62 + 1e-12)


def test_interactions_are_those_of_the_pairs_in_the_page() -> None:
    report = Report("", [], PAIRS, [system("x")], interactions={k: np.zeros((3, 3, 3)) for k in (1, 3)})
    data, _ = payload(report, max_pairs=3)
    assert data["interactions"] == {1: {"most": 0.0, "cells": ["VVV"] * 3}}
    assert "interactions" not in payload(Report("", [], PAIRS, [system("x")]))[0]


def test_a_cut_is_told() -> None:
    gold = [GoldAlignment(DIAGONAL)] * 4
    data, notes = payload(Report("", [], PAIRS, [system("x", soft=True)], gold), max_pairs=3)
    pairs = data["pairs"]
    assert isinstance(pairs, list)
    assert [pair["line"] for pair in pairs] == [1, 2, 3]
    assert notes == ["The browser holds the first 3 of 4 pairs; scores are of all of them."]


def test_gold_is_sure_and_merely_possible() -> None:
    gold = [GoldAlignment(frozenset({(0, 0)}), frozenset({(0, 0), (1, 2)}))]
    data, _ = payload(Report("", [], PAIRS[:1], [System("x", "", [DIAGONAL], ROW)], gold))
    pairs = data["pairs"]
    assert isinstance(pairs, list)
    assert (pairs[0]["sure"], pairs[0]["possible"]) == ("00", "12")


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("plain", "plain"),
        ("\u202eevil", "\\u202eevil"),
        ("a\x1b[31m\x00", "a\\x1b[31m\\x00"),
        ("\u00a0", "\\xa0"),
        ("a\u00a0b", "a\u00a0b"),
        ("\u2028", "\\u2028"),
        ("می\u200cخواهم", "می\u200cخواهم"),  # a joiner that shapes letters
        ("日本", "日本"),
    ],
)
def test_what_is_seen_of_a_word(word: str, shown: str) -> None:
    assert visible(word) == shown


@settings(deadline=None)
@given(st.text(min_size=1))
def test_a_word_is_never_invisible(word: str) -> None:
    shown = visible(word)
    assert shown.strip()
    assert not any(unicodedata.category(c) == "Cc" or unicodedata.bidirectional(c).endswith("O") for c in shown)
