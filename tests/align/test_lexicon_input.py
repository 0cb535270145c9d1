"""Text and links together, and the weights of links."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from align.lexicon_input import NUMBER, UNIT, LinkedPair, LinkFile, read_linked
from data.bitext import Pair
from data.errors import DataError, UsageError

PAIRS = [Pair(0, ("das", "Haus"), ("the", "house")), Pair(1, (), ()), Pair(2, ("ja",), ("yes", "sir"))]


def write(tmp_path: Path, text: str, name: str = "links") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def read(links: LinkFile) -> list[LinkedPair]:
    return list(read_linked(iter(PAIRS), links))


def weights(links: LinkFile) -> list[dict[tuple[int, int], int]]:
    return [dict(linked.weights) for linked in read(links)]


def test_links_count_one_and_pairs_keep_their_place(tmp_path: Path) -> None:
    path = write(tmp_path, "0-0 1-1\n\n0-1\n")
    assert read(LinkFile(path)) == [
        LinkedPair(PAIRS[0], {(0, 0): UNIT, (1, 1): UNIT}),
        LinkedPair(PAIRS[1], {}),
        LinkedPair(PAIRS[2], {(0, 1): UNIT}),
    ]


@pytest.mark.parametrize(("weight", "possible"), [(1, UNIT), (0.25, 250_000), (0, None)])
def test_possible_links_count_what_is_asked(tmp_path: Path, weight: float, possible: int | None) -> None:
    path = write(tmp_path, "0-0 1p1 0p0\n\n\n")
    expected = {(0, 0): UNIT} | ({} if possible is None else {(1, 1): possible})
    assert weights(LinkFile(path, "gold", possible_weight=weight)) == [expected, {}, {}]


def test_naacl_links_in_any_order(tmp_path: Path) -> None:
    path = write(tmp_path, "3 1 2\n1 2 2\n1 1 1 P\n")
    found = read(LinkFile(path, "naacl"))
    assert [linked.pair for linked in found] == PAIRS
    assert [set(linked.weights) for linked in found] == [{(0, 0), (1, 1)}, set(), {(0, 1)}]


def test_scores_follow_the_order_of_the_links_in_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, "1-1 0-0\n\n0-1 0-0\n")
    scores = write(tmp_path, "0.25 1\n\n0 1e-1\n", "scores")
    assert weights(LinkFile(path, scores=scores)) == [{(1, 1): 250_000, (0, 0): UNIT}, {}, {(0, 0): 100_000}]


def test_scores_of_links_written_otherwise(tmp_path: Path) -> None:
    path = write(tmp_path, "2-1 1-2\n\n2-1\n")
    scores = write(tmp_path, "0.5 0.25\n\n0.75\n", "scores")
    found = weights(LinkFile(path, one_based=True, swap=True, scores=scores))
    assert found == [{(0, 1): 500_000, (1, 0): 250_000}, {}, {(0, 1): 750_000}]


@pytest.mark.parametrize(
    ("links", "message"),
    [
        ("0-0\n\n0-2\n", r":3:1: link 0-2 .* outside its sentence pair of 1 source and 2 target words"),
        ("0-0\n\n", r"links for 2 sentence pairs, text of 3: pair 3 has no partner"),
        ("0-0\n\n\n\n", r"links for 4 sentence pairs, text of 3: pair 4 has no partner"),
        ("0-0 1p1\n\n\n", r":1:5: .*1p1.* found"),
    ],
)
def test_links_that_do_not_fit_the_text(tmp_path: Path, links: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(LinkFile(write(tmp_path, links)))


def test_links_far_outside_need_no_memory_of_the_text(tmp_path: Path) -> None:
    path = write(tmp_path, "5-0\n" + "0-0\n" * 4999)
    pairs = (Pair(n, ("a",), ("b",)) for n in range(5000))
    with pytest.raises(DataError, match=":1:1: link 5-0"):
        list(read_linked(pairs, LinkFile(path)))
    assert next(pairs, None) is None  # the rest was looked at, for advice, and not kept


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ("1\n\n0.5 0.5\n", "scores:1: 1 scores for 2 links"),
        ("1 1 1\n\n0.5 0.5\n", "scores:1: 3 scores for 2 links"),
        ("1 nan\n\n0.5 0.5\n", "scores:1:3: 'nan' found, expected a number from 0 to 1"),
        ("1 1.5\n\n0.5 0.5\n", "scores:1:3: '1.5' found"),
        ("-0.5 1\n\n0.5 0.5\n", "scores:1:1: '-0.5' found"),
        ("1 1\n", "scores:2: scores for 1 sentence pairs, links for 3"),
        ("1 1\n\n1 1\n\n", "scores:4: scores for 4 sentence pairs, links for 3"),
    ],
)
def test_scores_that_do_not_fit_the_links(tmp_path: Path, scores: str, message: str) -> None:
    path = write(tmp_path, "0-0 1-1\n\n0-0 0-1\n")
    with pytest.raises(DataError, match=message):
        read(LinkFile(path, scores=write(tmp_path, scores, "scores")))


def test_a_link_given_twice_has_no_one_score(tmp_path: Path) -> None:
    path = write(tmp_path, "0-0 0-0\n\n\n")
    with pytest.raises(DataError, match=":1: a link given twice"):
        read(LinkFile(path, scores=write(tmp_path, "1 0\n\n\n", "scores")))


@pytest.mark.parametrize("links", [LinkFile("f", "gold", scores="s"), LinkFile("-", scores="s")])
def test_scores_need_a_pharaoh_file(links: LinkFile) -> None:
    with pytest.raises(UsageError):
        read(links)


@given(st.floats(-1e14, 1e14, allow_nan=False) | st.integers(-(10**14), 10**14))
@settings(deadline=None)
def test_numbers_as_python_writes_them_are_read(value: float) -> None:
    assert NUMBER.fullmatch(str(value))


@pytest.mark.parametrize("text", ["", "nan", "inf", "+1", ".5", "1.", "01", "1_0", "٣", " 1", "1e", "0x1", "1\n"])
def test_other_numbers_are_not(text: str) -> None:
    assert not NUMBER.fullmatch(text)
