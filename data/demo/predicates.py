"""What is said: a verb in a tense with its arguments, for a subject; and the clauses that may stand within it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from data.demo import german
from data.demo.adverbials import Situation, adverbials, negation
from data.demo.clauses import Clause, De, En, Part
from data.demo.complements import complement
from data.demo.lexicon import uses
from data.demo.nouns import Nominal, Referent, Request, gender_of, nominal, referent_of
from data.demo.phrases import Bond, Phrase, Words, link, words
from data.demo.prepositions import with_attribute
from data.demo.verbs import FORMS, MODAL, main_verb, verb_group, zu_infinitive

if TYPE_CHECKING:
    from collections.abc import Mapping

    from data.demo.draw import Draw
    from data.demo.lexicon import Argument, Case, Kinds, Use, Verb
    from data.demo.verbs import MainVerb

PERSON = frozenset({"person"})
CLAUSAL = frozenset({"dass", "ob", "zu"})
_WEIGHTS: dict[str, dict[str, float]] = {
    "act": {
        "present": 9,
        "progressive": 11,
        "past": 11,
        "preterite": 6,
        "past progressive": 3,
        "perfect": 4,
        "future": 5,
        "soon": 2,
    },
    "once": {"present": 8, "past": 15, "preterite": 7, "perfect": 6, "future": 6, "soon": 3},
    "state": {"present": 18, "preterite": 9, "future": 1.5},
    "weather": {"progressive": 8, "past": 3, "preterite": 3, "future": 3, "soon": 2},
}
_MOODS = {
    "can": 1.5,
    "could": 1,
    "must": 1,
    "have to": 1,
    "had to": 1,
    "want": 1.5,
    "wanted": 1,
    "should": 1,
    "may": 0.7,
    "might": 0.5,
    "would like": 1.2,
    "would": 0.8,
}


@dataclass(frozen=True)
class Plan:
    """What a clause shall be; what is None is drawn.

    `skip` leaves out the argument of that number, for a pronoun that the caller puts in front. `simple` keeps clauses
    out of the clause.
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


def any_use(draw: Draw, *, simple: bool = False, subject: Kinds | None = None) -> Use:
    """A verb in one of its frames, for a subject of these kinds."""
    return draw.pick([use for use in uses() if _fits(use, simple, subject)])


def _fits(use: Use, simple: bool, subject: Kinds | None) -> bool:
    clausal = any(argument.role in CLAUSAL for argument in use.frame.arguments)
    return not (simple and clausal) and (subject is None or bool(subject & use.frame.subject))


def forms_for(verb: Verb, subject: Kinds, *times: str) -> dict[str, float]:
    """Tenses and moods that suit the verb, of these `times` if any are given; only persons want, may and should."""
    weights = dict(_WEIGHTS[verb.aspect])
    if "person" in subject and verb.aspect in {"act", "once"}:
        weights |= _MOODS
    return {name: weight for name, weight in weights.items() if not times or FORMS[name].when in times}


def subject_for(draw: Draw, kinds: Kinds, pronouns: float = 0.4) -> Nominal:
    return with_attribute(draw, nominal(draw, Request(kinds, "nom", pronouns=pronouns)), "nom", 0.08)
