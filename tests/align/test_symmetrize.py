"""Each symmetrisation rule against a worked table and a slow twin; properties of all of them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from align.symmetrize import METHODS, method_name, symmetrize
from data.errors import UsageError
from data.links import Links

GROWING = [name for name in METHODS if "grow" in name]


def parse(text: str) -> Links:
    return frozenset((int(i), int(j)) for i, j in (link.split("-") for link in text.split()))


def inverted(links: Links) -> Links:
    return frozenset((j, i) for i, j in links)


# forward ; reverse ; lilt gd ; gdf ; symal gd ; gdf ; gdfa ; atools gd ; gdf ; gdfa ("=": as the one before)
WORKED = """
0-0 0-1; 0-0; 0-0; 0-0; 0-0 0-1; =; =; 0-0 0-1; =; =
0-0 0-2; 0-0; 0-0; 0-0; 0-0; 0-0 0-2; 0-0; 0-0; 0-0 0-2; 0-0
0-0 3-3; 0-0; 0-0; 0-0 3-3; 0-0; 0-0 3-3; 0-0 3-3; 0-0; 0-0 3-3; 0-0 3-3
0-0 1-1; 0-1 1-1; 0-0 1-1; =; 0-0 0-1 1-1; =; =; 0-0 1-1; =; =
0-0 2-3; 0-0 2-4; 0-0; 0-0 2-3; 0-0; 0-0 2-3 2-4; 0-0 2-3; 0-0; 0-0 2-3 2-4; 0-0 2-3
; 1-1; ; 1-1; ; 1-1; 1-1; ; 1-1; 1-1
0-0 0-2 1-1; 1-1; 0-2 1-1; =; 0-0 0-2 1-1; =; =; 0-0 0-2 1-1; =; =
0-0 1-1 2-2 3-3; 0-0 2-1 3-2; 0-0 1-1 2-2 3-3; =; 0-0 1-1 2-1 2-2 3-2 3-3; =; =; 0-0 1-1 2-1 2-2 3-2 3-3; =; =
; ; ; ; ; ; ; ; ;
"""
WORKED_METHODS = [
    "lilt-grow-diag",
    "lilt-grow-diag-final",
    "grow-diag",
    "grow-diag-final",
    "grow-diag-final-and",
    "atools-grow-diag",
    "atools-grow-diag-final",
    "atools-grow-diag-final-and",
]


def worked_cases() -> list[tuple[str, str, str, str]]:
    cases = []
    for line in WORKED.strip().splitlines():
        forward, reverse, *cells = (cell.strip() for cell in line.split(";"))
        expected = ""
        for method, cell in zip(WORKED_METHODS, cells, strict=True):
            expected = expected if cell == "=" else cell
            cases.append((forward, reverse, method, expected))
    return cases


@pytest.mark.parametrize(("forward", "reverse", "method", "expected"), worked_cases())
def test_worked_cases(forward: str, reverse: str, method: str, expected: str) -> None:
    assert symmetrize(parse(forward), parse(reverse), method) == parse(expected)


def test_simple_methods_and_grow_without_diagonal() -> None:
    forward, reverse = parse("0-0 1-1 1-2"), parse("0-0 2-2 0-1")
    assert symmetrize(forward, reverse, "intersection") == parse("0-0")
    assert symmetrize(forward, reverse, "union") == parse("0-0 0-1 1-1 1-2 2-2")
    assert symmetrize(forward, reverse, "forward") == forward
    assert symmetrize(forward, reverse, "reverse") == reverse
    assert symmetrize(parse("0-0 1-1"), parse("0-0"), "grow") == parse("0-0")
    assert symmetrize(parse("0-0 1-1"), parse("0-0"), "grow-diag") == parse("0-0 1-1")
    assert symmetrize(parse("0-0 0-1"), parse("0-0"), "grow") == parse("0-0 0-1")


@pytest.mark.parametrize(
    ("union", "expected"),
    [
        # (-1, 0) and (0, -1) come before (-1, -1), which then has no free word left.
        ("1-1 1-0 0-1 0-0", "1-1 1-0 0-1"),
        # (-1, -1), (-1, 1), (1, -1) leave (1, 1) no free word; as (target, source), so 2-0 and 0-2 both come first.
        ("1-1 0-0 2-0 0-2 2-2", "1-1 0-0 2-0 0-2"),
        ("1-1 2-0 0-2 2-2", "1-1 2-0 0-2"),
    ],
)
def test_moses_visits_straight_neighbours_first_and_then_diagonals_in_order(union: str, expected: str) -> None:
    assert symmetrize(parse(union), parse("1-1"), "grow-diag") == parse(expected)


def test_moses_grow_takes_all_straight_neighbours() -> None:
    """Each brings a free word of its own, so that their order among themselves cannot be seen; diagonals never join."""
    assert symmetrize(parse("1-1 1-0 0-1 2-1 1-2 0-0 2-2"), parse("1-1"), "grow") == parse("1-1 1-0 0-1 2-1 1-2")


# The twins: every cell of the grid, every neighbour, every condition looked up in the whole set.


def free_words(links: set[tuple[int, int]], i: int, j: int) -> int:
    """How many of the two words have no link."""
    return all(a != i for a, _ in links) + all(b != j for _, b in links)


def twin_of_walking_links(
    forward: Links,
    reverse: Links,
    neighbours: list[tuple[int, int]],
    cells: list[tuple[int, int]],
    need: int,
    final: int | None,
) -> Links:
    """`cells`: all (i, j) as visited; `neighbours`: as (Δi, Δj); `need` and `final`: how many free words."""
    links = set(forward & reverse)
    while True:
        before = len(links)
        for i, j in cells:
            if (i, j) in links:
                for di, dj in neighbours:
                    near = (i + di, j + dj)
                    if near in forward | reverse and free_words(links, *near) >= need:
                        links.add(near)
        if len(links) == before:
            break
    if final is not None:
        for direction in (forward, reverse):
            for cell in cells:
                if cell in direction and free_words(links, *cell) >= final:
                    links.add(cell)
    return frozenset(links)


def twin_of_symal(forward: Links, reverse: Links, diagonal: bool, final: int | None) -> Links:
    """Moses: offsets listed as (Δtarget, Δsource), links in (target, source) order."""
    offsets = [(-1, 0), (0, -1), (1, 0), (0, 1)]
    if diagonal:
        offsets += [(-1, -1), (-1, 1), (1, -1), (1, 1)]
    cells = [(i, j) for j in range(SIZE) for i in range(SIZE)]
    return twin_of_walking_links(forward, reverse, [(di, dj) for dj, di in offsets], cells, 1, final)


def twin_of_lilt(forward: Links, reverse: Links, final: int | None) -> Links:
    offsets = [(0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, 0), (1, -1), (1, 1)]
    cells = list(product(range(SIZE), range(SIZE)))
    return twin_of_walking_links(forward, reverse, offsets, cells, 2, final)


def twin_of_atools(forward: Links, reverse: Links, final: int | None) -> Links:
    links = set(forward & reverse)
    waiting = sorted((forward | reverse) - links)
    while True:
        added = []
        for i, j in waiting:
            beside = any(abs(a - i) <= 1 and abs(b - j) <= 1 for a, b in links)
            if beside and free_words(links, i, j) >= 1:
                links.add((i, j))
                added.append((i, j))
        if not added:
            break
        waiting = [link for link in waiting if link not in added]
    if final is not None:
        for direction in (forward, reverse):
            for link in sorted(direction):
                if free_words(links, *link) >= final:
                    links.add(link)
    return frozenset(links)


TWINS: dict[str, Callable[[Links, Links], Links]] = {
    "grow": lambda f, r: twin_of_symal(f, r, diagonal=False, final=None),
    "grow-diag": lambda f, r: twin_of_symal(f, r, diagonal=True, final=None),
    "grow-diag-final": lambda f, r: twin_of_symal(f, r, diagonal=True, final=1),
    "grow-diag-final-and": lambda f, r: twin_of_symal(f, r, diagonal=True, final=2),
    "atools-grow-diag": lambda f, r: twin_of_atools(f, r, final=None),
    "atools-grow-diag-final": lambda f, r: twin_of_atools(f, r, final=1),
    "atools-grow-diag-final-and": lambda f, r: twin_of_atools(f, r, final=2),
    "lilt-grow-diag": lambda f, r: twin_of_lilt(f, r, final=None),
    "lilt-grow-diag-final": lambda f, r: twin_of_lilt(f, r, final=2),
}
SIZE = 6
positions = st.integers(0, SIZE - 1)
link_sets = st.frozensets(st.tuples(positions, positions), max_size=14)


def random_pairs(seed: int, count: int) -> list[tuple[Links, Links]]:
    """Pairs of link sets with much in common, so that there is something to grow from."""
    rng = np.random.default_rng(seed)
    pairs = []
    for _ in range(count):
        union = np.argwhere(rng.random((SIZE, SIZE)) < rng.uniform(0.1, 0.6)).tolist()
        owners = zip(union, rng.integers(3, size=len(union)).tolist(), strict=True)
        owned = [((i, j), owner) for (i, j), owner in owners]  # 0 forward, 1 reverse, 2 both
        forward = frozenset(link for link, owner in owned if owner != 1)
        reverse = frozenset(link for link, owner in owned if owner != 0)
        pairs.append((forward, reverse))
    return pairs


def test_every_growing_method_has_a_twin() -> None:
    assert sorted(TWINS) == sorted(GROWING)


@pytest.mark.parametrize("method", GROWING)
def test_equals_its_slow_twin(method: str) -> None:
    for forward, reverse in random_pairs(seed=1, count=300):
        assert symmetrize(forward, reverse, method) == TWINS[method](forward, reverse), (forward, reverse)


def test_no_two_rules_are_the_same() -> None:
    pairs = random_pairs(seed=1, count=300)
    results = {method: tuple(symmetrize(f, r, method) for f, r in pairs) for method in METHODS}
    assert len(set(results.values())) == len(METHODS)


@settings(deadline=None)
@given(link_sets, link_sets)
def test_twins_on_found_cases(forward: Links, reverse: Links) -> None:
    for method, twin in TWINS.items():
        assert symmetrize(forward, reverse, method) == twin(forward, reverse), method


@settings(deadline=None)
@given(link_sets, link_sets, st.sampled_from(["", "atools-", "lilt-"]))
def test_subset_chain(forward: Links, reverse: Links, family: str) -> None:
    grown = symmetrize(forward, reverse, f"{family}grow-diag")
    assert forward & reverse <= grown
    for final in ("-final", "-final-and"):
        name = f"{family}grow-diag{final}"
        if name in METHODS:
            assert grown <= symmetrize(forward, reverse, name) <= forward | reverse
    if not family:
        assert forward & reverse <= symmetrize(forward, reverse, "grow") <= forward | reverse


@settings(deadline=None)
@given(link_sets, link_sets)
def test_growing_knows_no_direction_until_the_final_step(forward: Links, reverse: Links) -> None:
    for method in ("intersection", "union", "grow", "grow-diag", "atools-grow-diag", "lilt-grow-diag"):
        assert symmetrize(forward, reverse, method) == symmetrize(reverse, forward, method)


@settings(deadline=None)
@given(link_sets, link_sets)
def test_intersection_and_union_commute_with_inverting(forward: Links, reverse: Links) -> None:
    for method in ("intersection", "union", "forward", "reverse"):
        there = symmetrize(inverted(forward), inverted(reverse), method)
        assert inverted(there) == symmetrize(forward, reverse, method)


@settings(deadline=None)
@given(link_sets, st.sampled_from(METHODS))
def test_agreeing_directions_stay_as_they_are(links: Links, method: str) -> None:
    assert symmetrize(links, links, method) == links


@settings(deadline=None)
@given(link_sets, link_sets)
def test_everyone_with_a_link_somewhere_has_one_after_final(forward: Links, reverse: Links) -> None:
    for method in ("grow-diag-final", "atools-grow-diag-final"):
        links = symmetrize(forward, reverse, method)
        assert {i for i, _ in links} == {i for i, _ in forward | reverse}
        assert {j for _, j in links} == {j for _, j in forward | reverse}


@pytest.mark.parametrize("method", GROWING)
def test_growing_does_not_commute_with_inverting(method: str) -> None:
    """Which link comes first depends on which side is sorted first: (target, source) for Moses' rules."""
    changed = [
        (forward, reverse)
        for forward, reverse in random_pairs(seed=2, count=300)
        if inverted(symmetrize(inverted(forward), inverted(reverse), method)) != symmetrize(forward, reverse, method)
    ]
    assert changed


