"""Phrase pairs against the definition of consistency."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from align.phrases import Span, phrase_pairs
from data.links import Links

Shape = tuple[int, int, Links]


def naive(links: Links, source_length: int, target_length: int, longest: int) -> set[tuple[Span, Span]]:
    """All pairs of spans, each tested word by word: a link inside, and none that leaves one of the spans."""
    found = set()
    for i1 in range(source_length):
        for i2 in range(i1 + 1, source_length + 1):
            for j1 in range(target_length):
                for j2 in range(j1 + 1, target_length + 1):
                    inside = [(i, j) for i, j in links if i1 <= i < i2 and j1 <= j < j2]
                    crossing = [(i, j) for i, j in links if (i1 <= i < i2) != (j1 <= j < j2)]
                    if inside and not crossing and i2 - i1 <= longest and j2 - j1 <= longest:
                        found.add(((i1, i2), (j1, j2)))
    return found


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    source, target = draw(st.integers(0, 6)), draw(st.integers(0, 6))
    if not source or not target:
        return source, target, frozenset()
    link = st.tuples(st.integers(0, source - 1), st.integers(0, target - 1))
    return source, target, draw(st.frozensets(link, max_size=8))


@given(shapes(), st.integers(1, 7))
@settings(deadline=None)
def test_all_consistent_pairs_each_once(shape: Shape, longest: int) -> None:
    source, target, links = shape
    found = list(phrase_pairs(links, source, target, longest))
    assert len(set(found)) == len(found)
    assert set(found) == naive(links, source, target, longest)


@given(shapes(), st.integers(1, 7))
@settings(deadline=None)
def test_sides_can_be_exchanged(shape: Shape, longest: int) -> None:
    source, target, links = shape
    turned = phrase_pairs({(j, i) for i, j in links}, target, source, longest)
    assert {(s, t) for t, s in turned} == set(phrase_pairs(links, source, target, longest))


SAW = {(0, 0), (1, 1), (3, 1), (2, 2)}


@pytest.mark.parametrize(
    ("links", "longest", "expected"),
    [
        # "habe" and "gesehen" go with "saw", and the word between them belongs along
        (SAW, 4, {"ich|i", "es|it", "habe es gesehen|saw it", "ich habe es gesehen|i saw it"}),
        (SAW, 2, {"ich|i", "es|it"}),
        # unlinked words at the borders of a phrase may belong to it or not
        (
            {(1, 1)},
            2,
            {f"{s}|{t}" for s in ("habe", "ich habe", "habe es") for t in ("saw", "i saw", "saw it")},
        ),
        (set(), 3, set()),
    ],
)
def test_examples(links: set[tuple[int, int]], longest: int, expected: set[str]) -> None:
    source, target = "ich habe es gesehen".split(), "i saw it".split()
    found = {
        " ".join(source[i1:i2]) + "|" + " ".join(target[j1:j2])
        for (i1, i2), (j1, j2) in phrase_pairs(links, 4, 3, longest)
    }
    assert found == expected
