"""Sentence pairs in which entries of a lexicon occur. They wait on disk; memory holds where they are."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from align.lexicon_input import LinkedPair
    from data.links import Links


@dataclass(frozen=True)
class Example:
    """A sentence pair in which an entry occurs; `line` counts from 1."""

    line: int
    source: tuple[str, ...]
    target: tuple[str, ...]
    links: Links


@contextmanager
def examples_on_disk(most: int) -> Iterator[Examples]:
    """Room for examples, up to `most` of each entry, in the folder for temporary files (`TMPDIR`)."""
    with TemporaryFile(prefix="nmt-align-") as file:
        yield Examples(most, file)


class Examples:
    """Sentence pairs in a file. Places grow with the text, so that the least ones of an entry are its first pairs.

    Attributes:
        most: how many examples of each entry are wanted.
    """

    def __init__(self, most: int, file: IO[bytes]) -> None:
        self.most = most
        self._file = file
        self._end = 0
        self._linked: LinkedPair | None = None
        self._place: int | None = None

    def watch(self, pairs: Iterable[LinkedPair]) -> Iterator[LinkedPair]:
        """`pairs`, each of which is the one that `note` notes as long as no other is asked for."""
        for self._linked in pairs:
            self._place = None
            yield self._linked

    def note(self, places: list[int]) -> None:
        """Add where the present pair is to the places of an entry, unless it is there or they are enough."""
        if len(places) < self.most and not (places and places[-1] == self._place):
            places.append(self._keep())

    def _keep(self) -> int:
        if self._place is None:
            if self._linked is None:
                raise ValueError("no pair has been watched")
            pair = self._linked.pair
            line = json.dumps([pair.id + 1, pair.source, pair.target, sorted(self._linked.weights)]).encode() + b"\n"
            self._place = self._end
            self._end += self._file.write(line)
        return self._place

    def read(self, places: Sequence[int]) -> list[Example]:
        """The sentence pairs at these places; no more are noted once some have been read."""
        return [self._read(place) for place in places]

    def _read(self, place: int) -> Example:
        self._file.seek(place)
        line, source, target, links = json.loads(self._file.readline())
        return Example(line, tuple(source), tuple(target), frozenset((i, j) for i, j in links))
