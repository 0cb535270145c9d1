"""An n-gram model of the source language, read from an ARPA file: how likely is a corrupted sentence as text?

ARPA is what KenLM, SRILM and IRSTLM write; probabilities back off as in Katz 1987.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING

from data.errors import DataError
from data.streams import read_lines

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

START, END, UNKNOWN = "<s>", "</s>", "<unk>"
_BLANKS = re.compile(r"[ \t]+")  # other white space can be part of a word
_SECTION = re.compile(r"\\(\d+)-grams:")


@dataclass(frozen=True)
class NGrams:
    """`entries` give each n-gram's log10 probability and the log10 weight of backing off from it."""

    order: int
    entries: Mapping[tuple[str, ...], tuple[float, float]]

    def log_prob(self, words: Sequence[str]) -> float:
        """log p of a sentence for each of its words and its end, in nats."""
        text = [START, *(word if (word,) in self.entries else UNKNOWN for word in words), END]
        total = sum(self._log10(tuple(text[max(0, n - self.order + 1) : n + 1])) for n in range(1, len(text)))
        return total * log(10) / (len(text) - 1)

    def _log10(self, ngram: tuple[str, ...]) -> float:
        """log10 of the probability of the last word after those before it. Every single word has an entry."""
        found = self.entries.get(ngram)
        if found is not None:
            return found[0]
        _, weight = self.entries.get(ngram[:-1], (0.0, 0.0))
        return weight + self._log10(ngram[1:])


def read_arpa(path: str) -> NGrams:
    """Read a model, plain or compressed.

    Raises:
        DataError: the file cannot be read, is not in ARPA format, or lacks `<unk>` or `</s>`.
    """
    order, entries = 0, dict[tuple[str, ...], tuple[float, float]]()
    for number, line in read_lines(path):
        section = _SECTION.fullmatch(line.strip())
        if section:
            order = int(section[1])
        elif order and line.strip(" \t") and not line.startswith("\\end\\"):
            log10, *rest = _BLANKS.split(line.strip(" \t"))
            try:
                entries[tuple(rest[:order])] = float(log10), float(*rest[order:])  # float() is 0: no weight is none
            except (ValueError, TypeError):
                rest = []
            if len(rest) < order:
                raise DataError("no n-gram of an ARPA file: log10 probability, words, weight", path, number)
    for word in (UNKNOWN, END):
        if (word,) not in entries:
            raise DataError(f"no ARPA file, or one without {word}: a model of open vocabulary is needed", path)
    return NGrams(order, entries)
