"""The vocabulary: tables in `tables/`, read once, as typed entries."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Literal, TypeAlias

Case: TypeAlias = Literal["nom", "acc", "dat", "gen"]
Gender: TypeAlias = Literal["m", "f", "n", "p"]  # p: plural, where gender makes no difference
Kinds: TypeAlias = frozenset[str]


@cache
def table(name: str) -> tuple[dict[str, str], ...]:
    """The rows of `tables/NAME.tsv` by column; a dash stands for an empty cell."""
    text = files("data.demo").joinpath("tables", f"{name}.tsv").read_text("utf-8")
    rows = csv.DictReader(io.StringIO(text), delimiter="\t", strict=True)
    return tuple({column: "" if cell == "-" else cell for column, cell in row.items()} for row in rows)


@dataclass(frozen=True)
class Noun:
    """`kinds` are the classes that verbs and adjectives select by; the noun itself is one of them."""

    german: str
    english: str
    gender: Gender
    plural: str
    kinds: Kinds
    where: tuple[str, str] | None  # prepositions of rest: (an, at) of the station
    weak: bool = False  # takes -n in all cases but the nominative
    proper: bool = False


@dataclass(frozen=True)
class Adjective:
    german: str
    comparative: str
    superlative: str
    english: str
    kinds: Kinds

    @property
    def gradable(self) -> bool:
        return self.comparative != "none"


@dataclass(frozen=True)
class Adverb:
    german: str
    english: str
    when: Kinds


@dataclass(frozen=True)
class Argument:
    """What a verb asks for: `role` is a case, prep, a place, a clause (dass, ob, zu) or a complement such as adj."""

    role: str
    case: Case = "acc"
    german: str = ""  # preposition
    english: str = ""  # preposition
    optional: bool = False  # English may do without its preposition by putting this object first
    kinds: Kinds = frozenset()


@dataclass(frozen=True)
class Frame:
    subject: Kinds
    arguments: tuple[Argument, ...]


@dataclass(frozen=True)
class Verb:
    """A German and an English verb. `aspect`: act, once (no progressive), state (nor adverbs of manner) or weather."""

    german: str  # without separable particle
    particle: str
    auxiliary: str
    reflexive: Case | None  # of sich
    english: str  # the word that inflects
    rest: str  # further English words
    oneself: bool  # the English verb is reflexive as well
    aspect: str
    frames: tuple[Frame, ...]
    where: Kinds
    manner: Kinds


@dataclass(frozen=True)
class Idiom:
    """A fixed expression. Words in `sure` translate one another; if there are none, only the whole does."""

    german: str  # without the verb
    english: str  # without the verb
    sure: dict[str, str]


@dataclass(frozen=True)
class Use:
    """A verb in one of its frames, perhaps in an idiom."""

    verb: Verb
    frame: Frame
    idiom: Idiom | None = None

    @property
    def name(self) -> str:
        """The German infinitive."""
        return self.verb.particle + self.verb.german

    @property
    def clausal(self) -> bool:
        """Whether a clause is among the arguments."""
        return any(argument.role in {"dass", "ob", "zu"} for argument in self.frame.arguments)

    @property
    def impersonal(self) -> bool:
        """Whether the English subject is not the German one."""
        return any(argument.role in {"experiencer", "exists"} for argument in self.frame.arguments)

    @property
    def object_at(self) -> int | None:
        """The number of the direct object among the arguments; none if English puts a preposition before it."""
        found = [k for k, a in enumerate(self.frame.arguments) if a.role == "acc" and not a.english]
        return found[0] if found else None

    @property
    def passive(self) -> bool:
        """Whether both languages can make the object the subject."""
        dynamic = self.verb.aspect in {"act", "once"} and not self.verb.reflexive
        told = any(argument.role == "dat" and not argument.english for argument in self.frame.arguments)
        return dynamic and not (self.clausal or told) and self.object_at is not None


def _kinds(text: str) -> Kinds:
    return frozenset(text.replace(",", " ").split())


def _noun(row: dict[str, str]) -> Noun:
    gender, *marks = row["gender"].split()
    place = tuple(row["where"].split("/"))
    return Noun(
        row["german"],
        row["english"],
        gender,  # type: ignore[arg-type]
        row["plural"],
        _kinds(row["kinds"]) | {row["german"]},
        (place[0], place[1]) if len(place) == 2 else None,
        weak="weak" in marks,
        proper="proper" in marks,
    )


@cache
def nouns() -> tuple[Noun, ...]:
    return tuple(_noun(row) for row in table("nouns"))


@cache
def compounds() -> dict[str, tuple[Noun, ...]]:
    """Compound nouns by their head: `Tisch` -> (Holztisch, wooden table), ..."""
    heads = {noun.german: noun for noun in nouns()}
    built: dict[str, list[Noun]] = {}
    for row in table("compounds"):
        for head in row["heads"].split():
            noun = heads[head]
            built.setdefault(head, []).append(
                replace(
                    noun,
                    german=row["german"] + noun.german.lower(),
                    plural=row["german"] + noun.plural.lower() if noun.plural else "",
                    english=f"{row['english']} {noun.english}",
                )
            )
    return {head: tuple(found) for head, found in built.items()}


@cache
def nouns_of(kinds: Kinds) -> tuple[Noun, ...]:
    return tuple(noun for noun in nouns() if noun.kinds & kinds)


@cache
def adjectives_for(kinds: Kinds) -> tuple[Adjective, ...]:
    """Adjectives that can be said of a noun of these kinds."""
    return tuple(adjective for adjective in adjectives() if adjective.kinds & kinds)


@cache
def adjectives() -> tuple[Adjective, ...]:
    return tuple(
        Adjective(r["german"], r["comparative"], r["superlative"], r["english"], _kinds(r["kinds"]))
        for r in table("adjectives")
    )


@cache
def adverbs(role: str) -> tuple[Adverb, ...]:
    return tuple(Adverb(r["german"], r["english"], _kinds(r["when"])) for r in table("adverbs") if r["role"] == role)


def _argument(text: str) -> Argument:
    head, _, kinds = text.partition(":")
    german, _, english = head.partition("/")
    role, _, case = german.partition("+")
    optional = english.startswith("(")
    english = english.strip("(-)")
    if case:
        return Argument("prep", case, role, english, kinds=_kinds(kinds))  # type: ignore[arg-type]
    return Argument(role, "dat" if role == "dat" else "acc", "", english, optional, _kinds(kinds))


def _frame(text: str) -> Frame:
    subject, _, arguments = text.partition(">")
    return Frame(_kinds(subject), tuple(_argument(argument) for argument in arguments.split()))


def _verb(row: dict[str, str]) -> Verb:
    german = row["german"]
    particle, _, simple = german.removeprefix("sich ").rpartition("/")
    inflected, *rest = row["english"].split()
    return Verb(
        simple,
        particle,
        row["auxiliary"],
        "acc" if german.startswith("sich ") else None,
        inflected,
        " ".join(word for word in rest if word != "oneself"),
        "oneself" in rest,
        row["aspect"],
        tuple(_frame(frame) for frame in row["frames"].split(" ; ") if frame),
        _kinds(row["where"]),
        _kinds(row["manner"]),
    )


@cache
def verbs() -> tuple[Verb, ...]:
    return tuple(_verb(row) for row in table("verbs"))


@cache
def uses() -> tuple[Use, ...]:
    """Every verb in every frame, and the idioms; what is common in speech is there more than once."""
    plain = [Use(verb, frame) for verb in verbs() for frame in verb.frames for _ in range(_COMMON.get(verb.german, 2))]
    return (*plain, *map(_idiom, table("idioms")))


_COMMON = {"sein": 9, "haben": 5, "geben": 4, "gefallen": 7, "schmecken": 4, "fehlen": 4}


def _idiom(row: dict[str, str]) -> Use:
    *german, infinitive = row["german"].split()
    inflected, _, english = row["english"].partition(" ")
    sich = german[0] == "sich"
    bare = {"german": "sich " * sich + infinitive, "english": inflected, "frames": "", "where": "", "manner": ""}
    verb = _verb(row | bare)
    if sich:
        verb = replace(verb, reflexive="dat")  # the accusative is in the idiom
    pairs = (pair.partition("=") for pair in row["sure"].split())
    sure = {source: target for source, _, target in pairs}
    return Use(verb, Frame(_kinds(row["subject"]), ()), Idiom(" ".join(german[sich:]), english, sure))
