"""Source words taken out of a sentence or replaced, each with all its pieces: for methods and for their evaluation."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Protocol

import torch

from align.models.subwords import NO_WORD

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence, Set

    from torch import Tensor

    from align.models.base import Batch, Encoded, TranslationModel

PIECES = 2000  # n x (S + T) of n variants of a sentence that run together


def word_spans(pair: Encoded) -> dict[int, tuple[int, int]]:
    """Where the pieces of each source word stand: word to (first, last + 1), in order; words without pieces lack."""
    spans: dict[int, tuple[int, int]] = {}
    for column, word in enumerate(pair.source_word_of):
        if word != NO_WORD:
            spans[word] = (spans.get(word, (column,))[0], column + 1)
    return spans


def rows_of(batch: Batch, rows: Tensor) -> Batch:
    """The batch of the sentences `rows`, some of them several times."""
    tensors = {f.name: getattr(batch, f.name)[rows] for f in fields(batch) if f.name != "pairs"}
    return replace(batch, pairs=tuple(batch.pairs[row] for row in rows.tolist()), **tensors)


class Corruption(Protocol):
    """A way to take words out of a source sentence."""

    def inputs(self, pair: Encoded, removed: Sequence[Set[int]]) -> tuple[Batch, Tensor]:
        """One row for each set of words removed: the batch and its embeddings [n, S, D]."""

    def words(self, pair: Encoded, removed: Set[int]) -> tuple[str, ...] | None:
        """The source sentence that the model then reads; None where that is no text."""


@dataclass(frozen=True)
class Blanking:
    """Embeddings of removed words become a vector that stands for absence (`zero`, `unk` ...); positions stay."""

    model: TranslationModel
    baseline: str

    def inputs(self, pair: Encoded, removed: Sequence[Set[int]]) -> tuple[Batch, Tensor]:
        batch = self.model.batch([pair]).repeat(len(removed))
        gone = torch.tensor([[word in words for word in pair.source_word_of] for words in removed])
        absent = self.model.baseline(self.baseline)
        return batch, torch.where(gone[..., None].to(absent.device), absent, self.model.embed(batch))

    def words(self, pair: Encoded, removed: Set[int]) -> None:
        return None


@dataclass(frozen=True)
class Substitute:
    """What stands where a word was: a word and its pieces, or nothing."""

    word: str = ""
    pieces: tuple[int, ...] = ()


@dataclass(frozen=True)
class Rewriting:
    """Removed words give way to `substitutes`, later words move up or down.

    `substitutes` gives one for each word of a pair, the same whenever it is asked.
    """

    model: TranslationModel
    substitutes: Callable[[Encoded], Mapping[int, Substitute]]

    def inputs(self, pair: Encoded, removed: Sequence[Set[int]]) -> tuple[Batch, Tensor]:
        spans, others = word_spans(pair), self.substitutes(pair)
        variants = []
        for words in removed:
            variant = pair
            for word in sorted(words, reverse=True):  # from the right, so that spans to the left stay valid
                variant = variant.spliced(*spans[word], others[word].pieces)
            variants.append(variant)
        batch = self.model.batch(variants)
        return batch, self.model.embed(batch)

    def words(self, pair: Encoded, removed: Set[int]) -> tuple[str, ...]:
        others = self.substitutes(pair)
        kept = (others[n].word if n in removed else word for n, word in enumerate(pair.source_words))
        return tuple(filter(None, kept))


def deletion(pair: Encoded) -> dict[int, Substitute]:
    """Nothing in place of every word."""
    return dict.fromkeys(word_spans(pair), Substitute())
