"""What is said: a verb in a tense with its arguments, for a subject; and the clauses that may stand within it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from data.demo import german
from data.demo.adverbials import Situation, adverbials
from data.demo.choices import DYNAMIC, OPEN, PAST, PERSON, forms_for, forms_of, uses_with
from data.demo.clauses import COMMA, Clause, De, En, Part
from data.demo.complements import complement
from data.demo.nouns import DUMMY, Nominal, Request, coordinated, gender_of, nominal, pronoun
from data.demo.phrases import Bond, Phrase, link, words
from data.demo.prepositions import prepositional, with_attribute
from data.demo.scenes import Plan, Scene, denied, doer, fixed, reflexive
from data.demo.verbs import FORMS, MODAL, main_verb, verb_group, zu_infinitive

if TYPE_CHECKING:
    from data.demo.draw import Draw
    from data.demo.lexicon import Argument, Case, Kinds, Noun, Use
    from data.demo.nouns import Referent

_TIMELESS = frozenset({"age", "price", "span", "called"})  # arguments beside which adverbs make no sense


def predicate(draw: Draw, plan: Plan) -> Clause:
    """The clause of `plan`, its words not yet in order."""
    use, kinds = plan.use, plan.use.frame.subject
    if use.idiom:
        plan = replace(plan, negated=False)  # kein would break into it
    if plan.passive and use.object_at is not None:
        draw.note("passive")
        plan = replace(plan, skip=use.object_at)
        kinds = use.frame.arguments[use.object_at].kinds
    subject = plan.subject or subject_for(draw, kinds, 0 if plan.passive or use.impersonal else 0.4)
    name = _form(draw, plan)
    scene, parts = denied(draw, Scene(plan, main_verb(use), subject, FORMS[name].when))
    operator = plan.question or any(part.en is En.NOT for part in parts)
    gern = Bond() if _likes(draw, plan, name) else None
    if gern:
        parts.append(Part(Phrase(words("gern", gern)), De.FREQUENCY, En.AFTER))
    person, named = doer(draw, scene)
    parts += named + reflexive(scene) + _arguments(draw, scene)
    if plan.passive and PERSON & use.frame.subject and draw.chance(0.3):
        agent = nominal(draw, Request(use.frame.subject, "dat", subject.referent, pronouns=0.1))
        parts.append(Part(prepositional(draw, link("von", "by"), agent), De.COMPLEMENT, En.COMPLEMENT))
    parts += _adverbials(draw, scene, name, parts)
    group = verb_group(scene.main, person, FORMS[name], operator=operator, passive=plan.passive, gern=gern)
    return Clause(tuple(parts), group, subject, scene.main, scene.when, plan.question)


def subject_for(draw: Draw, kinds: Kinds, pronouns: float = 0.4) -> Nominal:
    """A subject, which may be two."""
    request = Request(kinds, "nom", pronouns=pronouns)
    if draw.chance(0.05) and "es" not in kinds:
        return coordinated(draw, request)
    return with_attribute(draw, nominal(draw, request))


def _form(draw: Draw, plan: Plan) -> str:
    """The name of a tense or mood; muss nicht does not mean must not."""
    weights = dict(plan.forms or forms_for(plan.use))
    if plan.negated and len(weights) > 1:
        weights.pop("must", None)
    name = draw.weighted(weights)
    draw.note("modal" if name in MODAL else name, *["separable verb"] * bool(plan.use.verb.particle))
    return name


def _likes(draw: Draw, plan: Plan, form: str) -> bool:
    """gern ↔ to like to: an adverb against a verb."""
    addressed = plan.subject is not None and plan.subject.phrase.de and not plan.subject.phrase.en
    active = plan.use.verb.aspect == "act" and PERSON & plan.use.frame.subject and not plan.passive
    fits = form in {"present", "preterite"} and active and not (plan.negated or addressed)
    chosen = fits and draw.chance(0.25 * plan.adverbs)
    if chosen:
        draw.note("gern")
    return bool(chosen)


def _adverbials(draw: Draw, scene: Scene, form: str, parts: list[Part]) -> list[Part]:
    """Adverbs that go with what is there already; none at the end where a clause stands there."""
    plan = scene.plan
    timeless = any(argument.role in _TIMELESS for argument in plan.use.frame.arguments)
    situation = Situation(
        form if form in {"soon", "since"} else scene.when,
        scene.subject.referent.german.verb == "wir",
        plan.negated,
        plan.embedded or plan.question,
        0 if timeless else plan.adverbs * (0.5 if plan.use.name in {"sein", "werden", "aussehen"} else 1),
    )
    full = any(part.de is De.AFTER or (part.tail and part.en is not En.SUBJECT) for part in parts)
    return adverbials(draw, plan.use.verb, situation, short=full)


def _arguments(draw: Draw, scene: Scene) -> list[Part]:
    use = scene.plan.use
    parts = [fixed(draw, use.idiom, scene)] if use.idiom else []
    for k, argument in enumerate(use.frame.arguments):
        role = argument.role
        if k == scene.plan.skip or role in {"experiencer", "exists"}:
            continue
        if role in {"acc", "dat", "prep"}:
            parts.append(_object(draw, argument, scene))
        elif role in {"dass", "ob", "zu"}:
            parts.append(Part(_content(draw, role, scene), De.AFTER, En.AFTER))
        else:
            parts.append(complement(draw, argument, scene.subject))
    return parts


def _object(draw: Draw, argument: Argument, scene: Scene) -> Part:
    """A noun phrase in the case, and with the prepositions, that the verb asks for."""
    request = Request(argument.kinds, argument.case, scene.subject.referent, definite=scene.plan.negated)
    if argument.role == "acc" and scene.determiner:
        request = replace(request, determiner=scene.determiner, negation=scene.negation)
    if argument.role == "prep" and "person" not in argument.kinds and draw.chance(0.12):
        draw.note("pronominal adverb")
        there = link(german.pronominal("da", argument.german), f"{argument.english} it")
        return Part(there, De.COMPLEMENT, En.COMPLEMENT)
    found = with_attribute(draw, nominal(draw, request))
    last = argument.role == "prep" or len(scene.plan.use.frame.arguments) == 1
    if last and not scene.plan.simple and draw.chance(0.2):
        found = with_relative(draw, found)
    core = scene.main.core
    if argument.role == "prep":
        joined = _joined_by(argument, core)
        return Part(prepositional(draw, joined, found), De.COMPLEMENT, En.COMPLEMENT, found.tail)
    if argument.role == "dat":
        return _dative(draw, argument, scene, found)
    rank = De.ACC if found.definite else De.INDEFINITE
    if argument.english:
        phrase = Phrase(found.phrase.de, words(argument.english, core) + found.phrase.en)
        return Part(phrase, De.ACC_PRONOUN if found.is_pronoun else rank, En.OBJECT, found.tail)
    if found.is_pronoun:
        return Part(found.phrase, De.ACC_PRONOUN, En.PRONOUN)
    return Part(found.phrase, rank, En.OBJECT, found.tail)


def _joined_by(argument: Argument, core: Bond) -> Phrase:
    """The prepositions of an argument; a German one without partner may be linked to the English verb."""
    if not argument.english:
        return Phrase(words(argument.german, possible=[core]))
    return link(argument.german, argument.english)


def _dative(draw: Draw, argument: Argument, scene: Scene, found: Nominal) -> Part:
    """The receiver: English puts it first, or behind to, which the German case may stand for."""
    phrase, rank = found.phrase, De.DAT_PRONOUN if found.is_pronoun else De.DAT
    free = not argument.english or (argument.optional and not scene.plan.passive)
    if free and (not argument.english or draw.chance(0.6)):
        return Part(phrase, rank, En.INDIRECT, found.tail)
    to = words(argument.english, possible=phrase.de[0].sure)
    return Part(Phrase(phrase.de, to + phrase.en), rank, En.COMPLEMENT, found.tail)


def gap(clause: Clause, use: Use, skip: int, word: Phrase) -> Clause:
    """`clause` with `word` in front for the argument that it lacks; an English preposition stays behind."""
    argument = use.frame.arguments[skip]
    joined = Phrase()
    if argument.role == "prep":
        joined = _joined_by(argument, clause.verb.core)
    elif argument.role == "acc":
        joined = Phrase((), words(argument.english, clause.verb.core))
    elif argument.role == "dat":
        joined = Phrase((), words(argument.english, possible=word.de[0].sure))
    rank = En.COMPLEMENT if skip == len(use.frame.arguments) - 1 else En.OBJECT
    front = Part(Phrase(joined.de) + word, De.FRONT, En.LEAD)
    return clause.with_part(front, Part(Phrase((), joined.en), De.COMPLEMENT, rank))


def _content(draw: Draw, role: str, scene: Scene) -> Phrase:
    """A clause as object: dass, ob, or an infinitive with zu."""
    if role == "zu":
        return COMMA + infinitive(draw, scene.subject.referent)
    draw.note("content clause")
    conjunction = link("ob", "whether")
    if role == "dass":
        conjunction = link("dass", "that" if draw.chance(0.7) else "")
    forms = PAST if scene.when == "past" else OPEN
    return COMMA + conjunction + subordinate(draw, forms, scene.subject)


def subordinate(draw: Draw, forms: Kinds, known: Nominal, negation: float = 0.1) -> Phrase:
    """A verb-final clause in one of `forms`; its subject may be that of the main clause, `known`, again."""
    draw.note("verb-final")
    again = None
    known_person = not known.noun or ("person" in known.noun.kinds and known.noun.german != "Kind")
    if known_person and known.referent != DUMMY and draw.chance(0.4):
        again = pronoun(known.referent, "nom")
    use = draw.pick(uses_with(subject=PERSON if again else None, forms=forms, personal=again is not None))
    denial = draw.chance(negation)
    plan = Plan(use, again, forms_of(use, forms), negated=denial, embedded=True, simple=True, adverbs=0.6)
    return predicate(draw, plan).verb_last()


def infinitive(draw: Draw, subject: Referent, *, purpose: bool = False, gerund: bool = False) -> Phrase:
    """An infinitive with zu and what belongs to it; `subject` is who would be its subject."""
    draw.note("infinitive")
    use = draw.pick(uses_with(subject=PERSON, aspects=DYNAMIC, idioms=False))
    draw.note(*["separable verb"] * bool(use.verb.particle))
    nobody, main = Nominal(Phrase(), subject), main_verb(use)
    group = zu_infinitive(main, gerund=gerund)
    scene = Scene(Plan(use, nobody, simple=True), main, nobody, "none")
    parts = reflexive(scene) + _arguments(draw, scene)
    parts += adverbials(draw, use.verb, Situation("none", False, embedded=True, share=0.6))
    if purpose:
        um = link("um", "in order") if draw.chance(0.3) else Phrase(words("um", possible=group.english[0].sure))
        parts.append(Part(um, De.FRONT, En.LEAD))
    return Clause(tuple(parts), group, nobody, main).verb_last()


def with_relative(draw: Draw, head: Nominal) -> Nominal:
    """`head` with a relative clause, if it has a common noun."""
    noun = head.noun
    if noun is None or noun.proper or noun.kinds & {"kin", "weather", "sky"}:
        return head
    subjects = [use for use in uses_with(subject=noun.kinds, personal=True) if use.verb.aspect != "weather"]
    objects = _relative_roles(noun.kinds)
    if not subjects and not objects:
        return head
    draw.note("relative clause", "verb-final")
    if subjects and (not objects or draw.chance(0.45)):
        relative = _relative_subject(draw, draw.pick(subjects), head, noun)
    else:
        relative = _relative_object(draw, *draw.pick(objects), head, noun)
    tail = COMMA + relative + COMMA
    return replace(head, phrase=Phrase(head.phrase.de, head.phrase.en + tail.en), tail=tail.de)


@cache
def _relative_roles(kinds: Kinds) -> tuple[tuple[Use, int], ...]:
    """Verbs and the number of the argument that a noun of these kinds could be, in a relative clause."""
    roles = {"acc", "dat", "prep", "where"}
    return tuple(
        (use, k)
        for use in uses_with(personal=True)
        for k, asked in enumerate(use.frame.arguments)
        if asked.role in roles and asked.kinds & kinds
    )


def relative_pronoun(noun: Noun, plural: bool, case: Case) -> str:
    return "denen" if plural and case == "dat" else german.article(case, gender_of(noun, plural))


def _relative_subject(draw: Draw, use: Use, head: Nominal, noun: Noun) -> Phrase:
    """der Mann , der schläft ↔ the man who sleeps."""
    who = draw.weighted({"who": 5, "that": 1} if "person" in noun.kinds else {"that": 2, "which": 1})
    subject = replace(head, phrase=link(relative_pronoun(noun, head.plural, "nom"), who), tail=())
    plan = Plan(use, subject, embedded=True, simple=True, adverbs=0.6, negated=draw.chance(0.08))
    return predicate(draw, plan).verb_last()


def _relative_object(draw: Draw, use: Use, skip: int, head: Nominal, noun: Noun) -> Phrase:
    """das Haus , in dem er wohnt ↔ the house where he lives; das Buch , das er liest ↔ the book he reads."""
    argument = use.frame.arguments[skip]
    clause = predicate(draw, Plan(use, skip=skip, embedded=True, simple=True, adverbs=0.4))
    if argument.role == "where" and noun.where:
        front = link(f"{noun.where[0]} {relative_pronoun(noun, head.plural, 'dat')}", "where")
        return clause.with_part(Part(front, De.FRONT, En.LEAD)).verb_last()
    that = draw.weighted({"that": 3, "": 3, "who" if "person" in noun.kinds else "which": 1})
    word = link(relative_pronoun(noun, head.plural, argument.case), that)
    return gap(clause, use, skip, word).verb_last()
