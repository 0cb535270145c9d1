"""Words as running text, which subword models were trained on, and the word of each of its characters."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from align.models.subwords import NO_WORD, character_owners
from data.bitext import tokenize
from data.errors import unknown_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

Span = tuple[int, int]

UNSPACED_SIDES = ("auto", "source", "target", "both", "none")

# Languages written without spaces, by their codes of two and three letters.
UNSPACED = {"zh", "ja", "th", "lo", "km", "my", "bo", "dz"}
UNSPACED |= {"zho", "cmn", "yue", "wuu", "lzh", "jpn", "tha", "lao", "khm", "mya", "bod", "dzo"}

# Languages whose rules sacremoses knows, by their codes of three letters.
_TWO_LETTERS = {"eng": "en", "fra": "fr", "ita": "it", "gle": "ga", "ces": "cs", "fin": "fi", "kor": "ko"}

# What tokenisers write for characters: the Penn Treebank's brackets and quotes, Moses' escapes and split dashes.
_TREEBANK = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}", "``": '"', "''": '"'}
_ESCAPES = {"&amp;": "&", "&lt;": "<", "&gt;": ">", "&apos;": "'", "&quot;": '"'}
_ESCAPES |= {"&#124;": "|", "&#91;": "[", "&#93;": "]"}
_ESCAPE = re.compile("|".join(_ESCAPES))
_SPLIT_DASH = "@-@"


@dataclass(frozen=True)
class Text:
    """Running text, and for each of its characters the index of its word, -1 for the characters between words."""

    characters: str
    word_of: tuple[int, ...]

    def runs(self) -> list[tuple[int, int, bool]]:
        """Spans that begin with a word, and whether the word follows on another with nothing between."""
        starts = [i for i, word in enumerate(self.word_of) if i and word not in (NO_WORD, self.word_of[i - 1])]
        spans = zip([0, *starts], [*starts, len(self.characters)], strict=True)
        return [(begin, end, begin > 0 and self.word_of[begin - 1] != NO_WORD) for begin, end in spans]

    def after(self, prompt: str) -> Text:
        """The same text after a `prompt`, which belongs to no word."""
        return Text(prompt + self.characters, (NO_WORD,) * len(prompt) + self.word_of)


def is_unspaced(side: str, language: str | None, unspaced: str) -> bool:
    """Whether `side` (`source`, `target`) is written without spaces, by what the user said or, for `auto`, by language.

    Raises:
        UsageError: `unspaced` is none of `UNSPACED_SIDES`.
    """
    if unspaced not in UNSPACED_SIDES:
        raise unknown_name("value of unspaced", unspaced, UNSPACED_SIDES)
    return unspaced in (side, "both") or (unspaced == "auto" and base_language(language) in UNSPACED)


def text_writer(language: str | None, unspaced: bool) -> Callable[[Sequence[str]], Text]:
    """How words of `language` become text: `unspaced`, or spaced as people write (`detokenized`)."""
    code = base_language(language)
    if unspaced:
        return joined
    if code in UNSPACED:
        return spaced  # told so by the user, where detokenising would join the words again
    return lambda words: detokenized(words, code)


def base_language(code: str | None) -> str:
    """The language of a code such as `pt_BR`, `zho_Hans` or `cmn-Hant`, in two letters where sacremoses has rules."""
    language = re.split("[_-]", (code or "").lower(), maxsplit=1)[0]
    return _TWO_LETTERS.get(language, language)


def plain(words: Sequence[str]) -> Text:
    """Words as they are with a space between, for models trained on tokenised text."""
    return Text(" ".join(words), tuple(character_owners(words, 1)))


def spaced(words: Sequence[str]) -> Text:
    """Words with a space between."""
    restored = [restore(word) for word in words]
    return Text(" ".join(restored), tuple(character_owners(restored, 1)))


def joined(words: Sequence[str]) -> Text:
    """Words without anything between, save a space between two that end and begin in an ASCII letter or digit."""
    text, word_of = "", list[int]()
    for index, word in enumerate(map(restore, words)):
        if _is_latin(text[-1:]) and _is_latin(word[:1]):
            text, word_of = text + " ", [*word_of, NO_WORD]
        text += word
        word_of += [index] * len(word)
    return Text(text, tuple(word_of))


def words_between(text: str, spans: Iterable[Span]) -> tuple[str, ...]:
    """Words of unspaced `text`: its pieces, by their spans, but Latin words and numbers whole."""
    starts = sorted({begin for begin, end in spans if begin < end} - {0})
    starts = [i for i in starts if not (_is_latin(text[i - 1]) and _is_latin(text[i]))]
    parts = (text[begin:end] for begin, end in zip([0, *starts], [*starts, len(text)], strict=True))
    return tuple(word for part in parts for word in tokenize(part))


def _is_latin(character: str) -> bool:
    return character.isascii() and character.isalnum()


def detokenized(words: Sequence[str], language: str) -> Text:
    """Words with the spaces that people write: none before a comma, within brackets, before English `'s`.

    Moses' rules, by sacremoses, which change nothing but spaces; should they change more, there is a space between
    all words.
    """
    restored = [restore(word) for word in words]
    # The detokeniser itself joins what stands around a split dash.
    tokens = [word if word == _SPLIT_DASH else plain for word, plain in zip(words, restored, strict=True)]
    text = _detokenizer(language).detokenize(tokens, unescape=False)
    owners = [(c, index) for index, word in enumerate(restored) for c in word if not c.isspace()]
    if [c for c in text if not c.isspace()] != [c for c, _ in owners]:
        return spaced(words)
    rest = iter(owners)
    return Text(text, tuple(NO_WORD if c.isspace() else next(rest)[1] for c in text))


@lru_cache
def _detokenizer(language: str) -> Any:
    from sacremoses import MosesDetokenizer

    return MosesDetokenizer(lang=language)


def restore(word: str) -> str:
    """The characters that a tokeniser's `-LRB-`, ` `` `, `&apos;` or `@-@` stands for."""
    if word == _SPLIT_DASH:
        return "-"
    return _TREEBANK.get(word) or _ESCAPE.sub(lambda found: _ESCAPES[found.group()], word)


def unescaped(token: str) -> tuple[str, list[int]]:
    """A token of Moses without escapes and dash marks, and for each of its characters the index in that.

    `&apos;s` gives `'s` and [0, 0, 0, 0, 0, 0, 1].
    """
    if token == _SPLIT_DASH:
        return "-", [0] * len(token)
    plain, index = "", list[int]()
    for found in re.finditer(f"{_ESCAPE.pattern}|.", token, re.DOTALL):
        index += [len(plain)] * len(found.group())
        plain += _ESCAPES.get(found.group(), found.group())
    return plain, index


def matching_spans(text: str, changed: str) -> list[Span]:
    """For each character of `changed`, the span of `text` that it came from.

    `changed` is `text` without its spaces, and with some other characters replaced, by more or by fewer, which share
    what they replace. A character that comes from nowhere has an empty span where it stands.
    """
    kept = [position for position, character in enumerate(text) if not character.isspace()]
    plain = "".join(text[position] for position in kept)
    if plain == changed:
        return [(position, position + 1) for position in kept]
    kept.append(len(text))
    spans: list[Span] = []
    for _, start, end, new_start, new_end in SequenceMatcher(None, plain, changed, autojunk=False).get_opcodes():
        old, new = end - start, new_end - new_start
        for k in range(new):
            first, last = start + k * old // new, start - (-(k + 1) * old // new)
            spans.append((kept[first], kept[last - 1] + 1 if last > first else kept[first]))
    return spans
