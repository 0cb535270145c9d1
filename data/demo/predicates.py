"""What is said: a verb in a tense with its arguments, for a subject; and the clauses that may stand within it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from data.demo import german
from data.demo.adverbials import Situation, adverbials, negation
from data.demo.clauses import COMMA, Clause, De, En, Part
from data.demo.complements import complement
from data.demo.lexicon import nouns_of, uses
from data.demo.nouns import (
    DUMMY,
    Nominal,
    Referent,
    Request,
    coordinated,
    gender_of,
    nominal,
    noun_phrase,
    pronoun,
)
from data.demo.phrases import Bond, Phrase, Word, Words, link, words
from data.demo.prepositions import place, prepositional, with_attribute
from data.demo.verbs import FORMS, MODAL, main_verb, verb_group, zu_infinitive

if TYPE_CHECKING:
    from collections.abc import Mapping

    from data.demo.draw import Draw
    from data.demo.lexicon import Argument, Case, Idiom, Kinds, Noun, Use, Verb
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
        "pluperfect": 0.3,
        "future": 5,
        "soon": 2,
    },
    "once": {"present": 8, "past": 15, "preterite": 7, "perfect": 6, "pluperfect": 0.3, "future": 6, "soon": 3},
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

_LASTING = frozenset("arbeiten kennen lernen lieben schlafen spielen suchen warten wohnen".split())
_TIMELESS = frozenset({"age", "price", "span", "called"})
PAST = frozenset(name for name, form in FORMS.items() if form.when == "past" and name != "pluperfect")
OPEN = frozenset(FORMS) - PAST - {"pluperfect", "would"}


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


def forms_for(verb: Verb, subject: Kinds) -> dict[str, float]:
    """Tenses and moods that suit the verb; only persons want, may and should."""
    weights = dict(_WEIGHTS[verb.aspect])
    if "person" in subject and verb.aspect in {"act", "once"}:
        weights |= _MOODS
    if verb.particle + verb.german in _LASTING:
        weights["since"] = 1.5
    return weights


def subject_for(draw: Draw, kinds: Kinds, pronouns: float = 0.4) -> Nominal:
    """A subject, which may be two."""
    if draw.chance(0.05) and "es" not in kinds:
        return coordinated(draw, Request(kinds, "nom"))
    return with_attribute(draw, nominal(draw, Request(kinds, "nom", pronouns=pronouns)), "nom", 0.08)


@dataclass(frozen=True)
class _Scene:
    """What the parts of one clause need to know of each other."""

    plan: Plan
    main: MainVerb
    subject: Nominal
    when: str
    determiner: str | None = None  # of the object: no, where kein denies the clause
    negation: Bond | None = None  # shared by that kein and an English not


def predicate(draw: Draw, plan: Plan) -> Clause:
    """The clause of `plan`, its words not yet in order."""
    use, verb = plan.use, plan.use.verb
    kinds = use.frame.subject
    if plan.passive:
        draw.note("passive")
        plan = replace(plan, skip=_object_at(use))
        kinds = use.frame.arguments[_object_at(use)].kinds
    forms = dict(plan.forms or forms_for(verb, kinds))
    if plan.negated and len(forms) > 1:
        forms.pop("must", None)  # muss nicht is no must not
    name = draw.weighted(forms)
    draw.note("modal" if name in MODAL else name, *["separable verb"] * bool(verb.particle))
    subject = plan.subject or subject_for(draw, kinds, 0 if plan.passive or is_impersonal(use) else 0.4)
    scene, parts = _denied(draw, _Scene(plan, main_verb(use), subject, FORMS[name].when))
    operator = plan.question or any(part.en is En.NOT for part in parts)
    gern = Bond() if _likes(draw, plan, name) else None
    if gern:
        parts.append(Part(Phrase(words("gern", gern)), De.FREQUENCY, En.AFTER))
    doer, said = _doer(draw, scene)
    parts += said + _reflexive(scene) + _arguments(draw, scene)
    if plan.passive and "person" in use.frame.subject and draw.chance(0.3):
        agent = nominal(draw, Request(use.frame.subject, "dat", subject.referent, pronouns=0.1))
        parts.append(Part(prepositional(draw, link("von", "by"), agent), De.COMPLEMENT, En.COMPLEMENT))
    full = any(part.de is De.AFTER or (part.tail and part.en is not En.SUBJECT) for part in parts)
    situation = Situation(
        name if name in {"soon", "since"} else scene.when,
        subject.referent.german.verb == "wir",
        plan.negated,
        plan.embedded or plan.question,
        0 if any(argument.role in _TIMELESS for argument in use.frame.arguments) else plan.adverbs,
    )
    parts += adverbials(draw, verb, situation, short=full)
    group = verb_group(scene.main, doer, FORMS[name], operator=operator, passive=plan.passive, gern=gern)
    return Clause(tuple(parts), group, subject, scene.when, plan.question)


def is_impersonal(use: Use) -> bool:
    """Whether the English subject is not the German one."""
    return any(argument.role in {"experiencer", "exists"} for argument in use.frame.arguments)


def _doer(draw: Draw, scene: _Scene) -> tuple[Referent, list[Part]]:
    """Whom the verbs agree with, and the parts that name him: commonly the subject."""
    subject, arguments = scene.subject, scene.plan.use.frame.arguments
    if not is_impersonal(scene.plan.use):
        return subject.referent, [Part(subject.phrase, De.SUBJECT, En.SUBJECT, subject.tail)]
    if arguments[0].role == "experiencer":
        return _experience(draw, subject)
    return _existence(draw, arguments[0], scene)


def _object_at(use: Use) -> int:
    return next(k for k, argument in enumerate(use.frame.arguments) if argument.role == "acc")


def can_be_passive(use: Use) -> bool:
    """Whether both languages can make the object the subject."""
    objects = [argument for argument in use.frame.arguments if argument.role == "acc"]
    simple = not any(argument.role in CLAUSAL for argument in use.frame.arguments)
    verb = use.verb
    return (
        simple
        and len(objects) == 1
        and not objects[0].english
        and verb.aspect in {"act", "once"}
        and not verb.reflexive
    )


def _likes(draw: Draw, plan: Plan, form: str) -> bool:
    """gern ↔ to like to: an adverb against a verb."""
    addressed = plan.subject is not None and plan.subject.phrase.de and not plan.subject.phrase.en
    fits = form in {"present", "preterite"} and plan.use.verb.aspect == "act" and not (plan.passive or addressed)
    chosen = fits and "person" in plan.use.frame.subject and not plan.negated and draw.chance(0.15 * plan.adverbs)
    if chosen:
        draw.note("gern")
    return chosen


def _denied(draw: Draw, scene: _Scene) -> tuple[_Scene, list[Part]]:
    """How the clause is denied: by nicht, or by kein at its object, which English says as no or as not any."""
    if not scene.plan.negated:
        return scene, []
    arguments = scene.plan.use.frame.arguments
    objects = [
        k for k, a in enumerate(arguments) if a.role in {"acc", "exists"} and not a.english and k != scene.plan.skip
    ]
    if not objects or scene.plan.passive or draw.chance(0.5):
        return scene, negation(draw, scene.when)
    draw.note("kein")
    if draw.chance(0.4):
        return replace(scene, determiner="no"), []
    bond = Bond()
    return replace(scene, determiner="no", negation=bond), [Part(Phrase((), words("not", bond)), De.NOT, En.NOT)]


def _experience(draw: Draw, subject: Nominal) -> tuple[Referent, list[Part]]:
    """mir gefällt das Buch ↔ I like the book: the German dative is the English subject."""
    draw.note("experiencer")
    person = nominal(draw, Request(PERSON, "dat", pronouns=0.6))
    phrase = person.phrase
    if not person.noun:
        phrase = link(person.referent.german.dat, person.referent.english.subject)
    rank = De.DAT if person.noun else De.DAT_PRONOUN
    parts = [
        Part(subject.phrase, De.SUBJECT, En.OBJECT, subject.tail),
        Part(phrase, rank, En.SUBJECT),
    ]
    return Referent(subject.referent.german, person.referent.english), parts


def _existence(draw: Draw, argument: Argument, scene: _Scene) -> tuple[Referent, list[Part]]:
    """es gibt zwei Hunde ↔ there are two dogs."""
    draw.note("existential")
    determiner = scene.determiner or draw.weighted({"a": 6, "number": 2, "many": 1, "some": 1, "no": 1})
    noun = draw.pick([noun for noun in nouns_of(argument.kinds) if not noun.proper])
    found = noun_phrase(draw, noun, Request(argument.kinds, "acc", determiner=determiner, negation=scene.negation))
    parts = [
        Part(link("es", "there"), De.SUBJECT, En.SUBJECT),
        Part(found.phrase, De.INDEFINITE, En.OBJECT),
    ]
    if draw.chance(0.4):
        parts.append(Part(place(draw, scene.main.verb.where), De.PLACE, En.PLACE))
    return Referent(DUMMY.german, found.referent.english if found.plural else DUMMY.english), parts


def _reflexive(scene: _Scene) -> list[Part]:
    """sich ↔ himself, or sich alone, which may be linked to the verb."""
    if not scene.main.verb.reflexive:
        return []
    referent, bond = scene.subject.referent, Bond()
    himself = words(referent.english.reflexive, bond) if scene.main.verb.oneself else ()
    sich = words(referent.german.reflexive, bond, possible=[scene.main.core])
    return [Part(Phrase(sich, himself), De.REFLEXIVE, En.PRONOUN)]


def _arguments(draw: Draw, scene: _Scene) -> list[Part]:
    arguments, idiom = scene.plan.use.frame.arguments, scene.plan.use.idiom
    parts = [_fixed(draw, idiom, scene)] if idiom else []
    for k, argument in enumerate(arguments):
        if k == scene.plan.skip or argument.role in {"experiencer", "exists"}:
            continue
        if argument.role in CLAUSAL:
            inner = _content(draw, argument.role, scene)
            parts.append(Part(inner, De.AFTER, En.AFTER))
        elif argument.role in {"acc", "dat", "prep"}:
            parts.append(_object(draw, argument, scene, last=k == len(arguments) - 1))
        else:
            parts.append(complement(draw, argument, scene.subject))
    return parts


def _object(draw: Draw, argument: Argument, scene: _Scene, *, last: bool) -> Part:
    """A noun phrase in the case, and with the prepositions, that the verb asks for."""
    request = Request(argument.kinds, argument.case, scene.subject.referent, definite=scene.plan.negated)
    if argument.role == "acc" and scene.determiner:
        request = replace(request, determiner=scene.determiner, negation=scene.negation)
    found = with_attribute(draw, nominal(draw, request), argument.case)
    alone = argument.role == "prep" or len(scene.plan.use.frame.arguments) == 1
    if last and alone and not scene.plan.simple and draw.chance(0.12):
        found = with_relative(draw, found)
    core = scene.main.core
    if argument.role == "prep" and "person" not in argument.kinds and draw.chance(0.12):
        draw.note("pronominal adverb")
        return Part(link(german.pronominal("da", argument.german), f"{argument.english} it"), De.COMPLEMENT, En.COMPLEMENT)
    if argument.role == "prep":
        joined = link(argument.german, argument.english)
        if not argument.english:
            joined = Phrase(words(argument.german, possible=[core]))
        return Part(prepositional(draw, joined, found), De.COMPLEMENT, En.COMPLEMENT, found.tail)
    phrase, is_pronoun = found.phrase, found.noun is None and found.definite
    if argument.role == "dat":
        rank = De.DAT_PRONOUN if is_pronoun else De.DAT
        if argument.english and (scene.plan.passive or not argument.optional or draw.chance(0.4)):
            to = words(argument.english, possible=phrase.de[0].sure)
            return Part(Phrase(phrase.de, to + phrase.en), rank, En.COMPLEMENT, found.tail)
        return Part(phrase, rank, En.INDIRECT, found.tail)
    if is_pronoun:
        rank = De.ACC_PRONOUN
    else:
        rank = De.ACC if found.definite else De.INDEFINITE
    if argument.english:
        phrase = Phrase(phrase.de, words(argument.english, core) + phrase.en)
        return Part(phrase, rank, En.OBJECT, found.tail)
    return Part(phrase, rank, En.PRONOUN if is_pronoun else En.OBJECT, found.tail)


def _fixed(draw: Draw, idiom: Idiom, scene: _Scene) -> Part:
    """The words of an idiom beside its verb.

    Words that translate one another are linked for sure and take the words before them along as possible; what is left
    is linked to the whole as possible.
    """
    draw.note("idiom")
    bonds = {source: Bond() for source in idiom.sure}
    whole = scene.main.extra
    own = scene.subject.referent.english.possessive
    said = idiom.english.replace("one 's", own).split()
    source = _bonded(idiom.german.split(), bonds, whole)
    target = _bonded(said, {idiom.sure[word]: bond for word, bond in bonds.items()}, whole)
    source = tuple(Word(word.text, word.sure or word.possible) for word in source)
    return Part(Phrase(source, target), De.COMPLEMENT, En.COMPLEMENT)


def _bonded(text: list[str], bonds: Mapping[str, Bond], whole: Bond) -> Words:
    found: Words = ()
    following = whole
    for word in reversed(text):
        bond = bonds.get(word)
        found = words(word, *[bond] * bool(bond), possible=[] if bond else [following]) + found
        following = bond or following
    return found


def _content(draw: Draw, role: str, scene: _Scene) -> Phrase:
    """A clause as object: dass, ob, or an infinitive with zu."""
    if role == "zu":
        return COMMA + infinitive(draw, scene.subject.referent)
    draw.note("content clause")
    conjunction = link("ob", "whether")
    if role == "dass":
        conjunction = link("dass", "that" if draw.chance(0.7) else "")
    return COMMA + conjunction + subordinate(draw, PAST if scene.when == "past" else OPEN, scene.subject)


def subordinate(draw: Draw, forms: Kinds, known: Nominal, denied: float = 0.1) -> Phrase:
    """A verb-final clause in one of `forms`; its subject may be that of the main clause, `known`, again."""
    draw.note("verb-final")
    again = None
    if draw.chance(0.4) and known.referent != DUMMY and (not known.noun or ("person" in known.noun.kinds and known.noun.german != "Kind")):
        again = pronoun(known.referent, "nom")
    options = [use for use in uses() if _fits(use, True, PERSON if again else None) and forms_of(use, forms)]
    use = draw.pick([use for use in options if not again or not is_impersonal(use)])
    plan = Plan(use, again, forms_of(use, forms), negated=draw.chance(denied), embedded=True, simple=True, adverbs=0.6)
    return predicate(draw, plan).verb_last()


def forms_of(use: Use, names: Kinds) -> dict[str, float]:
    """Those of `names` that suit the verb."""
    every = forms_for(use.verb, use.frame.subject)
    return {name: weight for name, weight in every.items() if name in names}


def infinitive(draw: Draw, subject: Referent, *, purpose: bool = False, gerund: bool = False) -> Phrase:
    """An infinitive with zu and what belongs to it; `subject` is who would be its subject."""
    draw.note("infinitive")
    options = [use for use in uses() if _fits(use, True, PERSON) and use.verb.aspect in {"act", "once"}]
    use = draw.pick([use for use in options if not use.idiom])
    draw.note(*["separable verb"] * bool(use.verb.particle))
    nobody, main = Nominal(Phrase(), subject), main_verb(use)
    group = zu_infinitive(main, gerund=gerund)
    scene = _Scene(Plan(use, nobody, simple=True), main, nobody, "none")
    parts = _reflexive(scene) + _arguments(draw, scene)
    parts += adverbials(draw, use.verb, Situation("none", False, embedded=True, share=0.6))
    if purpose:
        um = link("um", "in order") if draw.chance(0.3) else Phrase(words("um", possible=group.english[0].sure))
        parts.append(Part(um, De.FRONT, En.LEAD))
    return Clause(tuple(parts), group, nobody).verb_last()


def with_relative(draw: Draw, head: Nominal) -> Nominal:
    """`head` with a relative clause; other than a noun with an article, it stays as it is."""
    noun = head.noun
    if noun is None or noun.proper or noun.kinds & {"kin", "weather", "sky"}:
        return head
    roles = [(use, k) for use in uses() if _fits(use, True, None) for k in _relative_roles(use, noun.kinds)]
    subjects = [(use, k) for use, k in roles if k is None]
    objects = [(use, k) for use, k in roles if k is not None]
    if not subjects and not objects:
        return head
    draw.note("relative clause")
    use, skip = draw.pick(subjects if subjects and (not objects or draw.chance(0.45)) else objects)
    relative = _relative_subject(draw, use, head) if skip is None else _relative_object(draw, use, skip, head)
    tail = COMMA + relative + COMMA
    return replace(head, phrase=Phrase(head.phrase.de, head.phrase.en + tail.en), tail=tail.de)


def _relative_roles(use: Use, kinds: Kinds) -> list[int | None]:
    """Where in this frame a noun of these kinds could stand: None for the subject, else the argument's number."""
    arguments = use.frame.arguments
    if is_impersonal(use) or use.verb.aspect == "weather":
        return []
    roles: list[int | None] = [None] * bool(use.frame.subject & kinds)
    for k, argument in enumerate(arguments):
        if argument.role in {"acc", "dat", "prep", "where"} and argument.kinds & kinds:
            roles.append(k)
    return roles


