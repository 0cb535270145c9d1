"""Chance that is the same on every machine and in every version of Python."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

T = TypeVar("T")


class Draw:
    """Choices that follow from `seed` alone, and the names of the phenomena met on the way.

    Only `random.Random.random` is used: its sequence is the one that Python promises to keep.
    """

    def __init__(self, seed: str) -> None:
        self._next = random.Random(seed).random
        self.tags: set[str] = set()

    def chance(self, probability: float) -> bool:
        return self._next() < probability

    def pick(self, options: Sequence[T]) -> T:
        return options[int(self._next() * len(options))]

    def weighted(self, weights: Mapping[T, float]) -> T:
        """A key of `weights`, as often as its weight says."""
        options = list(weights)
        rest = self._next() * sum(weights.values())
        for option in options[:-1]:
            rest -= weights[option]
            if rest < 0:
                return option
        return options[-1]

    def note(self, *tags: str) -> None:
        self.tags.update(tags)
