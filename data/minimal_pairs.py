"""Minimal pairs: two sentences that differ in one word, which alone decides a word of the translation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from data.bitext import tokenize
from data.errors import DataError
from data.streams import read_lines

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class MinimalPair:
    """Two source sentences of the same length that differ in one word, the cause.

    Attributes:
        phenomenon: what it decides, such as `case article`.
        forms: the target words between which it decides; empty where any will do.
        translated: the source word (from 0) that such a form translates, if it is another than the cause.
    """

    phenomenon: str
    first: tuple[str, ...]
    second: tuple[str, ...]
    forms: frozenset[str] = frozenset()
    translated: int | None = None

    @property
    def cause(self) -> int:
        """The word, from 0, in which the sentences differ.

        Raises:
            DataError: they differ in none or several.
        """
        found = [n for n, (a, b) in enumerate(zip(self.first, self.second, strict=False)) if a != b]
        if len(self.first) != len(self.second) or len(found) != 1:
            raise DataError(
                f"a minimal pair differs in exactly one word, unlike {' '.join(self.first)!r} and "
                f"{' '.join(self.second)!r}"
            )
        return found[0]


def read_minimal_pairs(path: str) -> Iterator[MinimalPair]:
    """Columns separated by tabs: phenomenon, both sentences, and where known the forms, and the word translated.

    Raises:
        DataError: fewer columns, sentences that do not differ in exactly one word, or a word that is not there.
    """
    for number, line in read_lines(path):
        phenomenon, *rest = line.split("\t")
        if not 2 <= len(rest) <= 4:
            raise DataError("expected phenomenon, sentence, other sentence, forms, word translated", path, number)
        first, second, forms, translated = (*rest, "", "")[:4]
        word = int(translated) if translated.isascii() and translated.isdigit() else None
        pair = MinimalPair(phenomenon, tokenize(first), tokenize(second), frozenset(tokenize(forms)), word)
        try:
            _ = pair.cause
        except DataError as error:
            raise DataError(str(error), path, number) from None
        if translated and (word is None or word >= len(pair.first)):
            raise DataError(
                f"the word translated is a number below {len(pair.first)}, not {translated!r}", path, number
            )
        yield pair
