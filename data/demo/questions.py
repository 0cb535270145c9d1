"""Questions and requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.demo import german
from data.demo.clauses import De, En, Part
from data.demo.lexicon import uses
from data.demo.nouns import Nominal, Referent, Request, nominal
from data.demo.phrases import Bond, Phrase, link, units, words
from data.demo.predicates import CLAUSAL, PERSON, Plan, any_use, can_be_passive, predicate, stranded

if TYPE_CHECKING:
    from data.demo.draw import Draw
    from data.demo.lexicon import Argument, Use

_ASKED = frozenset({"acc", "dat", "prep", "where", "to"})


def yes_or_no(draw: Draw) -> Phrase:
    """Schläft der Hund? English needs do or another operator."""
    draw.note("question")
    use = any_use(draw)
    passive = can_be_passive(use) and draw.chance(0.1)
    plan = Plan(use, question=True, negated=draw.chance(0.12), passive=passive)
    return predicate(draw, plan).verb_first() + link("?", "?")


def circumstance(draw: Draw) -> Phrase:
    """When, why, where, how often?"""
    draw.note("question", "wh-question")
    use = any_use(draw, simple=True)
    options = [("wann", "when"), ("warum", "why"), ("warum", "why"), *[("wo", "where")] * (3 * bool(use.verb.where))]
    if use.verb.aspect in {"act", "once"}:
        options.append(("wie oft", "how often"))
    source, target = draw.pick(options)
    forms = {"present": 1.0} if source == "wie oft" else None
    negated = source == "warum" and draw.chance(0.3)
    share = 0.3 if source == "warum" else 0.0
    plan = Plan(use, forms=forms, question=True, simple=True, adverbs=share, negated=negated)
    front = Part(units(source, target), De.FRONT, En.LEAD)
    return predicate(draw, plan).with_part(front).verb_first() + link("?", "?")


def argument(draw: Draw) -> Phrase:
    """What, whom, which book, where to? An English preposition stays behind."""
    draw.note("question", "wh-question")
    use, skip = draw.pick(
        [(use, k) for use in uses() for k, asked in enumerate(use.frame.arguments) if _askable(use, asked)]
    )
    asked = use.frame.arguments[skip]
    share = 0.0 if asked.role in {"where", "to"} else 0.3
    clause = predicate(draw, Plan(use, skip=skip, question=True, simple=True, adverbs=share))
    return clause.with_part(*_asked_for(draw, use, skip)).verb_first() + link("?", "?")


def _askable(use: Use, asked: Argument) -> bool:
    return asked.role in _ASKED and not any(other.role in CLAUSAL for other in use.frame.arguments)


def _asked_for(draw: Draw, use: Use, skip: int) -> list[Part]:
    """The question word in front, and the English preposition in its place."""
    asked = use.frame.arguments[skip]
    if asked.role in {"where", "to"}:
        return [Part(link("wo" if asked.role == "where" else "wohin", "where"), De.FRONT, En.LEAD)]
    person = "person" in asked.kinds
    if asked.german not in {"", "zu"} and not person and draw.chance(0.5):
        draw.note("pronominal adverb")
        what, about = Bond(), Bond()
        word = words(german.pronominal("wo", asked.german), what, about)
        front = Part(Phrase(word, words("what", what)), De.FRONT, En.LEAD)
        return [front, stranded(use, skip, words(asked.english, about))]
    if (asked.role == "prep" and not person) or draw.chance(0.3):
        word = nominal(draw, Request(asked.kinds, asked.case, determiner="which")).phrase
    elif person:
        word = link("wen" if asked.case == "acc" else "wem", "who")
    else:
        word = link("was", "what")
    preposition = link(asked.german, asked.english)
    if asked.english and not asked.german:
        preposition = Phrase((), words(asked.english, possible=word.de[0].sure))
    front = Part(Phrase(preposition.de) + word, De.FRONT, En.LEAD)
    return [front, stranded(use, skip, preposition.en)]


def subject(draw: Draw) -> Phrase:
    """Wer schläft? Here English does without do."""
    draw.note("question", "wh-question")
    who = Nominal(link("wer", "who"), Referent.of("er", "he"))
    use = draw.pick([use for use in uses() if PERSON & use.frame.subject and not _has_clause(use)])
    plan = Plan(use, who, simple=True, embedded=True, adverbs=0.7, negated=draw.chance(0.1))
    return predicate(draw, plan).main() + link("?", "?")


def _has_clause(use: Use) -> bool:
    return any(argument.role in CLAUSAL | {"experiencer"} for argument in use.frame.arguments)


def request(draw: Draw) -> Phrase:
    """Öffnen Sie das Fenster! German names the addressee, English does not."""
    draw.note("imperative")
    options = [use for use in uses() if PERSON & use.frame.subject and use.verb.aspect in {"act", "once"}]
    use = draw.pick([use for use in options if not _has_clause(use) and use.idiom is None])
    you = Nominal(Phrase(words("Sie")), Referent.of("Sie", "you"))
    plan = Plan(use, you, {"present": 1.0}, embedded=True, simple=True, adverbs=0.5, negated=draw.chance(0.2))
    clause = predicate(draw, plan)
    if draw.chance(0.5):
        clause = clause.with_part(Part(link("bitte", "please"), De.PARTICLE, En.LEAD))
    elif draw.chance(0.4):
        draw.note("particle")
        clause = clause.with_part(Part(link(draw.pick(["doch", "doch bitte", "mal"]), ""), De.PARTICLE, En.LEAD))
    mark = draw.weighted({"!": 3, ".": 2})
    return clause.verb_first() + link(mark, mark)
