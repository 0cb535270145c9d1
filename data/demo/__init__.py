"""German-English sentence pairs with gold links, made by a grammar that ships with the package."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count as numbers
from itertools import islice
from typing import TYPE_CHECKING

from data.demo.draw import Draw
from data.demo.grammar import sentence
from data.demo.phrases import gold

if TYPE_CHECKING:
    from collections.abc import Iterator

    from data.links import GoldAlignment


@dataclass(frozen=True)
class DemoPair:
    """A German source and an English target, their gold links `(i, j)`, and the phenomena met in them."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    gold: GoldAlignment
    tags: frozenset[str] = frozenset()


def pair(seed: int, number: int) -> DemoPair:
    draw = Draw(f"{seed}:{number}")
    phrase = sentence(draw)
    return DemoPair(
        tuple(word.text for word in phrase.de),
        tuple(word.text for word in phrase.en),
        gold(phrase),
        frozenset(draw.tags),
    )


def generate(seed: int, count: int) -> Iterator[DemoPair]:
    return (pair(seed, n) for n in range(count))
