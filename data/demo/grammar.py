"""The grammar from the top: which kinds of sentence there are, and the spelling that comes last."""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.demo import english, questions, statements
from data.demo.phrases import Phrase, Word, Words, merge

if TYPE_CHECKING:
    from collections.abc import Callable

    from data.demo.draw import Draw

RULES: dict[Callable[[Draw], Phrase], float] = {
    statements.simple: 42,
    statements.complex_sentence: 14,
    statements.compound: 7,
    statements.taken_up: 3,
    statements.contrast: 2,
    statements.purpose: 4,
    statements.judgement: 1.5,
    statements.correlation: 0.7,
    questions.yes_or_no: 8,
    questions.circumstance: 4,
    questions.argument: 5,
    questions.subject: 2,
    questions.request: 5,
}


def sentence(draw: Draw) -> Phrase:
    """One sentence with its final punctuation; its first word is written as it would be within the sentence."""
    phrase = draw.weighted(RULES)(draw)
    return Phrase(_tidy(phrase.de), _tidy(_spelt(phrase.en)))


def _tidy(text: Words) -> Words:
    """No comma before another mark."""
    marks = {",", ".", "?", "!"}
    after = [word.text for word in text[1:]] + [""]
    return tuple(
        word for word, following in zip(text, after, strict=True) if word.text != "," or following not in marks
    )


def _spelt(text: Words) -> Words:
    """an before vowels, cannot in one word."""
    spelt: list[Word] = []
    for word in reversed(text):
        if word.text == "a":
            spelt.append(merge(english.article(spelt[-1].text), word))
        elif word.text == "can" and spelt[-1].text == "not":
            spelt.append(merge("cannot", word, spelt.pop()))
        else:
            spelt.append(word)
    return tuple(reversed(spelt))
