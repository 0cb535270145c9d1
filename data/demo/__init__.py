"""German-English sentence pairs with gold links: a small language that shows what makes alignment hard.

A synchronous grammar makes any number of pairs (`generate`, `training`, `held_out`), with the links by construction;
`handmade` pairs were written and aligned by hand within its vocabulary. Text is tokenised; the first word of a sentence
is written as it would be within one. The rules for links are in `docs/alignment-guidelines.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import count as counting
from itertools import islice
from typing import TYPE_CHECKING

from data.demo.draw import Draw
from data.demo.grammar import sentence
from data.demo.phrases import gold
from data.errors import UsageError
from data.links import GoldAlignment, parse_gold

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["DemoPair", "generate", "handmade", "held_out", "training"]

LONGEST = 25  # words on either side
HELD_OUT = 500  # pairs set aside
_HELD_OUT_SEED = -1


@dataclass(frozen=True)
class DemoPair:
    """A German source and an English target, their gold links `(i, j)`, and the phenomena met in them."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    gold: GoldAlignment
    tags: frozenset[str] = frozenset()


def generate(seed: int, count: int) -> Iterator[DemoPair]:
    """`count` pairs from the grammar; pair number n depends on `seed` and n alone. Pairs may repeat."""
    return (_pair(seed, number) for number in range(count))


def _pair(seed: int, number: int) -> DemoPair:
    for attempt in counting():
        draw = Draw(f"{seed}:{number}:{attempt}")
        phrase = sentence(draw)
        source, target = (tuple(word.text for word in side) for side in (phrase.de, phrase.en))
        if _is_natural(source, target):
            return DemoPair(source, target, gold(phrase), frozenset(draw.tags))
    raise AssertionError("unreachable")


def _is_natural(source: tuple[str, ...], target: tuple[str, ...]) -> bool:
    """Whether a pair is short enough and names nothing twice; German tells nouns by their capital."""
    nouns = [word for word in source if word[0].isupper() and not word.startswith(("Sie", "Ihr", "Ihnen"))]
    return max(len(source), len(target)) <= LONGEST and len(set(nouns)) == len(nouns)


def held_out(count: int = 200) -> tuple[DemoPair, ...]:
    """The first `count` of the pairs set aside, all different.

    Raises:
        UsageError: `count` is above the number of pairs set aside.
    """
    if not 0 <= count <= HELD_OUT:
        raise UsageError(f"held_out has {HELD_OUT} pairs, {count} were asked for")
    return _set_aside()[:count]


@cache
def _set_aside() -> tuple[DemoPair, ...]:
    pairs = (_pair(_HELD_OUT_SEED, number) for number in counting())
    seen: dict[tuple[tuple[str, ...], tuple[str, ...]], DemoPair] = {}
    while len(seen) < HELD_OUT:
        pair = next(pairs)
        seen.setdefault((pair.source, pair.target), pair)
    return tuple(seen.values())


@cache
def handmade() -> tuple[DemoPair, ...]:
    """Natural sentence pairs within the vocabulary of the grammar, written and aligned by hand."""
    folder = files(__name__)
    columns = (folder.joinpath(f"handmade.{end}").read_text("utf-8").splitlines() for end in ("de", "en", "gold"))
    return tuple(
        DemoPair(tuple(source.split(" ")), tuple(target.split(" ")), parse_gold(links))
        for source, target, links in zip(*columns, strict=True)
    )


def training(seed: int, count: int) -> Iterator[DemoPair]:
    """`count` pairs to learn from: none has its source or its target among the held-out or handmade pairs."""
    kept_back = (*_set_aside(), *handmade())
    sources = {pair.source for pair in kept_back}
    targets = {pair.target for pair in kept_back}
    pairs = (_pair(seed, number) for number in counting())
    return islice((pair for pair in pairs if pair.source not in sources and pair.target not in targets), count)
