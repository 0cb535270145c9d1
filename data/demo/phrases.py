"""Words of two languages that know their partners: the algebra under the grammar.

Words that translate one another share a `Bond`, an identity without content. A rule may put German and English words
in any order and as far apart as it likes; `gold` reads the links off at the end, so no rule ever counts positions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from data.links import GoldAlignment

if TYPE_CHECKING:
    from collections.abc import Iterable


class Bond:
    """What a word and its translation have in common: compared by identity."""

    __slots__ = ()


Bonds: TypeAlias = frozenset[Bond]
NONE: Bonds = frozenset()


@dataclass(frozen=True, slots=True)
class Word:
    """A word and its bonds: a link is sure where both ends hold a bond as sure, possible where one of them does."""

    text: str
    sure: Bonds = NONE
    possible: Bonds = NONE


Words: TypeAlias = tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class Phrase:
    """The same thing said in German and in English, words in the order of each language."""

    de: Words = ()
    en: Words = ()

    def __add__(self, other: Phrase) -> Phrase:
        return Phrase(self.de + other.de, self.en + other.en)


def words(text: str, *sure: Bond, possible: Iterable[Bond] = ()) -> Words:
    """The words of `text`, each with the same bonds."""
    return tuple(Word(word, frozenset(sure), frozenset(possible)) for word in text.split())


def link(german: str, english: str, *, sure: bool = True) -> Phrase:
    """Two short texts as one unit: each German word with each English word; an empty text leaves the other alone."""
    bond = Bond()
    return Phrase(words(german, bond), words(english, bond) if sure else words(english, possible=[bond]))


def units(german: str, english: str) -> Phrase:
    """Word by word, where `_` ties words to one unit: `am Abend`, `in_the evening`."""
    phrase = Phrase()
    for source, target in zip(german.split(), english.split(), strict=True):
        phrase += link(source.replace("_", " "), target.replace("_", " "))
    return phrase


def merge(text: str, *parts: Word) -> Word:
    """One written word that stands for several, such as `im` for `in dem`."""
    sure = NONE.union(*(part.sure for part in parts))
    return Word(text, sure, NONE.union(*(part.possible for part in parts)))


def gold(phrase: Phrase) -> GoldAlignment:
    """The links of a finished sentence, `(i, j)` = (German word, English word), zero-based."""
    holders: dict[Bond, list[tuple[int, bool]]] = {}
    for j, target in enumerate(phrase.en):
        for bond in target.sure | target.possible:
            holders.setdefault(bond, []).append((j, bond in target.sure))
    sure, possible = set(), set()
    for i, source in enumerate(phrase.de):
        for bond in source.sure | source.possible:
            for j, certain in holders.get(bond, ()):
                if certain and bond in source.sure:
                    sure.add((i, j))
                elif certain or bond in source.sure:
                    possible.add((i, j))
    return GoldAlignment(frozenset(sure), frozenset(sure | possible))
