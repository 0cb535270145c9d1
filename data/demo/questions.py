"""Questions and requests."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from data.demo import german
from data.demo.choices import DYNAMIC, PERSON, uses_with
from data.demo.clauses import COMMA, Clause, De, En, Part
from data.demo.nouns import Nominal, Referent, Request, nominal
from data.demo.phrases import Bond, Phrase, link, units, words
from data.demo.predicates import gap, predicate, subordinate
from data.demo.scenes import Plan

if TYPE_CHECKING:
    from data.demo.draw import Draw
    from data.demo.lexicon import Use

_ASKED = frozenset({"acc", "dat", "prep", "where", "to"})
MARK = link("?", "?")


def yes_or_no(draw: Draw) -> Phrase:
    """Schläft der Hund? English needs do or another operator."""
    draw.note("question")
    use = draw.pick(uses_with(clauses=True))
    passive = use.passive and draw.chance(0.12)
    plan = Plan(use, question=True, negated=draw.chance(0.12), passive=passive)
    return predicate(draw, plan).verb_first() + MARK


def circumstance(draw: Draw) -> Phrase:
    """When, why, where, how often?"""
    draw.note("question", "wh-question")
    use = draw.pick(uses_with())
    options = [("warum", "why"), *[("wo", "where")] * (2 * bool(use.verb.where))]
    if use.verb.aspect in DYNAMIC:
        options += [("wann", "when"), ("wie oft", "how often")]
    source, target = draw.pick(options)
    forms = {"present": 1.0} if source == "wie oft" else None
    why = source == "warum"
    denied = why and draw.chance(0.3)
    plan = Plan(use, forms=forms, question=True, simple=True, adverbs=0.3 * why, negated=denied)
    front = Part(units(source, target), De.FRONT, En.LEAD)
    return predicate(draw, plan).with_part(front).verb_first() + MARK


def argument(draw: Draw) -> Phrase:
    """What, whom, which book, where to? An English preposition stays behind."""
    draw.note("question", "wh-question")
    use, skip = draw.pick(_askable())
    share = 0.0 if use.frame.arguments[skip].role in {"where", "to"} else 0.3
    clause = predicate(draw, Plan(use, skip=skip, question=True, simple=True, adverbs=share))
    return _asking(draw, clause, use, skip).verb_first() + MARK


@cache
def _askable() -> tuple[tuple[Use, int], ...]:
    return tuple((use, k) for use in uses_with() for k, asked in enumerate(use.frame.arguments) if asked.role in _ASKED)


def _asking(draw: Draw, clause: Clause, use: Use, skip: int) -> Clause:
    """`clause` with the question word in front."""
    asked = use.frame.arguments[skip]
    person = "person" in asked.kinds
    if asked.role in {"where", "to"}:
        return gap(clause, use, skip, link("wo" if asked.role == "where" else "wohin", "where"))
    if asked.english and asked.german not in {"", "zu"} and not person and draw.chance(0.5):
        draw.note("pronominal adverb")
        what, about = Bond(), Bond()
        front = Phrase(words(german.pronominal("wo", asked.german), what, about), words("what", what))
        left = Phrase((), words(asked.english, about))
        return clause.with_part(Part(front, De.FRONT, En.LEAD), Part(left, De.COMPLEMENT, En.COMPLEMENT))
    if (asked.role == "prep" and not person) or draw.chance(0.3):
        word = nominal(draw, Request(asked.kinds, asked.case, determiner="which")).phrase
    elif person:
        word = link("wen" if asked.case == "acc" else "wem", "who")
    else:
        word = link("was", "what")
    return gap(clause, use, skip, word)


def subject(draw: Draw) -> Phrase:
    """Wer schläft? Here English does without do."""
    draw.note("question", "wh-question")
    who = Nominal(link("wer", "who"), Referent.of("er", "he"))
    use = draw.pick(uses_with(subject=PERSON, personal=True))
    plan = Plan(use, who, simple=True, embedded=True, adverbs=0.7, negated=draw.chance(0.1))
    return predicate(draw, plan).main() + MARK


def request(draw: Draw) -> Phrase:
    """Öffnen Sie das Fenster! German names the addressee, English does not."""
    draw.note("imperative")
    use = draw.pick(uses_with(subject=PERSON, aspects=DYNAMIC, idioms=False))
    you = Nominal(Phrase(words("Sie")), Referent.of("Sie", "you"))
    plan = Plan(use, you, {"present": 1.0}, embedded=True, simple=True, adverbs=0.5, negated=draw.chance(0.2))
    clause = predicate(draw, plan)
    if draw.chance(0.5):
        clause = clause.with_part(Part(link("bitte", "please"), De.PARTICLE, En.LEAD))
    elif draw.chance(0.4):
        draw.note("particle")
        clause = clause.with_part(Part(link(draw.pick(["doch", "doch bitte", "mal"]), ""), De.PARTICLE, En.LEAD))
    said = clause.verb_first()
    if draw.chance(0.15):
        said += COMMA + link("wenn", "when") + subordinate(draw, frozenset({"present"}), you, 0)
    mark = draw.weighted({"!": 3, ".": 2})
    return said + link(mark, mark)
