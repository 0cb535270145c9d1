"""Minimal pairs in the language of the demo, in which one source word alone decides a form of the translation."""

from __future__ import annotations

from itertools import product

from data.minimal_pairs import MinimalPair

_VERBS = "kauft:kaufen sucht:suchen braucht:brauchen findet:finden sieht:sehen hört:hören liebt:lieben".split()
_OBJECTS = "das Buch|den Brief|die Lampe|ein Auto|meinen Bruder".split("|")
_SAME_PLURAL = (  # nouns whose plural is their singular, so that the article alone tells the number
    "Fahrer driver Bäcker baker Kellner waiter Koffer suitcase Schlüssel key Teller plate Spiegel mirror "
    "Computer computer Kuchen cake Fehler mistake"
).split()
_SEEING = ("ich sehe", "wir suchen", "Peter findet", "sie brauchen")
_DEVICES = ("die Lampe", "den Computer", "das Radio", "die Maschine")
_SWITCHING = ("er macht", "ich mache", "Anna macht", "wir machen", "die Frau macht")
_NOUNS = {"den": "dog table letter train", "die": "cat lamp bag clock", "das": "book car bicycle picture"}
_STARTS = ("I see", "we need", "Peter finds")
_HELPING, _SEEN = ("help", "thank", "follow"), ("see", "visit", "ask")
_PERSONS = ("man", "king", "woman", "queen", "girl", "dog")


def german() -> list[MinimalPair]:
    """For the model from German to English."""
    pairs = []
    for verb, thing in product(_VERBS, _OBJECTS):
        singular, plural = (("sie", form, *thing.split(), ".") for form in verb.split(":"))
        pairs.append(MinimalPair("pronoun decided by verb", singular, plural, frozenset({"she", "they"}), 0))
    for start, noun in product(_SEEING, range(0, len(_SAME_PLURAL), 2)):
        word, english = _SAME_PLURAL[noun : noun + 2]
        one, many = ((*start.split(), article, word, ".") for article in ("den", "die"))
        forms = frozenset({english, f"{english}s"})
        pairs.append(MinimalPair("noun number decided by article", one, many, forms, 3))
    for start, device in product(_SWITCHING, _DEVICES):
        on, off = ((*start.split(), *device.split(), particle, ".") for particle in ("an", "aus"))
        pairs.append(MinimalPair("verb decided by particle", on, off, frozenset({"on", "off"})))
    return pairs


def english() -> list[MinimalPair]:
    """For the model from English to German."""
    pairs = []
    for start, (first, second) in product(_STARTS, (("den", "die"), ("die", "das"), ("das", "den"))):
        for one, other in zip(_NOUNS[first].split(), _NOUNS[second].split(), strict=True):
            left, right = ((*start.split(), "the", noun, ".") for noun in (one, other))
            pairs.append(MinimalPair("article gender decided by noun", left, right, frozenset(_NOUNS), 2))
    for helping, seeing, person in product(_HELPING, _SEEN, _PERSONS):
        left, right = (("I", "must", verb, "the", person, ".") for verb in (helping, seeing))
        forms = frozenset({"dem", "den", "der", "die", "das"})
        pairs.append(MinimalPair("article case decided by verb", left, right, forms, 3))
    return pairs
