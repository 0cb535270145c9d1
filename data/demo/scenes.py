"""A clause in the making: what is asked of it, and those of its parts that hold no other clause."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from data.demo.adverbials import negation
from data.demo.choices import PERSON
from data.demo.clauses import De, En, Part
from data.demo.lexicon import nouns_of
from data.demo.nouns import DUMMY, Nominal, Referent, Request, nominal, noun_phrase
from data.demo.phrases import Bond, Phrase, Word, Words, link, words
from data.demo.prepositions import place

if TYPE_CHECKING:
    from collections.abc import Mapping

    from data.demo.draw import Draw
    from data.demo.lexicon import Idiom, Use
    from data.demo.verbs import MainVerb


@dataclass(frozen=True)
class Plan:
    """What a clause shall be; what is None is drawn.

    `skip` leaves out the argument of that number, for words that the caller puts in. `simple` keeps clauses out of the
    clause, `embedded` comments and modal particles; `adverbs` multiplies how often adverbs come.
    """

    use: Use
    subject: Nominal | None = None
    forms: Mapping[str, float] | None = None
    skip: int | None = None
    question: bool = False
    negated: bool = False
    embedded: bool = False
    simple: bool = False
    passive: bool = False
    adverbs: float = 1.0


@dataclass(frozen=True)
class Scene:
    """What the parts of one clause need to know of each other."""

    plan: Plan
    main: MainVerb
    subject: Nominal
    when: str
    determiner: str | None = None  # of the object: no, where kein denies the clause
    negation: Bond | None = None  # shared by that kein and an English not


def denied(draw: Draw, scene: Scene) -> tuple[Scene, list[Part]]:
    """How the clause is denied: by nicht, or by kein at its object, which English says as no or as not any."""
    plan = scene.plan
    if not plan.negated:
        return scene, []
    exists = any(argument.role == "exists" for argument in plan.use.frame.arguments)
    object_at = plan.use.object_at
    if not exists and (object_at in {None, plan.skip} or plan.passive or draw.chance(0.5)):
        return scene, negation(draw, scene.when)
    draw.note("kein")
    if draw.chance(0.4):
        return replace(scene, determiner="no"), []
    bond = Bond()
    return replace(scene, determiner="no", negation=bond), [Part(Phrase((), words("not", bond)), De.NOT, En.NOT)]


def doer(draw: Draw, scene: Scene) -> tuple[Referent, list[Part]]:
    """Whom the verbs agree with, and the parts that name him: commonly the subject."""
    subject = scene.subject
    if not scene.plan.use.impersonal:
        return subject.referent, [Part(subject.phrase, De.SUBJECT, En.SUBJECT, subject.tail)]
    if scene.plan.use.frame.arguments[0].role == "experiencer":
        return _experience(draw, subject)
    return _existence(draw, scene)


def _experience(draw: Draw, subject: Nominal) -> tuple[Referent, list[Part]]:
    """mir gefällt das Buch ↔ I like the book: the German dative is the English subject."""
    draw.note("experiencer")
    person = nominal(draw, Request(PERSON, "dat", pronouns=0.6))
    phrase, rank = person.phrase, De.DAT
    if person.is_pronoun:
        phrase = link(person.referent.german.dat, person.referent.english.subject)
        rank = De.DAT_PRONOUN
    thing = Part(subject.phrase, De.SUBJECT, En.OBJECT, subject.tail)
    return Referent(subject.referent.german, person.referent.english), [thing, Part(phrase, rank, En.SUBJECT)]


def _existence(draw: Draw, scene: Scene) -> tuple[Referent, list[Part]]:
    """es gibt zwei Hunde ↔ there are two dogs."""
    draw.note("existential")
    kinds = scene.plan.use.frame.arguments[0].kinds
    weights = {"a": 6, "number": 2, "many": 1, "some": 1, "no": 1}
    determiner = scene.determiner or draw.weighted(weights)
    noun = draw.pick([noun for noun in nouns_of(kinds) if not noun.proper])
    found = noun_phrase(draw, noun, Request(kinds, "acc", determiner=determiner, negation=scene.negation))
    parts = [Part(link("es", "there"), De.SUBJECT, En.SUBJECT), Part(found.phrase, De.INDEFINITE, En.OBJECT)]
    if draw.chance(0.4):
        parts.append(Part(place(draw, scene.main.verb.where), De.PLACE, En.PLACE))
    return Referent(DUMMY.german, found.referent.english if found.plural else DUMMY.english), parts


def reflexive(scene: Scene) -> list[Part]:
    """sich ↔ himself, or sich alone, which may be linked to the verb."""
    main, referent, bond = scene.main, scene.subject.referent, Bond()
    case = main.verb.reflexive
    if case is None:
        return []
    himself = words(referent.english.reflexive, bond) if main.verb.oneself else ()
    sure = [bond] if main.certain else [main.core]
    sich = words(referent.german.reflexive(case), *sure, possible=[main.core] * (not himself))
    return [Part(Phrase(sich, himself), De.REFLEXIVE, En.PRONOUN)]


def fixed(draw: Draw, idiom: Idiom, scene: Scene) -> Part:
    """The words of an idiom beside its verb.

    Words that translate one another are linked for sure and take the words before them along as possible; what is left
    is linked to the whole as possible.
    """
    draw.note("idiom")
    bonds = {source: Bond() for source in idiom.sure}
    partners = {idiom.sure[source]: bond for source, bond in bonds.items()}
    english = idiom.english.replace("one 's", scene.subject.referent.english.possessive)
    source = _bonded(idiom.german.split(), bonds, scene.main.extra)
    target = _bonded(english.split(), partners, scene.main.extra)
    source = tuple(Word(word.text, word.sure or word.possible) for word in source)  # a link needs one sure end
    return Part(Phrase(source, target), De.COMPLEMENT, En.COMPLEMENT)


def _bonded(text: list[str], bonds: Mapping[str, Bond], whole: Bond) -> Words:
    found: Words = ()
    following = whole
    for word in reversed(text):
        if bond := bonds.get(word):
            found = words(word, bond) + found
            following = bond
        else:
            found = words(word, possible=[following]) + found
    return found
