"""What a clause says beside its verb and arguments: time, manner, place, comment, negation and modal particles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from data.demo import english, german
from data.demo.clauses import De, En, Part
from data.demo.lexicon import adverbs
from data.demo.phrases import Phrase, link, units
from data.demo.prepositions import place

if TYPE_CHECKING:
    from data.demo.draw import Draw
    from data.demo.lexicon import Verb

_PARTICLES = ("doch", "ja", "eben", "halt", "wohl")
_SPANS = (("Jahren", "years"), ("Tagen", "days"), ("Wochen", "weeks"), ("Stunden", "hours"), ("Monaten", "months"))
_FINISHED = (("schon", "already"), ("gerade", "just"), ("noch_nie", "never"))
_NAMES = {"soon": "future"}
_NEGATIONS = {"": 12, "noch": 2, "mehr": 2, "gar": 1}


@dataclass(frozen=True)
class Situation:
    """What adverbs must agree with: the time of the clause, its subject's number, and what kind of clause it is."""

    when: str
    plural: bool
    negated: bool = False
    embedded: bool = False  # in a question or a subordinate clause, where comments are rarer
    share: float = 1.0  # multiplies how often adverbs come


def adverbials(draw: Draw, verb: Verb, situation: Situation, *, short: bool = False) -> list[Part]:
    """Up to four adverbials that suit verb and situation; `short` leaves out all that would stand at the end."""
    share, parts = situation.share, []
    if not situation.embedded and draw.chance(0.08 * share):
        parts.append(_comment(draw))
    elif not situation.embedded and not short and draw.chance(0.06):
        draw.note("particle")
        parts.append(Part(link(draw.pick(_PARTICLES), ""), De.PARTICLE, En.AFTER))
    if not parts and not situation.negated and draw.chance(0.2 * share):
        parts += _frequency(draw, situation.when)
    asked = not (parts or short) and not (verb.aspect == "state" and situation.when == "habit")
    if situation.when in {"soon", "since"} or (asked and draw.chance(0.3 * share)):
        parts += time(draw, situation.when)
    if short:
        return parts
    if verb.manner and draw.chance(0.22 * share):
        parts += _manner(draw, verb, situation.plural)
    if verb.where and draw.chance(0.28 * share):
        parts.append(Part(_where(draw, verb), De.PLACE, En.PLACE))
    return parts


def _comment(draw: Draw) -> Part:
    adverb = draw.pick(adverbs("comment"))
    return Part(units(adverb.german, adverb.english), De.COMMENT, En.LEAD, leads=True)


def _frequency(draw: Draw, when: str) -> list[Part]:
    if when == "perfect":
        return [Part(units(*draw.pick(_FINISHED)), De.FREQUENCY, En.MIDDLE)]
    options = [adverb for adverb in adverbs("frequency") if when in adverb.when]
    if not options:
        return []
    adverb = draw.pick(options)
    return [Part(units(adverb.german, adverb.english), De.FREQUENCY, En.MIDDLE)]


def time(draw: Draw, when: str) -> list[Part]:
    """An adverb of time, or a span counted from now: vor zwei Jahren ↔ two years ago."""
    if when == "since":
        return [Part(_span(draw, "seit", "for", before=True), De.TIME, En.TIME)]
    span = {"past": ("vor", "ago"), "future": ("in", "in"), "soon": ("in", "in")}.get(when)
    if span and draw.chance(0.2):
        return [Part(_span(draw, *span, before=when != "past"), De.TIME, En.TIME, leads=True)]
    options = [adverb for adverb in adverbs("time") if _NAMES.get(when, when) in adverb.when]
    if not options:
        return []
    adverb = draw.pick(options)
    return [Part(units(adverb.german, adverb.english), De.TIME, En.TIME, leads=True)]


def _span(draw: Draw, source: str, target: str, *, before: bool) -> Phrase:
    draw.note("numeral")
    value, (unit, said) = draw.pick(range(2, 13)), draw.pick(_SPANS)
    count = link(german.number(value), english.number(value)) + link(unit, said)
    preposition = link(source, target)
    en = preposition.en + count.en if before else count.en + preposition.en
    return Phrase(preposition.de + count.de, en)


def _manner(draw: Draw, verb: Verb, plural: bool) -> list[Part]:
    options = [a for a in adverbs("manner") if a.german in verb.manner and (plural or a.german != "zusammen")]
    if not options:
        return []
    adverb = draw.pick(options)
    return [Part(units(adverb.german, adverb.english), De.MANNER, En.MANNER)]


def _where(draw: Draw, verb: Verb) -> Phrase:
    if draw.chance(0.2):
        adverb = draw.pick(adverbs("place"))
        return units(adverb.german, adverb.english)
    return place(draw, verb.where)


def negation(draw: Draw, when: str) -> list[Part]:
    """nicht, noch nicht, nicht mehr, gar nicht ↔ not, not ... yet, not ... any more, not ... at all."""
    draw.note("negation")
    kind = draw.weighted(_NEGATIONS) if when in {"habit", "perfect", "present"} else ""
    no = Part(link("nicht", "not"), De.NOT, En.NOT)
    if kind == "noch":
        return [Part(link("noch", "yet"), De.NOT, En.TIME), no]
    if kind == "mehr":
        return [no, Part(link("mehr", "any more"), De.NOT, En.TIME)]
    return [Part(link("gar", "at all"), De.NOT, En.TIME), no] if kind == "gar" else [no]
