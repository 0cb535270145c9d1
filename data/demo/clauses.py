"""Clauses: a verb, its arguments and what else is said, put in order by rank.

The words of a clause are parts with a rank in German and a rank in English. Word order is sorting: a main clause, a
question and a subordinate clause hold the same parts and differ in the rank of a few.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum, auto
from typing import TYPE_CHECKING

from data.demo.phrases import Phrase, Words, words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from data.demo.nouns import Nominal
    from data.demo.verbs import MainVerb, VerbGroup


class De(IntEnum):
    """Places of a German clause from left to right."""

    FRONT = auto()
    SECOND = auto()
    SUBJECT = auto()
    ACC_PRONOUN = auto()
    REFLEXIVE = auto()
    DAT_PRONOUN = auto()
    LATE_SUBJECT = auto()
    PARTICLE = auto()
    COMMENT = auto()
    TIME = auto()
    DAT = auto()
    ACC = auto()
    NOT = auto()
    FREQUENCY = auto()
    MANNER = auto()
    PLACE = auto()
    INDEFINITE = auto()
    COMPLEMENT = auto()
    CLOSING = auto()
    AFTER = auto()


class En(IntEnum):
    """Places of an English clause from left to right."""

    LEAD = auto()
    QUESTION = auto()
    SUBJECT = auto()
    OPERATOR = auto()
    NOT = auto()
    MIDDLE = auto()
    VERB = auto()
    INDIRECT = auto()
    PRONOUN = auto()
    PARTICLE = auto()
    OBJECT = auto()
    MANNER = auto()
    COMPLEMENT = auto()
    PLACE = auto()
    TIME = auto()
    AFTER = auto()


@dataclass(frozen=True)
class Part:
    """Words with their place on either side. `tail` is a German relative clause that may leave its noun."""

    phrase: Phrase
    de: De
    en: En
    tail: Words = ()
    leads: bool = False  # may open an English clause where it opens the German one


@dataclass(frozen=True)
class Clause:
    """Parts without the verb, the words of the verb, and the subject, which is also the part of rank SUBJECT."""

    parts: tuple[Part, ...]
    group: VerbGroup
    subject: Nominal
    verb: MainVerb
    when: str = "habit"
    question: bool = False

    def with_part(self, *parts: Part) -> Clause:
        return replace(self, parts=self.parts + parts)

    def main(self, front: Part | None = None, *, lead: bool = False) -> Phrase:
        """Verb second, after `front` (the subject, if none is given); with `lead` it opens the English clause too."""
        if front is None:
            front = next(part for part in self.parts if part.de is De.SUBJECT)
            parts = [replace(part, de=De.FRONT) if part is front else part for part in self.parts]
        else:
            moved = replace(front, de=De.FRONT, en=En.LEAD if lead else front.en)
            parts = [moved if part is front else part for part in self._inverted()]
        return self._arranged(parts, self.group.opening, self.group.closing)

    def verb_first(self) -> Phrase:
        """Yes-or-no question; also a main clause after something outside it."""
        return self._arranged(self._inverted(), self.group.opening, self.group.closing)

    def verb_last(self) -> Phrase:
        """Subordinate clause, without its conjunction."""
        return self._arranged(self.parts, (), self.group.last)

    def _inverted(self) -> list[Part]:
        """The parts after the verb of a main clause, where pronouns go before a noun as subject: freut sich Anna."""
        late = not self.subject.is_pronoun
        return [replace(part, de=De.LATE_SUBJECT) if late and part.de is De.SUBJECT else part for part in self.parts]

    def _arranged(self, parts: Sequence[Part], opening: Words, closing: Words) -> Phrase:
        source: list[tuple[De, Words]] = [(De.SECOND, opening), (De.CLOSING, closing)]
        group, question = self.group, self.question
        target: list[tuple[En, Words]] = [
            (En.QUESTION if question else En.OPERATOR, group.operator),
            (En.VERB, group.english),
            (En.PARTICLE, group.particle),
        ]
        for part in parts:
            target.append((part.en, part.phrase.en))
            if part.de is De.FRONT:
                source.append((De.FRONT, part.phrase.de + part.tail))
            else:
                source += [(part.de, part.phrase.de), (De.AFTER, part.tail)]
        return Phrase(_joined(source), _joined(target))


def _joined(ranked: Sequence[tuple[De, Words]] | Sequence[tuple[En, Words]]) -> Words:
    """The words by rank; equal ranks keep their order."""
    return tuple(word for _, part in sorted(ranked, key=lambda entry: entry[0]) for word in part)


COMMA = Phrase(words(","), ())
