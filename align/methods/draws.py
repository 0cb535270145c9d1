"""Words to stand where a source word was: drawn at random by their frequency, or near to it in the model's eyes."""

from __future__ import annotations

from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import torch

from align.methods.erasure import Substitute, word_spans
from align.models.inside import word_counts
from align.models.subwords import NO_WORD
from data.bitext import Pair, tokenize
from data.errors import DataError, ModelError
from data.streams import read_lines

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from align.models.base import Encoded, TranslationModel

TRIES = 1000  # draws until a word is short enough
CANDIDATES = 5000  # the most frequent words, among which neighbours are looked for


class WordDrawer:
    """Draws source words by frequency, as pieces of a model.

    Args:
        words: words and their counts, or a file of them (`read_word_counts`); where empty, the model's own dictionary
            is the list.
    """

    def __init__(self, model: TranslationModel, words: str | Mapping[str, float] = "") -> None:
        counts = word_list(model, words)
        self.model, self.words = model, list(counts)
        self.below = np.cumsum(list(counts.values()), dtype=np.float64)
        self.known: dict[int, tuple[int, ...]] = {}

    def __call__(self, generator: np.random.Generator, replaced: Sequence[int]) -> tuple[int, ...]:
        """The pieces of a `substitute`."""
        return self.substitute(generator, replaced).pieces

    def substitute(self, generator: np.random.Generator, replaced: Sequence[int]) -> Substitute:
        """Another word than that of the pieces `replaced`, of no more pieces than it has.

        Raises:
            ModelError: the list has hardly any such word.
        """
        for _ in range(TRIES):
            number = int(np.searchsorted(self.below, generator.random() * self.below[-1], side="right"))
            pieces = self._pieces(number)
            if 0 < len(pieces) <= len(replaced) and pieces != tuple(replaced):
                return Substitute(self.words[number], pieces)
        raise ModelError(
            f"{TRIES} draws from the word list gave no word of {len(replaced)} or fewer pieces of {self.model.name}; "
            "give a list of frequent words by words=FILE"
        )

    def _pieces(self, number: int) -> tuple[int, ...]:
        if number not in self.known:
            encoded = _alone(self.model, self.words[number])
            pieces = zip(encoded.source, encoded.source_word_of, strict=True)
            self.known[number] = tuple(piece for piece, word_of in pieces if word_of != NO_WORD)
        return self.known[number]


class Neighbours:
    """The words whose embeddings lie closest to a word's own, by cosine, among frequent words of one piece.

    Args:
        words: as for `WordDrawer`.
    """

    def __init__(self, model: TranslationModel, words: str | Mapping[str, float] = "") -> None:
        counts = word_list(model, words)
        frequent = sorted(counts, key=lambda word: (-counts[word], word))
        encoded = [(word, _alone(model, word)) for word in frequent[:CANDIDATES]]
        single = [(word, pair) for word, pair in encoded if sum(n != NO_WORD for n in pair.source_word_of) == 1]
        if len(single) < 2:
            raise ModelError(f"the word list has no two words of one piece of {model.name}; give a longer one")
        self.model, self.words = model, [word for word, _ in single]
        batch = model.batch([pair for _, pair in single])
        here = batch.source_word_of != NO_WORD
        self.pieces = batch.source[here].tolist()
        self.vectors = torch.nn.functional.normalize(model.embed(batch)[here], dim=-1)  # [N, D]

    def nearest(self, pair: Encoded, rank: int = 0) -> dict[int, Substitute]:
        """For each source word of a pair another word, the nearest (`rank` 0) or one further away."""
        batch = self.model.batch([pair])
        vectors = self.model.embed(batch)[0, batch.source_mask[0]]  # [S, D], padding on either side left out
        found = {}
        for word, (start, end) in word_spans(pair).items():
            close = self.vectors @ vectors[start:end].mean(0)
            own = pair.source_words[word].casefold()
            order = (n for n in close.argsort(descending=True).tolist() if self.words[n].casefold() != own)
            number = next(islice(order, rank, None))
            found[word] = Substitute(self.words[number], (self.pieces[number],))
        return found


def _alone(model: TranslationModel, word: str) -> Encoded:
    return model.encode_pair(Pair(0, (word,), (word,)))


def word_list(model: TranslationModel, words: str | Mapping[str, float]) -> Mapping[str, float]:
    """The words and counts that `words` names: as they are, from a file, or where empty the model's own.

    Raises:
        DataError: see `read_word_counts`.
        ModelError: nothing is named and the model has none.
    """
    if isinstance(words, str):
        return read_word_counts(words) if words else word_counts(model)
    return words


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
