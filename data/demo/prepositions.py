"""Prepositional phrases: contractions, places and directions, and what noun phrases carry behind their noun."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from data.demo import german
from data.demo.lexicon import Noun, nouns_of
from data.demo.nouns import Nominal, Request, nominal, noun_phrase
from data.demo.phrases import Bond, Phrase, link, merge, words

if TYPE_CHECKING:
    from data.demo.draw import Draw
    from data.demo.lexicon import Case, Kinds


def prepositional(draw: Draw, preposition: Phrase, object_: Nominal) -> Phrase:
    """Preposition and noun phrase, contracted where German does so: im ↔ in the."""
    phrase = preposition + object_.phrase
    if object_.contracts and not object_.tail and preposition.de:
        first, second = phrase.de[len(preposition.de) - 1 : len(preposition.de) + 1]
        if short := german.CONTRACTIONS.get((first.text, second.text)):
            draw.note("contraction")
            start = (*preposition.de[:-1], merge(short, first, second))
            return Phrase(start + object_.phrase.de[1:], phrase.en)
    return phrase


def place(draw: Draw, kinds: Kinds, direction: str = "where") -> Phrase:
    """A phrase of place: `where` one is, `to` or `from` where one goes, `onto` what one puts things.

    Shores are `an` and `by`, markets `auf` and `at`: each noun names its own prepositions.
    """
    noun, where = draw.pick([(entry, entry.where) for entry in nouns_of(kinds) if entry.where])
    source, target, case = _direction(noun, where, direction)
    if noun.proper:
        return link(source, target) + link(noun.german, noun.english)
    determiner = draw.weighted({"the": 12, "a": 2, "my": 1, "this": 1})
    there = noun_phrase(draw, noun, Request(kinds, case, determiner=determiner, plural=False))
    return prepositional(draw, link(source, target), there)


def _direction(noun: Noun, where: tuple[str, str], direction: str) -> tuple[str, str, Case]:
    inside = where[0] == "in"
    if direction == "to":
        if noun.proper:
            return "nach", "to", "dat"
        return ("in", "into" if "room" in noun.kinds else "to", "acc") if inside else ("zu", "to", "dat")
    if direction == "from":
        return ("aus" if inside else "von"), "from", "dat"
    return *where, "acc" if direction == "onto" else "dat"


@dataclass(frozen=True)
class Attribute:
    """A preposition that joins nouns of one kind to nouns of another."""

    heads: Kinds
    german: str
    case: Case
    english: str
    kinds: Kinds


def _attribute(heads: str, source: str, case: Case, target: str, kinds: str) -> Attribute:
    return Attribute(frozenset(heads.split()), source, case, target, frozenset(kinds.split()))


ATTRIBUTES = (
    _attribute("person", "mit", "dat", "with", "Hut Mantel Koffer Tasche Schirm pet Kamera"),
    _attribute("person", "aus", "dat", "from", "city"),
    _attribute("home eatery Park", "an", "dat", "by", "shore"),
    _attribute("building", "mit", "dat", "with", "Tor Dach Garten"),
    _attribute("plant Haus", "in", "dat", "in", "green Hof town"),
    _attribute("Buch Bericht Film Lied Gedicht Geschichte", "über", "acc", "about", "animal person town trip Musik"),
    _attribute("mail gift", "von", "dat", "from", "person"),
    _attribute("gift mail", "für", "acc", "for", "person"),
    _attribute("Antwort", "auf", "acc", "to", "speech"),
    _attribute("Preis", "für", "acc", "for", "clothing vehicle"),
)
_OWNED = frozenset("thing vehicle clothing device home pet kin Büro Zimmer Garten text name idea".split())
_PARTS = {
    "part": frozenset({"building"}),
    "price": frozenset({"device", "vehicle"}),
    "name": frozenset({"town", "animal"}),
}


def with_attribute(draw: Draw, head: Nominal) -> Nominal:
    """`head`, sometimes with an owner or a prepositional attribute that suits it."""
    noun = head.noun
    if noun is None or noun.proper or head.tail or not draw.chance(0.12):
        return head
    if head.contracts and draw.chance(0.6):
        for kind, wholes in _PARTS.items():
            if kind in noun.kinds:
                return _of(draw, head, wholes)
        if noun.kinds & _OWNED:
            return _owned(draw, head)
    fitting = [attribute for attribute in ATTRIBUTES if attribute.heads & noun.kinds]
    if not fitting:
        return head
    chosen = draw.pick(fitting)
    request = Request(chosen.kinds, chosen.case, head.referent, pronouns=0.1)
    object_ = nominal(draw, request)
    draw.note("attribute")
    after = prepositional(draw, link(chosen.german, chosen.english), object_)
    return replace(head, phrase=head.phrase + after)


def _of(draw: Draw, head: Nominal, wholes: Kinds) -> Nominal:
    """das Dach des Hauses ↔ the roof of the house."""
    draw.note("genitive")
    whole = draw.pick([noun for noun in nouns_of(wholes) if not noun.proper])
    owner = noun_phrase(draw, whole, Request(wholes, "gen", determiner="the", plural=False))
    article = owner.phrase.de[0]
    of = words("of", possible=article.sure)
    return replace(head, phrase=Phrase(head.phrase.de + owner.phrase.de, head.phrase.en + of + owner.phrase.en))


def _owned(draw: Draw, head: Nominal) -> Nominal:
    """das Auto der Frau, das Auto von Anna, Annas Auto ↔ the woman's car, Anna's car."""
    draw.note("genitive")
    person = draw.pick(nouns_of(frozenset({"person"})))
    rest = head.phrase.en[1:]  # the English article gives way to the owner
    if not person.proper:
        owner = noun_phrase(draw, person, Request(person.kinds, "gen", determiner="the", plural=False))
        possible = {bond for word in (owner.phrase.de[0], owner.phrase.de[-1]) for bond in word.sure}
        genitive = words("'s", possible=possible)
        return replace(head, phrase=Phrase(head.phrase.de + owner.phrase.de, owner.phrase.en + genitive + rest))
    name, mark = Bond(), Bond()
    said = words(person.english, name) + words("'s", mark)
    if draw.chance(0.5) or len(head.phrase.de) > 2:
        of = words("von", mark) + words(person.german, name)
        return replace(head, phrase=Phrase(head.phrase.de + of, said + rest))
    owner_first = words(person.german + "s", name, mark) + head.phrase.de[1:]
    return replace(head, phrase=Phrase(owner_first, said + rest), contracts=False)
