"""Words drawn at random by their frequency, to stand where a source word was."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from align.models.inside import word_counts
from align.models.subwords import NO_WORD
from data.bitext import Pair, tokenize
from data.errors import DataError, ModelError
from data.streams import read_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from align.models.base import TranslationModel

TRIES = 1000  # draws until a word is short enough


class WordDrawer:
    """Draws source words by frequency, as pieces of a model.

    Args:
        words: a file of words and counts (`read_word_counts`); where empty, the model's own dictionary is the list.
    """

    def __init__(self, model: TranslationModel, words: str = "") -> None:
        counts = read_word_counts(words) if words else word_counts(model)
        self.model, self.words = model, list(counts)
        self.below = np.cumsum(list(counts.values()), dtype=np.float64)
        self.known: dict[int, tuple[int, ...]] = {}

    def __call__(self, generator: np.random.Generator, replaced: Sequence[int]) -> tuple[int, ...]:
        """Another word than that of the pieces `replaced`, of no more pieces than it has.

        Raises:
            ModelError: the list has hardly any such word.
        """
        for _ in range(TRIES):
            number = int(np.searchsorted(self.below, generator.random() * self.below[-1], side="right"))
            pieces = self._pieces(number)
            if 0 < len(pieces) <= len(replaced) and pieces != tuple(replaced):
                return pieces
        raise ModelError(
            f"{TRIES} draws from the word list gave no word of {len(replaced)} or fewer pieces of {self.model.name}; "
            "give a list of frequent words by words=FILE"
        )

    def _pieces(self, number: int) -> tuple[int, ...]:
        if number not in self.known:
            word = self.words[number]
            encoded = self.model.encode_pair(Pair(0, (word,), (word,)))
            pieces = zip(encoded.source, encoded.source_word_of, strict=True)
            self.known[number] = tuple(piece for piece, word_of in pieces if word_of != NO_WORD)
        return self.known[number]


@lru_cache(maxsize=4)
def read_word_counts(path: str) -> dict[str, float]:
    """A frequency list: a word and its count on each line, or the word alone for a count of 1.

    Raises:
        DataError: a line of another form, a count that is not positive, or no word at all.
    """
    counts: dict[str, float] = {}
    for number, line in read_lines(path):
        word, *rest = tokenize(line) or ("",)
        if not word or len(rest) > 1 or (rest and not (rest[0].isascii() and rest[0].isdigit() and int(rest[0]))):
            raise DataError("expected a word and its count, as in `house 12`", path, number)
        counts[word] = counts.get(word, 0) + int(rest[0] if rest else 1)
    if not counts:
        raise DataError("holds no words", path)
    return counts