def test_final_scans_forward_before_reverse() -> None:
    forward, reverse = parse("2-3"), parse("2-4")
    for method in ("grow-diag-final-and", "atools-grow-diag-final-and", "lilt-grow-diag-final"):
        assert symmetrize(forward, reverse, method) == forward
        assert symmetrize(reverse, forward, method) == reverse


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("gdfa", "grow-diag-final-and"),
        ("GDF", "grow-diag-final"),
        ("gd", "grow-diag"),
        ("g", "grow"),
        ("i", "intersection"),
        ("intersect", "intersection"),
        ("u", "union"),
        ("grow_diag_final_and", "grow-diag-final-and"),
        ("grow-diagonal-final-and", "grow-diag-final-and"),
        ("lilt-grow-diagonal", "lilt-grow-diag"),
        *((method, method) for method in METHODS),
    ],
)
def test_names(name: str, meant: str) -> None:
    assert method_name(name) == meant


def test_the_default_is_grow_diag_final_and() -> None:
    forward, reverse = parse("0-0 2-3"), parse("0-0 2-4")
    assert symmetrize(forward, reverse) == parse("0-0 2-3")


@pytest.mark.parametrize("name", ["grow-diagonal", "grow-diagonal-final", "Grow_Diagonal"])
def test_ambiguous_names_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"'grow-diag.*Moses.*'lilt-grow-diag"):
        symmetrize(parse("0-0"), parse(""), name)


def test_unknown_name_gets_a_suggestion() -> None:
    with pytest.raises(UsageError, match=r"did you mean 'union'"):
        symmetrize(parse("0-0"), parse(""), "unoin")
