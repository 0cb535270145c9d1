"""Verb groups: a German and an English chain of auxiliaries and main verb that mean the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from data.demo import english, german
from data.demo.phrases import NONE, Bond, Bonds, Word, Words, words

if TYPE_CHECKING:
    from data.demo.german import Tense
    from data.demo.lexicon import Use, Verb
    from data.demo.nouns import Referent


@dataclass(frozen=True)
class Auxiliary:
    """`lemma` and the form of the verb below it; not `sure` where the other language has no word of its own for it."""

    lemma: str
    governs: str
    sure: bool = True


@dataclass(frozen=True)
class Form:
    """A tense or mood in both languages. `when` is what adverbs of time must agree with."""

    when: str
    german: tuple[Auxiliary, ...] = ()
    english: tuple[Auxiliary, ...] = ()
    past: bool = False  # the finite German verb is in the past tense
    english_past: bool = False


def _modal(source: str, target: str, governs: str = "infinitive", *, past: bool = False, when: str = "habit") -> Form:
    return Form(when, (Auxiliary(source, "infinitive"),), (Auxiliary(target, governs),), past, past)


_PERFECT = Auxiliary("", "participle")  # haben or sein, as the verb has it
FORMS = {
    "present": Form("habit"),
    "progressive": Form("present", (), (Auxiliary("be", "progressive", sure=False),)),
    "past": Form("past", (Auxiliary("", "participle", sure=False),), english_past=True),
    "preterite": Form("past", past=True, english_past=True),
    "past progressive": Form("past", (), (Auxiliary("be", "progressive", sure=False),), past=True, english_past=True),
    "since": Form("since", (), (Auxiliary("have", "participle", sure=False),)),
    "perfect": Form("perfect", (_PERFECT,), (Auxiliary("have", "participle"),)),
    "pluperfect": Form("past", (_PERFECT,), (Auxiliary("have", "participle"),), past=True, english_past=True),
    "future": Form("future", (Auxiliary("werden", "infinitive"),), (Auxiliary("will", "infinitive"),)),
    "soon": Form("future", (), (Auxiliary("will", "infinitive", sure=False),)),
    "would": _modal("würden", "would", when="would"),
    "can": _modal("können", "can"),
    "could": Form("past", (Auxiliary("können", "infinitive"),), (Auxiliary("could", "infinitive"),), past=True),
    "must": _modal("müssen", "must"),
    "have to": _modal("müssen", "have to"),
    "had to": _modal("müssen", "have to", past=True, when="past"),
    "want": _modal("wollen", "want", "to"),
    "wanted": _modal("wollen", "want", "to", past=True, when="past"),
    "should": _modal("sollen", "should", when="future"),
    "may": _modal("dürfen", "be allowed", "to"),
    "might": _modal("dürfen", "be allowed", "to", past=True, when="past"),
    "would like": _modal("möchten", "would like", "to", when="future"),
}
MODAL = frozenset(
    {"can", "could", "must", "have to", "had to", "want", "wanted", "should", "may", "might", "would like"}
)
MOVABLE = frozenset({"up", "on", "off", "away", "back", "along"})  # go behind a pronoun: puts it on
GERN = Auxiliary("like", "to")


@dataclass(frozen=True)
class VerbGroup:
    """The words of a verb, apart. `opening` stands second in a German main clause, `closing` at its end."""

    opening: Words
    closing: Words
    last: Words  # what closes a subordinate clause: closing and opening, written together where they are one word
    operator: Words  # the English word that moves in a question and is negated
    english: Words
    particle: Words


@dataclass(frozen=True)
class MainVerb:
    """The bonds of a main verb.

    `core` ties the words that inflect, `extra` the particle and further English words, `helper` auxiliaries that
    have no partner of their own. Where it is not `certain`, in an idiom, the English words are possible links only.
    """

    verb: Verb
    core: Bond = field(default_factory=Bond)
    extra: Bond = field(default_factory=Bond)
    helper: Bond = field(default_factory=Bond)
    certain: bool = True

    def joined(self, text: str) -> Words:
        """German in one word."""
        return words(text, self.core, self.extra)

    def stem(self, text: str) -> Words:
        """German without its particle, which takes the further English words to itself."""
        if self.verb.particle and self.certain:
            return words(text, self.core, possible=[self.extra])
        return self.joined(text)

    def particle(self) -> Words:
        if self.verb.rest and self.verb.english != "be":
            return words(self.verb.particle, self.extra, possible=[self.core])
        return self.joined(self.verb.particle)

    def inflected(self, text: str) -> Words:
        """The English word that inflects; be is but a helper of what follows it."""
        if not self.certain:
            return words(text, possible=[self.core, self.extra, self.helper])
        if self.verb.english == "be" and self.verb.rest:
            return words(text, possible=[self.core])
        return words(text, self.core)

    def tail(self) -> tuple[Words, Words]:
        """The further English words: those that stay with the verb, and a particle that may move."""
        helped = (self.core,) if self.verb.english == "be" else ()
        rest = words(self.verb.rest, self.extra, *helped)
        return ((), rest) if self.verb.rest in MOVABLE else (rest, ())


def main_verb(use: Use) -> MainVerb:
    infinitive = use.verb.particle + use.verb.german
    return MainVerb(use.verb, certain=use.idiom is None or infinitive in use.idiom.sure)


Chain: TypeAlias = list[tuple[Auxiliary, Bonds, Bonds]]


def _auxiliaries(form: Form, main: MainVerb, passive: bool, gern: Bond | None) -> tuple[Chain, Chain]:
    """Auxiliaries from the finite one inwards, each with its sure and possible bonds.

    One without partner may be linked to the partner of the verb that it helps: the passive auxiliary or the main verb.
    """
    bonds = [frozenset({Bond()}) for _ in (*form.german, *form.english)]  # enough for the longer side
    voice, helper = frozenset({Bond()}), frozenset({main.helper})
    helped = voice if passive else frozenset({main.core})
    left = [(a, bonds[k], NONE) if a.sure else (a, helper, helped) for k, a in enumerate(form.german)]
    right = [(a, bonds[k], NONE) if a.sure else (a, NONE, helped | helper) for k, a in enumerate(form.english)]
    if passive:
        left.append((Auxiliary("werden", "participle"), voice, NONE))
        right.append((Auxiliary("be", "participle"), voice, NONE))
    if gern:
        right.append((GERN, frozenset({gern}), NONE))
    return left, right


def verb_group(
    main: MainVerb,
    subject: Referent,
    form: Form,
    *,
    operator: bool = False,
    passive: bool = False,
    gern: Bond | None = None,
) -> VerbGroup:
    """`main` in `form`, in agreement with `subject`; with an `operator` (do, if need be) for questions and not."""
    left, right = _auxiliaries(form, main, passive, gern)
    opening, closing, last = _german(main, subject, left, "past" if form.past else "present", passive)
    tense: Tense = "past" if form.english_past else "present"
    return VerbGroup(opening, closing, last, *_english(main, subject, right, tense, operator))


def _german(main: MainVerb, subject: Referent, chain: Chain, tense: Tense, passive: bool) -> tuple[Words, Words, Words]:
    verb = main.verb
    if not chain:
        text = german.finite(verb.german, tense, subject.german)
        if verb.particle:
            return main.stem(text), main.particle(), main.joined(verb.particle + text)
        return main.joined(text), (), main.joined(text)
    parts: list[Words] = []
    governed = "finite"
    for auxiliary, sure, possible in chain:
        lemma = auxiliary.lemma or ("sein" if passive else verb.auxiliary)
        text = _german_form(lemma, governed, tense, subject)
        parts.append(words("worden" if text == "geworden" else text, *sure, possible=possible))
        governed = auxiliary.governs
    parts.append(main.joined(verb.particle + _german_form(verb.german, governed, tense, subject)))
    closing = tuple(word for part in reversed(parts[1:]) for word in part)
    return parts[0], closing, closing + parts[0]


def _german_form(lemma: str, form: str, tense: Tense, subject: Referent) -> str:
    if form == "finite":
        return german.finite(lemma, tense, subject.german)
    return german.participle(lemma) if form == "participle" else lemma


def _english(
    main: MainVerb, subject: Referent, chain: Chain, tense: Tense, operator: bool
) -> tuple[Words, Words, Words]:
    """Operator, the other verbs, and a particle that may move."""
    first = chain[0][0] if chain else Auxiliary(main.verb.english, "")
    has_operator = _is_operator(first)
    if operator and not has_operator:
        likewise = (chain[0][1] | chain[0][2] if chain else frozenset({main.core})) | {main.helper}
        chain = [(Auxiliary("do", "infinitive"), NONE, likewise), *chain]
        has_operator = True
    said: list[Word] = []
    governed = "finite"
    for auxiliary, sure, possible in chain:
        lemma, *more = auxiliary.lemma.split()
        said += _to(governed, main.core)
        said += words(" ".join([_english_form(lemma, governed, tense, subject), *more]), *sure, possible=possible)
        governed = auxiliary.governs
    said += _to(governed, main.core)
    said += main.inflected(_english_form(main.verb.english, governed, tense, subject))
    split = 1 if has_operator else 0
    rest, particle = main.tail()
    return tuple(said[:split]), (*said[split:], *rest), particle


def _to(governed: str, core: Bond) -> Words:
    """The to of an infinitive without partner of its own."""
    return words("to", possible=[core]) if governed == "to" else ()


def _is_operator(first: Auxiliary) -> bool:
    return first.lemma.split()[0] in english.MODALS | {"be"} or (
        first.lemma == "have" and first.governs == "participle"
    )


def _english_form(lemma: str, form: str, tense: Tense, subject: Referent) -> str:
    if form == "finite":
        return english.finite(lemma, tense, subject.english.verb)
    if form == "participle":
        return english.participle(lemma)
    return english.progressive(lemma) if form == "progressive" else lemma


def zu_infinitive(main: MainVerb, *, gerund: bool = False) -> VerbGroup:
    """zu kaufen, einzukaufen ↔ to buy, or buying."""
    verb = main.verb
    to = Bond()
    if verb.particle:
        joined = Word(f"{verb.particle}zu{verb.german}", frozenset({main.core, main.extra}), frozenset({to}))
        source: Words = (joined,)
    else:
        source = words("zu", to, possible=[main.core] * gerund) + main.joined(verb.german)
    if gerund:
        target = main.inflected(english.progressive(verb.english))
    else:
        target = words("to", to) + main.inflected(verb.english)
    rest, particle = main.tail()
    return VerbGroup((), source, source, (), target + rest, particle)
