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
        self._next = random.Random(seed).random  # noqa: S311, not for secrets
        self.tags: set[str] = set()

    def chance(self, probability: float) -> bool:
        return self._next() < probability

    def pick(self, options: Sequence[T]) -> T:
        return options[int(self._next() * len(options))]

    def weighted(self, weights: Mapping[T, float]) -> T:
        """A key of `weights`, as often as its weight says."""
        rest = self._next() * sum(weights.values())
        for option, weight in weights.items():
            rest -= weight
            if rest < 0:
                return option
        return next(reversed(weights))

    def note(self, *tags: str) -> None:
        self.tags.update(tags)
