"""Random sentence pairs with weighted links, of few words, so that they repeat."""

from __future__ import annotations

from hypothesis import strategies as st

from align.lexicon_input import UNIT, LinkedPair
from data.bitext import Pair

WORDS = st.lists(st.sampled_from("abc"), max_size=4)


@st.composite
def linked_pairs(draw: st.DrawFn, weights: tuple[int, ...] = (UNIT,)) -> LinkedPair:
    """A pair of at most 4 words a side, each link with one of `weights` in millionths."""
    source, target = draw(WORDS), draw(WORDS)
    every = [(i, j) for i in range(len(source)) for j in range(len(target))]
    links = draw(st.lists(st.sampled_from(every), unique=True)) if every else []
    return LinkedPair(Pair(0, tuple(source), tuple(target)), {link: draw(st.sampled_from(weights)) for link in links})
