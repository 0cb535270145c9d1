"""What completes sein, heißen, wohnen, gehen and the like: adjectives, professions, names and places."""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.demo import english, german
from data.demo.choices import PERSON
from data.demo.clauses import De, En, Part
from data.demo.lexicon import adjectives_for, nouns_of
from data.demo.nouns import Nominal, Request, nominal
from data.demo.phrases import Phrase, link, units, words
from data.demo.prepositions import place

if TYPE_CHECKING:
    from data.demo.draw import Draw
    from data.demo.lexicon import Argument

_MEASURES = {"age": (100, "Jahre alt", "years old"), "price": (100, "Euro", "euros"), "span": (13, "Stunden", "hours")}
_ADVERBS = (("sehr", "very"), ("zu", "too"), ("ziemlich", "rather"), ("so", "so"), ("besonders", "particularly"))


def complement(draw: Draw, argument: Argument, subject: Nominal) -> Part:
    """The words for an argument that is neither a noun phrase nor a clause."""
    role = argument.role
    profession = _profession(draw, subject) if role == "profession" else None
    if role == "adj" or (role == "profession" and not profession):
        return adjective(draw, subject)
    if profession:
        phrase = profession
    elif role == "called":
        phrase = _name(draw, subject)
    elif role in _MEASURES:
        phrase = _measure(draw, role)
    else:
        phrase = place(draw, argument.kinds, role)
    return Part(phrase, De.COMPLEMENT, En.COMPLEMENT)


def adjective(draw: Draw, subject: Nominal) -> Part:
    """müde, sehr müde, so müde wie Anna, müder als Anna; whom one compares with may stand behind the verb."""
    kinds = subject.noun.kinds if subject.noun else PERSON
    said = {word.text for word in subject.phrase.en}
    chosen = draw.pick([option for option in adjectives_for(kinds) if option.english not in said])
    if chosen.gradable and draw.chance(0.14):
        draw.note("comparison")
        others = Request(chosen.kinds & kinds, "nom", subject.referent, pronouns=0)
        other = nominal(draw, others).phrase
        if draw.chance(0.6):
            more, _ = english.degrees(chosen.english)
            how = link(german.comparative(chosen.german, chosen.comparative), more)
            whom = link("als", "than") + other
        else:
            how = link("so", "as") + link(chosen.german, chosen.english)
            whom = link("wie", "as") + other
        return Part(Phrase(how.de, how.en + whom.en), De.COMPLEMENT, En.COMPLEMENT, whom.de)
    before = link(*draw.pick(_ADVERBS)) if chosen.gradable and draw.chance(0.25) else Phrase()
    return Part(before + link(chosen.german, chosen.english), De.COMPLEMENT, En.COMPLEMENT)


def _name(draw: Draw, subject: Nominal) -> Phrase:
    """Anna for a woman, Wien for a town."""
    kinds = {"city"} if subject.noun and "town" in subject.noun.kinds else {"person"}
    gender = "f" if subject.referent.english.subject == "she" else "m"
    names = [noun for noun in nouns_of(frozenset(kinds)) if noun.proper and ("city" in kinds or noun.gender == gender)]
    chosen = draw.pick(names)
    return link(chosen.german, chosen.english)


def _measure(draw: Draw, role: str) -> Phrase:
    """einundzwanzig Jahre alt, zwölf Euro, drei Stunden."""
    draw.note("numeral")
    highest, source, target = _MEASURES[role]
    value = draw.pick(range(2, highest))
    return link(german.number(value), english.number(value)) + units(source, target)


def _profession(draw: Draw, subject: Nominal) -> Phrase | None:
    """Köchin ↔ a cook: the English article has no partner of its own."""
    gender = {"he": "m", "she": "f"}.get(subject.referent.english.subject)
    options = [noun for noun in nouns_of(frozenset({"profession"})) if noun.gender == gender]
    if not options or (subject.noun and "profession" in subject.noun.kinds):
        return None
    chosen = draw.pick(options)
    phrase = link(chosen.german, chosen.english)
    return Phrase(phrase.de, words("a", possible=phrase.de[0].sure) + phrase.en)