def relative_pronoun(noun: Noun, plural: bool, case: Case) -> str:
    return "denen" if plural and case == "dat" else german.article(case, gender_of(noun, plural))


def _relative_subject(draw: Draw, use: Use, head: Nominal) -> Phrase:
    assert head.noun is not None  # noqa: S101, for the type checker
    who = draw.weighted({"who": 5, "that": 1} if "person" in head.noun.kinds else {"that": 2, "which": 1})
    phrase = link(relative_pronoun(head.noun, head.plural, "nom"), who)
    subject = replace(head, phrase=phrase, tail=())
    forms = forms_for(use.verb, use.frame.subject)
    plan = Plan(use, subject, forms, embedded=True, simple=True, adverbs=0.6, negated=draw.chance(0.08))
    return predicate(draw, plan).verb_last()


def stranded(use: Use, skip: int, preposition: Words) -> Part:
    """An English preposition whose noun has gone to the front."""
    rank = En.COMPLEMENT if skip == len(use.frame.arguments) - 1 else En.OBJECT
    return Part(Phrase((), preposition), De.COMPLEMENT, rank)


def _relative_object(draw: Draw, use: Use, skip: int, head: Nominal) -> Phrase:
    """das Haus , in dem er wohnt ↔ the house he lives in, or where he lives."""
    assert head.noun is not None  # noqa: S101, for the type checker
    argument = use.frame.arguments[skip]
    plan = Plan(use, None, skip=skip, embedded=True, simple=True, adverbs=0.4)
    clause = predicate(draw, plan)
    case: Case = "dat" if argument.role == "where" else argument.case
    pronoun_form = relative_pronoun(head.noun, head.plural, case)
    if argument.role == "where":
        assert head.noun.where is not None  # noqa: S101, for the type checker
        front = link(f"{head.noun.where[0]} {pronoun_form}", "where")
        return clause.with_part(Part(front, De.FRONT, En.LEAD)).verb_last()
    that = draw.weighted({"that": 3, "": 3, "who" if "person" in head.noun.kinds else "which": 1})
    joined = link(argument.german, argument.english)
    front = Phrase(joined.de) + link(pronoun_form, that)
    parts = [Part(front, De.FRONT, En.LEAD)]
    if argument.english:
        parts.append(stranded(use, skip, joined.en))
    return clause.with_part(*parts).verb_last()
