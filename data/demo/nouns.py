"""Noun phrases: pronouns, names and nouns with determiner and adjectives, in any case."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from data.demo import english, german
from data.demo.lexicon import Noun, adjectives_for, compounds, nouns_of
from data.demo.phrases import Bond, Phrase, Words, link, words

if TYPE_CHECKING:
    from data.demo.draw import Draw
    from data.demo.german import Declension
    from data.demo.lexicon import Adjective, Case, Gender, Kinds


@dataclass(frozen=True)
class Referent:
    """Who is spoken of, in both grammars: a table is `er` and `it`, a girl `es` and `she`."""

    german: german.Pronoun
    english: english.Pronoun

    @classmethod
    def of(cls, german_key: str, english_key: str) -> Referent:
        return cls(german.PRONOUNS[german_key], english.PRONOUNS[english_key])


@dataclass(frozen=True)
class Nominal:
    """A noun phrase in its case.

    `noun` is None for a pronoun. `tail` is a German relative clause, which may leave its place; its English is already
    in `phrase`.
    """

    phrase: Phrase
    referent: Referent
    noun: Noun | None = None
    plural: bool = False
    definite: bool = True
    contracts: bool = False  # begins with a definite article that a preposition may swallow
    tail: Words = ()

    @property
    def is_pronoun(self) -> bool:
        """Whether it goes where personal pronouns go."""
        return self.noun is None and self.definite


class Determiner(NamedTuple):
    german: str
    singular: str
    plural: str
    declension: Declension  # of the adjectives after it
    number: str = "sp"  # singular, plural or both


DETERMINERS = {
    "the": Determiner("der", "the", "the", "weak"),
    "a": Determiner("ein", "a", "", "mixed", "s"),
    "no": Determiner("kein", "no", "no", "mixed"),
    "this": Determiner("dies", "this", "these", "weak"),
    "every": Determiner("jed", "every", "", "weak", "s"),
    "which": Determiner("welch", "which", "which", "weak"),
    "many": Determiner("viel", "", "many", "strong", "p"),
    "some": Determiner("einig", "", "some", "strong", "p"),
    "all": Determiner("all", "", "all", "weak", "p"),
    "number": Determiner("", "", "", "strong", "p"),
    "my": Determiner("", "", "", "mixed"),
    "": Determiner("", "", "", "strong"),
}
DEFINITE = frozenset({"the", "this", "my", "every", "all", "which"})
_COUNTABLE = {"the": 42, "a": 26, "my": 14, "this": 6, "every": 1, "": 3, "number": 4, "some": 2, "many": 1, "all": 1}
_UNIQUE = {"the": 1.0}
_KIN = {"my": 20, "the": 6, "a": 1, "number": 1}
_MASS = {"": 5, "the": 3, "my": 1, "this": 1}
_SPEAKERS: dict[tuple[str, str], float] = {
    ("ich", "I"): 5,
    ("du", "you"): 1,
    ("er", "he"): 4,
    ("sie", "she"): 3,
    ("wir", "we"): 4,
    ("Sie", "you"): 1,
    ("sie alle", "they"): 2,
}
_GENDERED = {"m": ("er", "he"), "f": ("sie", "she"), "n": ("es", "she")}
_SIZES = frozenset({"groß", "klein", "alt", "neu", "jung"})  # adjectives that stand before others
_ADVERBS = (("sehr", "very"), ("besonders", "particularly"), ("ziemlich", "rather"))
DUMMY = Referent.of("es", "it")


@dataclass(frozen=True)
class Request:
    """What a noun phrase shall be: its kinds and case; `owner` for possessives; the rest where the rule decides.

    `definite` asks for a definite article or the like, as after nicht.
    """

    kinds: Kinds
    case: Case
    owner: Referent | None = None
    determiner: str | None = None
    plural: bool | None = None
    pronouns: float = 0.25  # how often a person is a pronoun
    definite: bool = False
    negation: Bond | None = None  # shared by kein and an English not


def gender_of(noun: Noun, plural: bool) -> Gender:
    return "p" if plural else noun.gender


def referent_of(noun: Noun, plural: bool) -> Referent:
    if plural:
        return Referent.of("sie alle", "they")
    key, person = _GENDERED[noun.gender]
    return Referent.of(key, person if "person" in noun.kinds and noun.german != "Kind" else "it")


def pronoun(referent: Referent, case: Case) -> Nominal:
    """The personal pronoun for `referent`."""
    form = referent.english.subject if case == "nom" else referent.english.object
    plural = referent.german.verb == "wir"
    return Nominal(link(referent.german.case(case), form), referent, plural=plural)


def any_speaker(draw: Draw) -> Referent:
    return Referent.of(*draw.weighted(_SPEAKERS))


def _other_speaker(draw: Draw, owner: Referent | None) -> Referent:
    """Somebody else than `owner`, who would need a reflexive pronoun."""
    referent = any_speaker(draw)
    first = {"I", "we"}
    while owner and (referent.english == owner.english or {referent.english.subject, owner.english.subject} == first):
        referent = any_speaker(draw)
    return referent


def nominal(draw: Draw, request: Request) -> Nominal:
    """A noun phrase for `request`: a pronoun, a name, or a noun with what belongs to it."""
    if "es" in request.kinds:
        return pronoun(DUMMY, request.case)
    free = request.determiner is None
    if free and "person" in request.kinds and draw.chance(request.pronouns):
        draw.note("pronoun")
        return pronoun(_other_speaker(draw, request.owner), request.case)
    vague = free and not request.definite and request.pronouns and draw.chance(0.04)
    if vague and (found := _indefinite(draw, request)):
        return found
    noun = draw.pick([entry for entry in nouns_of(request.kinds) if free or not entry.proper])
    if noun.proper:
        return Nominal(link(noun.german, noun.english), referent_of(noun, False), noun)
    return noun_phrase(draw, noun, request)


def _indefinite(draw: Draw, request: Request) -> Nominal | None:
    """jemand, niemand, etwas, nichts."""
    referent = Referent.of("er", "he")
    if "person" in request.kinds:
        source, target = draw.weighted({("jemand", "someone"): 3, ("niemand", "nobody"): 1})
        ending = {"nom": "", "acc": "en", "dat": "em", "gen": "es"}[request.case]
        return Nominal(link(source + ending, target), referent, definite=False)
    if request.case == "acc" and request.kinds & {"thing", "text", "food", "gift"}:
        return Nominal(link(*draw.pick([("etwas", "something"), ("nichts", "nothing")])), DUMMY, definite=False)
    return None


def another(draw: Draw, request: Request, first: Nominal) -> Nominal:
    """A noun phrase of the same kind as `first` with a different noun; `first` itself if there is none."""
    noun = first.noun
    kinds = request.kinds & noun.kinds if noun else request.kinds
    kinds = frozenset(
        n.german for n in nouns_of(kinds) if not noun or not noun.german.lower().endswith(n.german.lower())
    )
    return nominal(draw, replace(request, kinds=kinds)) if kinds else first


def coordinated(draw: Draw, request: Request) -> Nominal:
    """Two noun phrases: Anna und der Nachbar, Milch und Käse."""
    draw.note("coordination")
    first = nominal(draw, replace(request, pronouns=0))
    second = another(draw, replace(request, pronouns=0), first)
    if second is first:
        return first
    joined = first.phrase + link("und", "and") + second.phrase
    return Nominal(joined, Referent.of("sie alle", "they"), first.noun, True, first.definite)


def noun_phrase(draw: Draw, noun: Noun, request: Request) -> Nominal:
    """`noun`, or a compound of it, with determiner and adjectives in agreement."""
    if (family := compounds().get(noun.german)) and draw.chance(0.2):
        draw.note("compound")
        noun = draw.pick(family)
    choice, plural = _determiner_and_number(draw, noun, request)
    case, gender = request.case, gender_of(noun, plural)
    start = _determiner(draw, choice, gender, request, countable=bool(noun.plural) and not plural)
    middle = _adjectives(draw, noun, choice, case, gender)
    head = link(german.noun(noun, case, plural), english.plural(noun.english) if plural else noun.english)
    return Nominal(
        start + middle + head,
        referent_of(noun, plural),
        noun,
        plural,
        definite=choice in DEFINITE,
        contracts=choice == "the",
    )


def _determiner_and_number(draw: Draw, noun: Noun, request: Request) -> tuple[str, bool]:
    """A determiner and a number that the noun allows; an article that has no plural is left out there."""
    choice = request.determiner
    if choice is None:
        kinds = noun.kinds
        weights = _UNIQUE if kinds & {"sky", "weather"} else _MASS if not noun.plural else _COUNTABLE
        weights = _KIN if "kin" in kinds else weights
        if request.definite:
            weights = {name: weight for name, weight in weights.items() if name in {"the", "my", "this"}}
        choice = draw.weighted(weights)
        if choice == "my" and "person" in kinds and not kinds & {"kin", "close"}:
            choice = "the"
    numbers = DETERMINERS[choice].number
    if not noun.plural:
        return choice if numbers != "p" and choice != "a" else "", False
    plural = draw.chance(0.2) if request.plural is None else request.plural
    if choice == "" or numbers == "p":
        plural = True
    elif numbers == "s" and plural:
        return ("", True) if request.plural else (choice, False)
    return choice, plural


def _determiner(draw: Draw, choice: str, gender: Gender, request: Request, *, countable: bool) -> Phrase:
    entry, case = DETERMINERS[choice], request.case
    if choice == "":
        return Phrase()
    if choice == "number":
        draw.note("numeral")
        value = draw.pick(range(2, 13)) if draw.chance(0.92) else draw.pick(range(13, 100))
        return link(german.number(value), english.number(value))
    if choice == "my":
        draw.note("possessive")
        owner = request.owner
        if owner is None or owner.english == DUMMY.english or draw.chance(0.4):
            owner = any_speaker(draw)
        return link(german.determiner(owner.german.possessive, case, gender), owner.english.possessive)
    form = german.determiner(entry.german, case, gender)
    if choice == "no" and request.negation:
        draw.note("kein")
        bond = Bond()
        return Phrase(words(form, bond, request.negation), words("a" if countable else "any", bond))
    return link(form, entry.plural if gender == "p" else entry.singular)


def _adjectives(draw: Draw, noun: Noun, choice: str, case: Case, gender: Gender) -> Phrase:
    """None, one or two adjectives, in agreement."""
    options = adjectives_for(noun.kinds)
    if not options or not draw.chance(0.28):
        return Phrase()
    draw.note("adjective")
    declension = DETERMINERS[choice].declension
    if choice in {"my", "no"} and gender == "p":
        declension = "weak"
    first, second = draw.pick(options), draw.pick(options)
    before, stem, said = _degree(draw, first, choice)
    phrase = before + link(german.adjective(stem, declension, case, gender), said)
    if said != first.english or before.de or first.german in _SIZES or second.german not in _SIZES:
        return phrase
    stem = german.attributive(second.german)
    return link(german.adjective(stem, declension, case, gender), second.english) + phrase


def _degree(draw: Draw, adjective: Adjective, choice: str) -> tuple[Phrase, str, str]:
    """An adverb or nothing, the German stem and the English adjective, perhaps compared."""
    plain = german.attributive(adjective.german)
    if choice == "a" and adjective.gradable and draw.chance(0.15):
        return link(*draw.pick(_ADVERBS)), plain, adjective.english
    if not adjective.gradable or choice not in {"a", "the", "my"} or not draw.chance(0.08):
        return Phrase(), plain, adjective.english
    draw.note("comparison")
    more, most = english.degrees(adjective.english)
    if choice == "a":
        return Phrase(), german.comparative(adjective.german, adjective.comparative), more
    return Phrase(), german.superlative(adjective.german, adjective.superlative), most
