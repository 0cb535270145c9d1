"""German word forms: articles and adjectives in agreement, nouns in their cases, verbs in their tenses."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal, TypeAlias

from data.demo.lexicon import table

if TYPE_CHECKING:
    from data.demo.lexicon import Case, Gender, Noun

Declension: TypeAlias = Literal["strong", "mixed", "weak"]
Tense: TypeAlias = Literal["present", "past"]

# Rows: case; columns: masculine, feminine, neuter, plural.
_ARTICLE = {"nom": "der die das die", "acc": "den die das die", "dat": "dem der dem den", "gen": "des der des der"}
_DIES = {"nom": "er e es e", "acc": "en e es e", "dat": "em er em en", "gen": "es er es er"}
_EIN = {"nom": "- e - e", "acc": "en e - e", "dat": "em er em en", "gen": "es er es er"}
_ADJECTIVE: dict[str, dict[str, str]] = {
    "strong": {"nom": "er e es e", "acc": "en e es e", "dat": "em er em en", "gen": "en er en er"},
    "mixed": {"nom": "er e es en", "acc": "en e es en", "dat": "en en en en", "gen": "en en en en"},
    "weak": {"nom": "e e e en", "acc": "en e e en", "dat": "en en en en", "gen": "en en en en"},
}
CONTRACTIONS = {
    ("an", "dem"): "am",
    ("an", "das"): "ans",
    ("bei", "dem"): "beim",
    ("in", "dem"): "im",
    ("in", "das"): "ins",
    ("von", "dem"): "vom",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
}
_NUMBERS = "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf".split()
_TENS = "- - zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig".split()


@dataclass(frozen=True)
class Pronoun:
    """A person of German grammar: its pronouns, and the form of the verb it takes."""

    nom: str
    acc: str
    dat: str
    possessive: str
    verb: Literal["ich", "du", "er", "wir"]

    def case(self, case: Case) -> str:
        return {"nom": self.nom, "acc": self.acc, "dat": self.dat}[case]

    def reflexive(self, case: Case) -> str:
        return "sich" if self.possessive in {"sein", "ihr", "Ihr"} else self.case(case)


PRONOUNS = {
    "ich": Pronoun("ich", "mich", "mir", "mein", "ich"),
    "du": Pronoun("du", "dich", "dir", "dein", "du"),
    "er": Pronoun("er", "ihn", "ihm", "sein", "er"),
    "sie": Pronoun("sie", "sie", "ihr", "ihr", "er"),
    "es": Pronoun("es", "es", "ihm", "sein", "er"),
    "wir": Pronoun("wir", "uns", "uns", "unser", "wir"),
    "Sie": Pronoun("Sie", "Sie", "Ihnen", "Ihr", "wir"),
    "sie alle": Pronoun("sie", "sie", "ihnen", "ihr", "wir"),
}


def pronominal(start: str, preposition: str) -> str:
    """da or wo with a preposition: davon, darauf, worauf."""
    return start + "r" * (preposition[0] in "aeiouäöü") + preposition


def _cell(rows: dict[str, str], case: Case, gender: Gender) -> str:
    return rows[case].split()["mfnp".index(gender)].strip("-")


def article(case: Case, gender: Gender) -> str:
    """The definite article, which is also the relative pronoun (but for `denen`)."""
    return _cell(_ARTICLE, case, gender)


def determiner(stem: str, case: Case, gender: Gender) -> str:
    """`stem` in agreement: ein, kein and possessives take the endings of ein, others those of dieser."""
    if stem == "der":
        return article(case, gender)
    return stem + _cell(_EIN if like_ein(stem) else _DIES, case, gender)


def like_ein(stem: str) -> bool:
    return stem in {"ein", "kein"} or stem in {pronoun.possessive for pronoun in PRONOUNS.values()}


def attributive(adjective: str) -> str:
    """The stem that takes endings: teuer -> teur, dunkel -> dunkl, müde -> müd, hoch -> hoh."""
    if adjective == "hoch":
        return "hoh"
    stem = adjective.removesuffix("e")
    return re.sub(r"(?<=[uk])e(?=[lr]$)", "", stem) if stem in {"teuer", "dunkel"} else stem


def adjective(stem: str, declension: Declension, case: Case, gender: Gender) -> str:
    return stem + _cell(_ADJECTIVE[declension], case, gender)


def comparative(adjective: str, irregular: str) -> str:
    return irregular or attributive(adjective) + "er"


def superlative(adjective: str, irregular: str) -> str:
    stem = adjective.removesuffix("e")
    return irregular or stem + ("est" if re.search(r"([dtsßz]|sch|[ae]u)$", stem) else "st")


def noun(entry: Noun, case: Case, plural: bool) -> str:
    """The noun in a case: weak nouns take -n, strong masculine and neuter ones -s or -es, dative plurals -n."""
    if plural:
        needs_n = case == "dat" and not re.search(r"[ns]$", entry.plural)
        return entry.plural + "n" * needs_n
    if entry.weak and case != "nom":
        if entry.german == "Name":
            return "Namens" if case == "gen" else "Namen"
        return entry.german + ("n" if re.search(r"[er]$", entry.german) and entry.german != "Bär" else "en")
    if case == "gen" and entry.gender in "mn":
        return entry.german + genitive_ending(entry.german)
    return entry.german


def genitive_ending(german: str) -> str:
    if german.endswith(("nis", "Bus", "bus")):
        return "ses"
    last = re.split(r"[aeiouäöü]+", german.lower())
    short = len(last) == 2 and last[-1] not in {"", "h", "r"}
    return "es" if short or re.search(r"[sßzx]$", german) else "s"


def number(value: int) -> str:
    """A numeral up to 99 that stands before a noun in the plural."""
    if value <= 12:
        return _NUMBERS[value]
    tens, ones = divmod(value, 10)
    if tens == 1:
        return {16: "sechzehn", 17: "siebzehn"}.get(value, _NUMBERS[ones] + "zehn")
    return (_NUMBERS[ones] + "und" if ones else "") + _TENS[tens]


@cache
def _irregular() -> dict[str, dict[str, str]]:
    return {row["infinitive"]: row for row in table("german_verbs")}


def _stem(infinitive: str) -> tuple[str, str]:
    """The stem, and the e that it needs before -t and -st."""
    stem = infinitive.removesuffix("n").removesuffix("e")
    return stem, "e" if re.search(r"([td]|[^aeiouäöürlhmn][nm])$", stem) else ""


def finite(infinitive: str, tense: Tense, pronoun: Pronoun) -> str:
    """The verb in agreement with its subject; `würden` and `möchten` are verbs of their own with a present only."""
    person = pronoun.verb
    row = _irregular().get(infinitive, {})
    stem, e = _stem(infinitive)
    if tense == "present":
        return row.get(person, "") or _present(infinitive, person)
    past = row.get("past") or f"{stem}{e}te"
    if person in {"ich", "er"}:
        return past
    if person == "wir":
        return past + ("n" if past.endswith("e") else "en")
    return past + ("est" if re.search(r"[td]$", past) else "t" if re.search(r"[sß]$", past) else "st")


def _present(infinitive: str, person: str) -> str:
    stem, e = _stem(infinitive)
    if infinitive in {"würden", "möchten"}:
        return {"ich": stem + "e", "du": stem + "est", "er": stem + "e", "wir": infinitive}[person]
    if person == "wir":
        return "sind" if infinitive == "sein" else infinitive
    if person == "du":
        return stem + e + ("t" if re.search(r"[sßz]$", stem) else "st")
    return stem + "e" if person == "ich" else stem + e + "t"


def participle(infinitive: str) -> str:
    """The past participle without separable particle; -ieren and unstressed prefixes go without ge-."""
    row = _irregular().get(infinitive)
    if row:
        return row["participle"]
    stem, e = _stem(infinitive)
    bare = re.match(r"(be(?!ll)|ver|er(?=[kzi])|ge(?=h))", infinitive) or infinitive.endswith("ieren")
    return ("" if bare else "ge") + stem + e + "t"
