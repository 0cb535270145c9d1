"""Faithfulness by erasure: does the model lose a target word without the source words that a method names?

Comprehensiveness and sufficiency after DeYoung et al. 2020 (ERASER, section 4.2), for each target word with the
log-probability of its pieces: comp = log p(x) - log p(x without the top words), suff = log p(x) - log p(only the top
words), each the mean over shares of source words (the paper's area over the perturbation curve). Deletion and insertion
curves go on to all words (Samek et al. 2017; Petsiuk et al. 2018).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from align.methods.erasure import word_spans
from eval.erasure import Erased, Removed, target_pieces

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from align.methods.erasure import Corruption
    from align.models.base import Encoded, TranslationModel
    from eval.erasure import Floats

BINS = (0.01, 0.05, 0.1, 0.2, 0.5)  # shares of source words, as ERASER has them
STEPS = (0.25, 0.75)  # further points of the curves
RANDOM, ORACLE = "random", "oracle"

Order = tuple[int, ...]  # source words, the most important first


def removed_words(share: float, words: int) -> int:
    """How many words a share stands for: rounded up, at least one."""
    return max(1, ceil(share * words - 1e-9))  # 0.2 * 15 must not become 4 by rounding


def orders(matrix: Floats, words: Sequence[int], targets: Sequence[int], rng: np.random.Generator) -> list[Order]:
    """Source words by falling score for each target word; ties, which mean nothing, fall at random.

    Args:
        matrix: word scores [J, I].
        words, targets: the source words to order and the target words to order them for.
    """
    found = []
    for target in targets:
        chance = rng.permutation(len(words))
        found.append(tuple(words[n] for n in np.lexsort((chance, -matrix[target, list(words)]))))
    return found


@dataclass(frozen=True)
class Curves:
    """log p of target words as words go, most important first: `deletion` and `insertion`, [J, P] each.

    Point p of `deletion` has `counts[p]` words gone, the same point of `insertion` has only those left. The first
    point is no word, the last all of them.
    """

    counts: tuple[int, ...]
    deletion: Floats
    insertion: Floats

    @property
    def full(self) -> Floats:
        """log p of the whole sentence. [J]"""
        return self.deletion[:, 0]

    def comprehensiveness(self, bins: Sequence[float]) -> Floats:
        """Loss of log p without the top words, [J, bins]: high is faithful."""
        return self.full[:, None] - self.deletion[:, self._at(bins)]

    def sufficiency(self, bins: Sequence[float]) -> Floats:
        """Loss of log p with only the top words, [J, bins]: low is faithful."""
        return self.full[:, None] - self.insertion[:, self._at(bins)]

    def areas(self) -> tuple[Floats, Floats]:
        """Mean log p along each curve over the share of words, by trapezoids. [J] each"""
        widths = np.diff(self.counts) / self.counts[-1]
        deletion, insertion = ((c[:, 1:] + c[:, :-1]) / 2 @ widths for c in (self.deletion, self.insertion))
        return deletion, insertion

    def _at(self, bins: Sequence[float]) -> list[int]:
        return [self.counts.index(removed_words(share, self.counts[-1])) for share in bins]


def points(words: int, bins: Sequence[float]) -> tuple[int, ...]:
    """How many words are gone at the points of the curves."""
    return tuple(sorted({0, words, *(removed_words(share, words) for share in (*bins, *STEPS))}))


def curves(erased: Erased, every: Removed, found: Sequence[Order], counts: tuple[int, ...]) -> Curves:
    """The curves of one order for each target word of `erased`."""
    tops = [[frozenset(order[:count]) for count in counts] for order in found]
    deletion = [[erased[top][j] for top in row] for j, row in enumerate(tops)]
    insertion = [[erased[every - top][j] for top in row] for j, row in enumerate(tops)]
    return Curves(counts, np.array(deletion), np.array(insertion))


def exhaustive(erased: Erased, every: Removed, counts: tuple[int, ...]) -> Curves:
    """The ceiling: at each point the set of words that hurts most when gone, or least when alone left; not nested.

    Costs 2^I passes where all counts occur, for all target words together.
    """
    sets = {count: [frozenset(s) for s in combinations(sorted(every), count)] for count in counts}
    erased.run(words for found in sets.values() for s in found for words in (s, every - s))
    deletion = [np.min([erased[s] for s in sets[count]], axis=0) for count in counts]
    insertion = [np.max([erased[every - s] for s in sets[count]], axis=0) for count in counts]
    return Curves(counts, np.array(deletion).T, np.array(insertion).T)


@dataclass(frozen=True)
class Plan:
    """What to erase and for which words.

    Attributes:
        bins: shares of source words.
        targets: at most so many target words of a sentence, drawn at random; 0 for all.
        random_orders: how many random orders make the floor.
        oracle_words: sentences of up to so many words get an exhaustive oracle.
        seed: with the number of the sentence it starts every random number.
    """

    bins: tuple[float, ...] = BINS
    targets: int = 0
    random_orders: int = 3
    oracle_words: int = 7
    seed: int = 0


@dataclass(frozen=True)
class Measured:
    """One order of words on one sentence: sums over its target words. `comp` and `suff` are for each bin."""

    comp: Floats
    suff: Floats
    deletion: float
    insertion: float
    words: int

    @classmethod
    def of(cls, found: Curves, bins: Sequence[float]) -> Measured:
        """Sums over the target words of `found`."""
        deletion, insertion = (float(area.sum()) for area in found.areas())
        comp, suff = found.comprehensiveness(bins).sum(0), found.sufficiency(bins).sum(0)
        return cls(comp, suff, deletion, insertion, len(found.full))


@dataclass(frozen=True)
class Sentence:
    """Every order on one sentence: methods by name, `random`, and where short `oracle`.

    `reverse` is comprehensiveness where the least important words go first, a sum over target words for each bin.
    """

    pair: Encoded
    forward: dict[str, Measured]
    reverse: dict[str, Floats]


def measure_sentence(
    model: TranslationModel,
    pair: Encoded,
    matrices: Mapping[str, Floats],
    corruption: Sequence[Corruption],
    plan: Plan,
) -> Sentence:
    """All methods on one sentence under one corruption. `matrices` hold word scores [J, I] by method.

    A set of words that several methods or target words erase runs once.
    """
    rng = np.random.default_rng([plan.seed, pair.pair.id])
    words, targets = list(word_spans(pair)), chosen_targets(pair, plan.targets, rng)
    every, counts = frozenset(words), points(len(words), plan.bins)
    ranked = {name: orders(matrix, words, targets, rng) for name, matrix in matrices.items()}
    chance = [random_orders(words, targets, rng) for _ in range(plan.random_orders)]
    few = [removed_words(share, len(words)) for share in plan.bins]
    last = {name: [[frozenset(order[-k:]) for k in few] for order in found] for name, found in ranked.items()}
    erased = Erased(model, pair, corruption, targets)
    tops = {frozenset(o[:k]) for found in (*ranked.values(), *chance) for o in found for k in counts}
    erased.run(tops | {every - top for top in tops} | {s for rows in last.values() for row in rows for s in row})

    def measured(found: Sequence[Order]) -> Measured:
        return Measured.of(curves(erased, every, found, counts), plan.bins)

    forward = {name: measured(found) for name, found in ranked.items()}
    if chance:
        forward[RANDOM] = mean([measured(found) for found in chance])
    if len(words) <= plan.oracle_words:
        forward[ORACLE] = Measured.of(exhaustive(erased, every, counts), plan.bins)
    full = erased[frozenset()]
    reverse = {
        name: np.sum([[full[j] - erased[s][j] for s in r] for j, r in enumerate(rows)], 0)
        for name, rows in last.items()
    }
    return Sentence(pair, forward, reverse)


def mean(found: Sequence[Measured]) -> Measured:
    """The mean of several orders on one sentence."""
    return Measured(
        np.mean([m.comp for m in found], axis=0),
        np.mean([m.suff for m in found], axis=0),
        float(np.mean([m.deletion for m in found])),
        float(np.mean([m.insertion for m in found])),
        found[0].words,
    )


def chosen_targets(pair: Encoded, most: int, rng: np.random.Generator) -> list[int]:
    """The target words to look at, in order: all, or `most` of them at random."""
    words = list(target_pieces(pair))
    if not most or len(words) <= most:
        return words
    return sorted(words[n] for n in rng.choice(len(words), most, replace=False))


def random_orders(words: Sequence[int], targets: Sequence[int], rng: np.random.Generator) -> list[Order]:
    """A random order for each target word."""
    return [tuple(words[n] for n in rng.permutation(len(words))) for _ in targets]
