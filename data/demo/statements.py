"""Statements: simple, compound and complex sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from data.demo import english, german
from data.demo.choices import DYNAMIC, PAST, PERSON, forms_of, uses_of_objects, uses_with
from data.demo.clauses import COMMA, Clause, De, En, Part
from data.demo.lexicon import nouns_of
from data.demo.nouns import DUMMY, Nominal, Request, another, any_speaker, nominal, noun_phrase, pronoun
from data.demo.phrases import Phrase, link
from data.demo.predicates import infinitive, predicate, subject_for, subordinate, with_relative
from data.demo.scenes import Plan

if TYPE_CHECKING:
    from data.demo.draw import Draw
    from data.demo.lexicon import Kinds


class Conjunction(NamedTuple):
    """A conjunction and the tenses that it allows in the main and in the subordinate clause."""

    german: str
    english: str
    main: Kinds
    inner: Kinds
    weight: float = 1


_PRESENT = frozenset({"present"})
_AHEAD = frozenset({"future", "must", "can", "should", "want", "would like", "have to", "present"})
_NOW = frozenset({"present", "progressive", "perfect", "can", "have to", "want", "since", "may"})
_TOLD = frozenset({"past", "preterite"})
_CONJUNCTIONS = (
    Conjunction("weil", "because", PAST, PAST, 3),
    Conjunction("weil", "because", _NOW, _NOW, 3),
    Conjunction("weil", "because", _AHEAD, _NOW, 2),
    Conjunction("obwohl", "although", PAST, PAST, 2),
    Conjunction("obwohl", "although", _NOW, _NOW, 2),
    Conjunction("wenn", "if", _AHEAD, _PRESENT, 2),
    Conjunction("wenn", "when", _AHEAD, _PRESENT, 2),
    Conjunction("als", "when", PAST, PAST, 3),
    Conjunction("bevor", "before", PAST, _TOLD, 1),
    Conjunction("bevor", "before", _AHEAD, _PRESENT, 1),
    Conjunction("während", "while", _TOLD, frozenset({"preterite", "past progressive"}), 1.5),
    Conjunction("während", "while", frozenset({"progressive", "present"}), frozenset({"progressive"}), 1.5),
    Conjunction("nachdem", "after", PAST, frozenset({"pluperfect"}), 2),
    Conjunction("sobald", "as soon as", _AHEAD, _PRESENT, 1.5),
    Conjunction("bis", "until", frozenset({"future", "must", "have to"}), _PRESENT, 0.7),
    Conjunction("damit", "so that", _TOLD, frozenset({"could"}), 0.7),
    Conjunction("damit", "so that", frozenset({"present", "progressive", "future"}), frozenset({"can"}), 0.7),
)
_PURPOSEFUL = frozenset(
    "gehen fahren kommen laufen warten bleiben fliegen anrufen schreiben arbeiten lernen aufstehen besuchen".split()
)
STOP = link(".", ".")


def simple(draw: Draw) -> Phrase:
    """A main clause with something before its verb."""
    use, subject = draw.pick(uses_with(clauses=True)), None
    if not use.impersonal and draw.chance(0.15):
        subject = with_relative(draw, nominal(draw, Request(use.frame.subject, "nom", pronouns=0.1)))
    passive = subject is None and use.passive and draw.chance(0.15)
    clause = predicate(draw, Plan(use, subject, negated=draw.chance(0.14), passive=passive))
    return _reply(draw) + fronted(draw, clause) + STOP


def _reply(draw: Draw) -> Phrase:
    if not draw.chance(0.03):
        return Phrase()
    return link(*draw.pick([("ja", "yes"), ("nein", "no")])) + link(",", ",")


def fronted(draw: Draw, clause: Clause) -> Phrase:
    """The clause with its subject first or, for once, something else, which need not be first in English."""
    if clause.subject.tail:
        return clause.main()
    leading = [part for part in clause.parts if part.leads or part.de is De.PLACE]
    if leading and draw.chance(0.5):
        draw.note("inversion")
        front = draw.pick(leading)
        return clause.main(front, lead=front.leads and draw.chance(0.6))
    objects = [part for part in clause.parts if part.de in {De.ACC, De.DAT} and not part.tail]
    if objects and _unmistakable(clause.subject) and draw.chance(0.15):
        draw.note("inversion", "object first")
        return clause.main(draw.pick(objects))
    return clause.main()


def _unmistakable(subject: Nominal) -> bool:
    """Whether nobody can take the subject for an object: ich, du, er, wir."""
    return subject.noun is None and subject.referent.german.nom in {"ich", "du", "er", "wir"}


def complex_sentence(draw: Draw) -> Phrase:
    """A main clause and a subordinate clause, in either order."""
    kind = draw.weighted({entry: entry.weight for entry in _CONJUNCTIONS})
    leads = draw.chance(0.35)
    use = draw.pick(uses_with(forms=kind.main))
    forms = forms_of(use, kind.main)
    plan = Plan(use, forms=forms, negated=draw.chance(0.1), embedded=leads, simple=True, adverbs=0.6)
    clause = predicate(draw, plan)
    inner = link(kind.german, kind.english) + subordinate(
        draw, kind.inner, clause.subject, 0.1 if kind.german in {"weil", "obwohl", "wenn"} else 0
    )
    if leads:
        draw.note("inversion")
        return inner + link(",", ",") + clause.verb_first() + STOP
    return clause.main() + COMMA + inner + STOP


def compound(draw: Draw) -> Phrase:
    """Two main clauses; the second may go without its subject, or name it by a pronoun."""
    draw.note("coordination")
    source, target = draw.weighted({("und", "and"): 6, ("aber", "but"): 3, ("denn", "because"): 2})
    first = predicate(draw, Plan(draw.pick(uses_with()), simple=True, embedded=True, adverbs=0.4))
    known, forms = first.subject, _same_time(first)
    again = None
    if known.referent != DUMMY and not _has_other_subject(first) and draw.chance(0.6):
        again = pronoun(known.referent, "nom")
        if source == "und":
            again = Nominal(Phrase(), known.referent, known.noun, known.plural)
    kinds = (known.noun.kinds if known.noun else PERSON) if again else None
    options = uses_with(subject=kinds, forms=forms, personal=again is not None)
    use = draw.pick([use for use in options if use.verb is not first.verb.verb] or options)
    second = predicate(draw, Plan(use, again, forms_of(use, forms), embedded=True, simple=True, adverbs=0.4))
    comma = COMMA if source in {"aber", "denn"} else Phrase()
    if source == "aber" and draw.chance(0.5):
        comma = link(",", ",")
    return first.main() + comma + link(source, target) + second.main() + STOP


def _same_time(clause: Clause) -> Kinds:
    """The tenses that go on with the story of `clause`."""
    return PAST if clause.when == "past" else frozenset({"future", "should"}) if clause.when == "future" else _NOW


def _has_other_subject(clause: Clause) -> bool:
    """Whether the English subject is not the German one, so that they cannot be left out together."""
    return any(part.de is De.SUBJECT and part.en is not En.SUBJECT for part in clause.parts)


def taken_up(draw: Draw) -> Phrase:
    """A thing and then its pronoun, which has a gender in German: einen Tisch ... ihn ↔ a table ... it."""
    draw.note("coordination", "anaphor")
    forms = draw.pick([PAST, _TOLD, _NOW, _AHEAD])
    use, skip = draw.pick(uses_of_objects(forms))
    subject = subject_for(draw, PERSON, 0.3)
    determiner = draw.weighted({"a": 3, "the": 2, "my": 1, "this": 1})
    kinds = use.frame.arguments[skip].kinds
    noun = draw.pick([noun for noun in nouns_of(kinds) if not noun.proper])
    thing = noun_phrase(draw, noun, Request(kinds, "acc", subject.referent, determiner))
    rank = De.ACC if thing.definite else De.INDEFINITE
    plan = Plan(use, subject, forms_of(use, forms), skip=skip, embedded=True, simple=True, adverbs=0.3)
    first = predicate(draw, plan).with_part(Part(thing.phrase, rank, En.OBJECT))
    fitting = [uses_of_objects(when, noun.kinds, only=True) for when in (forms, PAST)]
    other, place = draw.pick(fitting[0] + fitting[1])
    denied = draw.chance(0.2)
    again = pronoun(subject.referent, "nom")
    if not denied:
        again = Nominal(Phrase(), subject.referent, subject.noun, subject.plural)
    plan = Plan(
        other, again, forms_of(other, forms), skip=place, embedded=True, simple=True, adverbs=0.4, negated=denied
    )
    it = Part(pronoun(thing.referent, "acc").phrase, De.ACC_PRONOUN, En.PRONOUN)
    joint = COMMA + link("aber", "but") if denied else link("und", "and")
    return first.main() + joint + predicate(draw, plan).with_part(it).main() + STOP


def contrast(draw: Draw) -> Phrase:
    """nicht den Hund , sondern die Katze ↔ not the dog but the cat."""
    draw.note("coordination", "contrast")
    forms = PAST | {"future"}
    use, skip = draw.pick(uses_of_objects(forms, only=True))
    plan = Plan(use, forms=forms_of(use, forms), skip=skip, simple=True, adverbs=0, negated=True)
    clause = predicate(draw, plan)
    request = Request(use.frame.arguments[skip].kinds, "acc", determiner=draw.pick(["the", "this"]))
    first = nominal(draw, request)
    second = another(draw, request, first)
    both = first.phrase + COMMA + link("sondern", "but") + second.phrase
    return clause.with_part(Part(both, De.INDEFINITE, En.OBJECT)).main() + STOP


def purpose(draw: Draw) -> Phrase:
    """um ... zu, ohne ... zu ↔ in order to, without ...ing."""
    without = draw.chance(0.3)
    options = uses_with(subject=PERSON, aspects=DYNAMIC, idioms=False)
    use = draw.pick([use for use in options if without or use.name in _PURPOSEFUL])
    clause = predicate(draw, Plan(use, simple=True, adverbs=0.5))
    who = clause.subject.referent
    if without:
        inner = link("ohne", "without") + infinitive(draw, who, gerund=True)
    else:
        inner = infinitive(draw, who, purpose=True)
    return clause.main() + COMMA + inner + STOP


def judgement(draw: Draw) -> Phrase:
    """es ist schwierig für mich , das Buch zu lesen ↔ it is difficult for me to read the book."""
    draw.note("impersonal")
    copula = next(use for use in uses_with() if use.name == "sein" and use.frame.arguments[0].role == "adj")
    plan = Plan(
        copula, pronoun(DUMMY, "nom"), skip=0, embedded=True, simple=True, negated=draw.chance(0.2), adverbs=0.2
    )
    words_ = ("wichtig", "important"), ("schwierig", "difficult"), ("gefährlich", "dangerous"), ("leicht", "easy")
    who = any_speaker(draw)
    degree = link("sehr", "very") if draw.chance(0.2) else Phrase()
    how = degree + link(*draw.pick(words_)) + link("für", "for") + pronoun(who, "acc").phrase
    clause = predicate(draw, plan).with_part(Part(how, De.COMPLEMENT, En.COMPLEMENT))
    return clause.main() + COMMA + infinitive(draw, who) + STOP


def correlation(draw: Draw) -> Phrase:
    """je länger er wartet , desto müder wird er ↔ the longer he waits , the more tired he becomes."""
    draw.note("comparison", "correlative", "verb-final")
    more = ("länger", "longer"), ("mehr", "more"), ("öfter", "more often")
    verbs = "arbeiten schlafen lernen warten tanzen lesen singen spielen fernsehen".split()
    use = draw.pick([use for use in uses_with(subject=PERSON) if use.name in verbs])
    subject = subject_for(draw, PERSON, 0.5)
    plan = Plan(use, subject, {"present": 1.0}, embedded=True, simple=True, adverbs=0)
    how = link("je", "the") + link(*draw.pick(more))
    first = predicate(draw, plan).with_part(Part(how, De.FRONT, En.LEAD)).verb_last()
    become = next(use for use in uses_with() if use.name == "werden")
    moods = ("müde", "tired"), ("glücklich", "happy"), ("nervös", "nervous"), ("traurig", "sad")
    source, target = draw.pick(moods)
    then = link("desto", "the") + link(german.comparative(source, ""), english.degrees(target)[0])
    again = pronoun(subject.referent, "nom")
    plan = Plan(become, again, {"present": 1.0}, skip=0, embedded=True, simple=True, adverbs=0)
    second = predicate(draw, plan).with_part(Part(then, De.FRONT, En.LEAD)).verb_first()
    return first + link(",", ",") + second + STOP
