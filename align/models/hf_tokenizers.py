"""Words to the ids of a Hugging Face model, and the cutters that only such models have.

transformers has no such spans for Marian, M2M-100 and FSMT, and its own rebuilding of other tokenizers loses parts of
them (version 5.24 leaves out the normalisation of mBART and the bytes of MADLAD). So the SentencePiece model is asked
itself where there is one, else the saved `tokenizer.json`; and Moses with BPE for FSMT.
"""

from __future__ import annotations

import json
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from align.models.cutters import Pieces, cut_words
from align.models.subwords import NO_WORD
from align.models.text import matching_spans, unescaped, words_between
from data.bitext import tokenize
from data.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from align.models.cutters import Cutter, WordCutter
    from align.models.text import Span, Text

WORD_END = "</w>"


class JsonCutter:
    """A `tokenizer.json`. Special tokens spelt out in the text are cut as any other text."""

    def __init__(self, file: Path) -> None:
        from tokenizers import Tokenizer

        try:
            self._tokenizer: Any = Tokenizer.from_file(str(file))
        except Exception as error:  # tokenizers raises bare Exception
            raise ModelError(f"{file} is not a tokenizer of Hugging Face: {error}") from error
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._tokenizer.encode_special_tokens = True

    def __call__(self, text: str) -> Pieces:
        found = self._tokenizer.encode(text, add_special_tokens=False)
        return Pieces(found.ids, found.tokens, found.offsets)

    def continued(self) -> JsonCutter:
        from tokenizers import Tokenizer

        other = copy(self)
        other._tokenizer = Tokenizer.from_str(json.dumps(_without_prefix(json.loads(self._tokenizer.to_str()))))
        other._tokenizer.encode_special_tokens = True
        return other


def _without_prefix(part: Any) -> Any:
    """A `tokenizer.json` that puts nothing before the text."""
    if isinstance(part, list):
        return [_without_prefix(each) for each in part]
    if not isinstance(part, dict):
        return part
    changes = {"prepend_scheme": "never", "add_prefix_space": False, "prepend": ""}
    return {key: changes.get(key, _without_prefix(value)) for key, value in part.items()}


class MosesBpeCutter:
    """Moses' normalisation and tokenisation, then BPE with `</w>` at the end of a word, as FSMT has them.

    Args:
        tokenizer: transformers' FSMTTokenizer.
        language: whose rules Moses follows.
        vocabulary: ids of the pieces of this side.
    """

    def __init__(self, tokenizer: Any, language: str, vocabulary: Mapping[str, int], unknown: int) -> None:
        self._tokenizer, self._language = tokenizer, language
        self._vocabulary, self._unknown = vocabulary, unknown

    def __call__(self, text: str) -> Pieces:
        lowered = text.lower() if self._tokenizer.do_lower_case else text
        normal = self._tokenizer.moses_pipeline(lowered, self._language)
        spelling: list[str] = []
        ranges: list[Span] = []  # of the characters of all tokens, without escapes
        plain = ""
        for token in self._tokenizer.moses_tokenize(normal, self._language):
            characters, index = unescaped(token)
            start = 0
            for piece in self._tokenizer.bpe(token).split(" "):
                end = start + len(piece.removesuffix(WORD_END))
                ranges.append((len(plain) + index[start], len(plain) + index[end - 1] + 1))
                spelling.append(piece)
                start = end
            plain += characters
        spans = matching_spans(text, plain)
        ids = [self._vocabulary.get(piece, self._unknown) for piece in spelling]
        return Pieces(ids, spelling, [(spans[begin][0], spans[end - 1][1]) for begin, end in ranges])

    def continued(self) -> MosesBpeCutter:
        return self  # a word begins without a mark


@dataclass(frozen=True)
class Side:
    """One side of a pair: words to ids between what the model wants `before` and `after` them.

    `prompt` is text that is cut together with the words, such as `translate English to German: `; `unknown` is the id
    of unknown pieces. Where `ends` is given, it ends pieces at the words of `unspaced` text.
    """

    write: Callable[[Sequence[str]], Text]
    cut: Cutter
    unknown: int
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    prompt: str = ""
    unspaced: bool = False
    ends: WordCutter | None = None

    def encode(self, words: Sequence[str]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Ids of the pieces with everything around, and the word of each (-1 for what is around)."""
        text = self.write(words).after(self.prompt)
        pieces, word_of = cut_words(text, self.cut, self.ends)
        no_words = (NO_WORD,) * len(self.before), (NO_WORD,) * len(self.after)
        return (*self.before, *pieces.ids, *self.after), (*no_words[0], *word_of, *no_words[1])

    def words(self, text: str) -> tuple[str, ...]:
        """Words of running text: what stands between spaces; in unspaced text, its pieces."""
        return words_between(text, self.cut(text).spans) if self.unspaced else tokenize(text)
