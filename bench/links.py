"""AER and symmetrisation against loops in Python, on many links."""

from __future__ import annotations

import random

from align.symmetrize import symmetrize
from bench import naive
from bench.measure import measure, print_ratios
from data.links import GoldAlignment, Links
from eval.aer import corpus_stats, scores, total

WORDS = 25


def links(count: int, rounds: int) -> None:
    """Score and symmetrise sentences of 25 words that hold about `count` links in each direction."""
    draw = random.Random(0)
    sides = [[_diagonal(draw) for _ in range(count // WORDS)] for _ in range(3)]
    golds = [GoldAlignment(sure, possible | sure) for sure, possible in zip(*sides[:2], strict=True)]
    plain = [(gold.sure, gold.possible) for gold in golds]
    times = measure(
        {
            "loops in Python, AER": lambda: naive.aer(sides[2], plain),
            "nmt-align score": lambda: scores(total(corpus_stats(sides[2], golds))),
        },
        rounds,
    )
    print_ratios(times, count // 1000, "thousand links", "loops in Python, AER")
    times = measure(
        {
            "loops in Python, grow-diag-final-and": lambda: list(map(naive.grow_diag_final_and, *sides[:2])),
            "nmt-align symmetrize": lambda: list(map(symmetrize, *sides[:2])),
        },
        rounds,
    )
    print_ratios(times, count // 1000, "thousand links", "loops in Python, grow-diag-final-and")
    same = list(map(naive.grow_diag_final_and, *sides[:2])) == list(map(symmetrize, *sides[:2]))
    print(f"  both symmetrise alike: {'yes' if same else 'NO'}")


def _diagonal(draw: random.Random) -> Links:
    """A link for each target word, near the diagonal, as in an alignment of one direction."""
    return frozenset((min(WORDS - 1, max(0, round(draw.gauss(j, 1.2)))), j) for j in range(WORDS))
