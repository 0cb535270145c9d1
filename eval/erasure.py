"""Erasing source words: what a model thinks of a target word once some of the words it read are gone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from align.methods.draws import Neighbours, WordDrawer
from align.methods.erasure import PIECES, Blanking, Rewriting, Substitute, deletion, word_spans
from align.models.subwords import NO_WORD
from data.errors import UsageError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from align.methods.erasure import Corruption
    from align.models.base import Batch, Encoded, TranslationModel

    Floats = NDArray[np.float64]

Removed = frozenset[int]
CORRUPTIONS = {
    "zero": "the word's embeddings are zero",
    "unk": "the word's embeddings are those of <unk>",
    "delete": "the word is deleted, later words move up",
    "resample": "another word stands there, drawn by frequency",
    "neighbour": "the word nearest to it among the model's embeddings stands there",
}


def make_corruptions(
    model: TranslationModel, names: Iterable[str], words: str | Mapping[str, float] = "", draws: int = 1, seed: int = 0
) -> dict[str, list[Corruption]]:
    """The named corruptions, those that replace words with `draws` variants each, to be averaged.

    Args:
        words: the frequency list to replace from (`align.methods.draws.word_list`).
        seed: with the number of the sentence it starts the draws, so that batches change nothing.

    Raises:
        UsageError: an unknown name, or fewer than one draw.
        ModelError, DataError: see `align.methods.draws`.
    """
    if draws < 1:
        raise UsageError(f"draws must be at least 1, not {draws}")
    found: dict[str, list[Corruption]] = {}
    for name in names:
        match name:
            case "zero" | "unk":
                found[name] = [Blanking(model, name)]
            case "delete":
                found[name] = [Rewriting(model, deletion)]
            case "resample":
                drawer = WordDrawer(model, words)
                found[name] = [Rewriting(model, _drawn(drawer, seed, number)) for number in range(draws)]
            case "neighbour":
                near = Neighbours(model, words)
                found[name] = [Rewriting(model, _near(near, rank)) for rank in range(draws)]
            case _:
                raise unknown_name("corruption", name, CORRUPTIONS)
    return found


def _drawn(drawer: WordDrawer, seed: int, number: int) -> Callable[[Encoded], dict[int, Substitute]]:
    def substitutes(pair: Encoded) -> dict[int, Substitute]:
        generator = np.random.default_rng([seed, number, pair.pair.id])
        spans = word_spans(pair).items()
        return {word: drawer.substitute(generator, pair.source[start:end]) for word, (start, end) in spans}

    return substitutes


def _near(neighbours: Neighbours, rank: int) -> Callable[[Encoded], dict[int, Substitute]]:
    return lambda pair: neighbours.nearest(pair, rank)


def target_pieces(pair: Encoded) -> dict[int, list[int]]:
    """The rows of the pieces of each target word; words without pieces lack."""
    rows: dict[int, list[int]] = {}
    for row, word in enumerate(pair.target_word_of):
        if word != NO_WORD:
            rows.setdefault(word, []).append(row)
    return rows


@dataclass
class Erased:
    """log p of the target words of one pair under erasure; every set of words runs once, for all target words.

    Args:
        targets: the target words to look at.
    """

    model: TranslationModel
    pair: Encoded
    corruption: Sequence[Corruption]
    targets: Sequence[int]

    def __post_init__(self) -> None:
        self.known: dict[Removed, Floats] = {}

    def run(self, wanted: Iterable[Removed]) -> None:
        """Compute what is not known yet, in large batches."""
        new = sorted(set(wanted) - self.known.keys(), key=lambda words: (len(words), sorted(words)))
        if new:
            values = sum(word_log_probs(self.model, self.pair, way, new, self.targets) for way in self.corruption)
            self.known.update(zip(new, np.asarray(values) / len(self.corruption), strict=True))

    def __getitem__(self, removed: Removed) -> Floats:
        """log p of each of `targets`. [J]"""
        self.run([removed])
        return self.known[removed]


def word_log_probs(
    model: TranslationModel, pair: Encoded, way: Corruption, removed: Sequence[Removed], targets: Sequence[int]
) -> Floats:
    """log p of target words, the sum over their pieces, teacher-forced, for each set of removed words. [n, J]"""
    pieces = target_pieces(pair)
    rows = [row for word in targets for row in pieces[word]]
    owner = torch.tensor([n for n, word in enumerate(targets) for _ in pieces[word]])
    found = []
    for batch, states in corrupted_states(model, pair, way, removed):
        picked = row_distributions(model, batch, states, rows).gather(-1, batch.target[:, rows, None])[..., 0]
        sums = torch.zeros(len(batch), len(targets), dtype=torch.float64)
        found.append(sums.index_add_(1, owner, picked.double().cpu()))
    return torch.cat(found).numpy()


@torch.no_grad()
def corrupted_states(
    model: TranslationModel, pair: Encoded, way: Corruption, removed: Sequence[Removed]
) -> Iterator[tuple[Batch, Tensor]]:
    """Batches of corrupted variants of a sentence, in order, with their encoder states [n, S, D']."""
    size = max(1, PIECES // (len(pair.source) + len(pair.target)))
    for start in range(0, len(removed), size):
        batch, embeddings = way.inputs(pair, removed[start : start + size])
        yield batch, model.encode(batch, embeddings)


@torch.no_grad()
def row_distributions(model: TranslationModel, batch: Batch, states: Tensor, rows: Sequence[int]) -> Tensor:
    """log p of the vocabulary at some target rows, the only ones that the output layer computes. [n, len(rows), V]"""
    features = model.decode(batch, states, max(rows) + 1)
    return model.logits(batch, features[:, rows]).log_softmax(-1)
