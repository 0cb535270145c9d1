"""English word forms: plurals, verbs in their tenses, degrees of adjectives."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal, TypeAlias

from data.demo.lexicon import table

if TYPE_CHECKING:
    from data.demo.german import Tense

Number: TypeAlias = Literal["I", "he", "they"]  # the persons that English verbs tell apart

_PLURALS = {
    "child": "children",
    "man": "men",
    "woman": "women",
    "policeman": "policemen",
    "mouse": "mice",
    "sheep": "sheep",
    "fish": "fish",
    "knife": "knives",
    "shelf": "shelves",
    "thief": "thieves",
    "potato": "potatoes",
    "tomato": "tomatoes",
}
_DEGREES = {"good": ("better", "best"), "bad": ("worse", "worst"), "clever": ("cleverer", "cleverest")}
_BE = {"present": {"I": "am", "he": "is", "they": "are"}, "past": {"I": "was", "he": "was", "they": "were"}}
_DOUBLING = frozenset({"begin", "forget"})  # final consonant doubled though the word is long
MODALS = frozenset({"will", "would", "can", "could", "must", "should", "may"})
_NUMBERS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen".split()
)
_TENS = "- - twenty thirty forty fifty sixty seventy eighty ninety".split()


@dataclass(frozen=True)
class Pronoun:
    """A person of English grammar: its pronouns, and the form of the verb it takes."""

    subject: str
    object: str
    possessive: str
    reflexive: str
    verb: Number


PRONOUNS = {
    "I": Pronoun("I", "me", "my", "myself", "I"),
    "you": Pronoun("you", "you", "your", "yourself", "they"),
    "he": Pronoun("he", "him", "his", "himself", "he"),
    "she": Pronoun("she", "her", "her", "herself", "he"),
    "it": Pronoun("it", "it", "its", "itself", "he"),
    "we": Pronoun("we", "us", "our", "ourselves", "they"),
    "they": Pronoun("they", "them", "their", "themselves", "they"),
}


def plural(noun: str) -> str:
    """The plural; of several words the last one changes."""
    *before, last = noun.split(" ")
    if last in _PLURALS:
        last = _PLURALS[last]
    elif re.search(r"[^aeiou]y$", last):
        last = last[:-1] + "ies"
    else:
        last += "es" if re.search(r"(s|x|z|ch|sh)$", last) else "s"
    return " ".join([*before, last])


def article(following: str) -> str:
    """The indefinite article before a word."""
    return "an" if re.match(r"[aeio]|u(?!ni|se)|hon", following, re.IGNORECASE) else "a"


@cache
def _irregular() -> dict[str, tuple[str, str]]:
    return {row["base"]: (row["past"], row["participle"]) for row in table("english_verbs")}


def _is_short(word: str) -> bool:
    """One syllable ending in vowel and consonant: the consonant doubles before -ing, -ed, -er."""
    return bool(re.fullmatch(r"[^aeiou]*[aeiou][^aeiouwxy]", word)) or word in _DOUBLING


def _regular(base: str, ending: str) -> str:
    if re.search(r"[^aeiou]y$", base) and ending != "ing":
        return base[:-1] + "i" + ending
    if base.endswith("ie") and ending == "ing":
        return base[:-2] + "ying"
    if base.endswith("e") and not base.endswith("ee"):
        return base[:-1] + ending
    return base + base[-1] * _is_short(base) + ending


def finite(base: str, tense: Tense, number: Number) -> str:
    if base in MODALS:
        return base
    if base == "be":
        return _BE[tense][number]
    if base == "do" and tense == "past":
        return "did"
    if tense == "past":
        return _irregular()[base][0] if base in _irregular() else _regular(base, "ed")
    if number != "he":
        return base
    if base == "have":
        return "has"
    if re.search(r"[^aeiou]y$", base):
        return base[:-1] + "ies"
    return base + ("es" if re.search(r"(s|x|z|ch|sh|o)$", base) else "s")


def participle(base: str) -> str:
    if base == "be":
        return "been"
    return _irregular()[base][1] if base in _irregular() else _regular(base, "ed")


def progressive(base: str) -> str:
    return "being" if base == "be" else _regular(base, "ing")


def _syllables(adjective: str) -> int:
    return len(re.findall(r"[aeiouy]+", adjective.removesuffix("e")))


def degrees(adjective: str) -> tuple[str, str]:
    """Comparative and superlative: bigger biggest, happier happiest, more famous most famous."""
    if adjective in _DEGREES:
        return _DEGREES[adjective]
    if _syllables(adjective) > 1 and not adjective.endswith("y"):
        return f"more {adjective}", f"most {adjective}"
    return _regular(adjective, "er"), _regular(adjective, "est")


def number(value: int) -> str:
    if value < len(_NUMBERS):
        return _NUMBERS[value]
    tens, ones = divmod(value, 10)
    if tens == 1:
        return {18: "eighteen"}.get(value, _NUMBERS[ones] + "teen")
    return _TENS[tens] + (f"-{_NUMBERS[ones]}" if ones else "")
