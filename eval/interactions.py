"""Which source words act together on a target word: discrete second differences over erased words.

For source words i and k and a target word, with f the log-probability of the target word:

    f(x) - f(x without i) - f(x without k) + f(x without both)

A flat list of scores cannot say this. Above zero the two need each other: without either of them most is lost already.
Below zero one can stand in for the other: only without both is much lost. Interaction indices (Grabisch and Roubens
1999) average this difference over subsets; here it is taken at the full sentence. Integrated Hessians (Janizek et al.
2021) ask the same by second derivatives.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from align.methods.erasure import word_spans
from eval.erasure import Erased, target_pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from align.methods.erasure import Corruption
    from align.models.base import Encoded, TranslationModel
    from eval.erasure import Floats


@dataclass(frozen=True)
class Interactions:
    """Of one sentence pair.

    Attributes:
        losses: what each target word loses without each source word, [J, I].
        pairs: second differences, symmetric with an empty diagonal, [J, I, I].
    """

    pair: Encoded
    losses: Floats
    pairs: Floats


def interactions(model: TranslationModel, pair: Encoded, corruption: Sequence[Corruption]) -> Interactions:
    """Interactions of all source words for all target words, in 1 + I (I + 1) / 2 passes.

    Words that have no pieces have no losses.
    """
    words, targets = list(word_spans(pair)), list(target_pieces(pair))
    erased = Erased(model, pair, corruption, targets)
    both = list(combinations(words, 2))
    erased.run([frozenset(), *(frozenset({word}) for word in words), *map(frozenset, both)])
    size_i, size_j = len(pair.source_words), len(pair.target_words)
    losses, pairs = np.zeros((size_j, size_i)), np.zeros((size_j, size_i, size_i))
    full = erased[frozenset()]
    for word in words:
        losses[targets, word] = full - erased[frozenset({word})]
    for i, k in both:
        together = full - erased[frozenset({i, k})]
        pairs[targets, i, k] = pairs[targets, k, i] = losses[targets, i] + losses[targets, k] - together
    return Interactions(pair, losses, pairs)


def of_short_pairs(
    model: TranslationModel,
    pairs: Sequence[Encoded],
    corruption: Sequence[Corruption],
    longest: int,
    advance: Callable[[float], object] = lambda passes: None,
) -> dict[int, Floats]:
    """Interactions [J, I, I] of the pairs with at most `longest` source words, by the number of the pair.

    Args:
        advance: called with the number of pairs that are done, those left out among them.
    """
    found = {}
    for pair in pairs:
        if pair.status == "ok" and len(pair.source_words) <= longest:
            found[pair.pair.id] = interactions(model, pair, corruption).pairs
        advance(1)
    return found


def strongest(found: Interactions, top: int) -> list[dict[str, object]]:
    """The `top` pairs of source words with the largest interaction of either sign, for each target word."""
    rows: list[dict[str, object]] = []
    source, target = found.pair.source_words, found.pair.target_words
    for j, word in enumerate(target):
        chosen = sorted(combinations(range(len(source)), 2), key=lambda p: -abs(found.pairs[j, p[0], p[1]]))[:top]
        rows += [
            {
                "pair": found.pair.pair.id + 1,
                "target": j,
                "word": word,
                "first": f"{i}:{source[i]}",
                "second": f"{k}:{source[k]}",
                "interaction": float(found.pairs[j, i, k]),
                "loss_first": float(found.losses[j, i]),
                "loss_second": float(found.losses[j, k]),
                "loss_both": float(found.losses[j, i] + found.losses[j, k] - found.pairs[j, i, k]),
            }
            for i, k in chosen
        ]
    return rows
