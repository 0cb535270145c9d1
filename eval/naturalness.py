"""How unnatural an input became by erasing words: a loss on text unlike any seen in training may show damage only.

After Hooker et al. 2019 and Hase et al. 2021: erased inputs lie off the distribution of the training data. Three signs
of it, none of which needs the erased words themselves to matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from align.methods.erasure import Rewriting, deletion, word_spans
from data.bitext import Pair
from eval.erasure import corrupted_states, row_distributions, target_pieces
from eval.faithfulness import Plan, points

if TYPE_CHECKING:
    from collections.abc import Sequence

    from align.methods.erasure import Corruption
    from align.models.base import Batch, Encoded, TranslationModel
    from eval.erasure import Removed
    from eval.ngrams import NGrams

Sums = dict[str, tuple[float, float]]  # a sum and its count
SIGNS = {
    "state_distance": "1 - cosine of the encoder states of the words left, to those in the clean sentence",
    "entropy": "of the model's output, in nats, at the pieces of the target; compare with the clean sentence",
    "source_log_prob": "log p of the corrupted source under the reverse model, for each piece",
    "source_ngrams": "log p of the corrupted source under the n-gram model, for each word and the end",
}
CLEAN = "clean"


def naturalness(
    model: TranslationModel,
    reverse: TranslationModel | None,
    pair: Encoded,
    corruption: Sequence[Corruption] | None,
    plan: Plan,
    ngrams: NGrams | None = None,
) -> Sums:
    """The `SIGNS` of one sentence where a random order of its words is erased, over the shares of `plan`.

    Args:
        corruption: None for the clean sentence.

    Returns:
        sign to a sum over erased variants and their number; those of the reverse model and of `ngrams` only where
        they can tell.
    """
    rng = np.random.default_rng([plan.seed, pair.pair.id])
    words = [int(word) for word in rng.permutation(list(word_spans(pair)))]
    counts = points(len(words), plan.bins)[1:-1] or (1,)
    removed = [frozenset(words[:count]) for count in counts] if corruption else [frozenset[int]()]
    ways = corruption or [Rewriting(model, deletion)]
    found: dict[str, list[float]] = {sign: [] for sign in SIGNS}
    for way in ways:
        distances, entropies = _from_model(model, pair, way, removed)
        found["state_distance"] += distances
        found["entropy"] += entropies
        texts = [way.words(pair, words) for words in removed]
        if reverse is not None:
            found["source_log_prob"] += _under(reverse, pair, texts)
        if ngrams is not None:
            found["source_ngrams"] += [ngrams.log_prob(text) for text in texts if text]
    return {sign: (float(sum(values)), float(len(values))) for sign, values in found.items()}


def _from_model(
    model: TranslationModel, pair: Encoded, way: Corruption, removed: Sequence[Removed]
) -> tuple[list[float], list[float]]:
    """State distance and entropy of each variant; a variant with no word left has no distance."""
    ((clean_batch, clean),) = corrupted_states(model, pair, Rewriting(model, deletion), [frozenset()])
    rows = [row for pieces in target_pieces(pair).values() for row in pieces]
    distances, entropies = [], []
    done = 0
    for batch, states in corrupted_states(model, pair, way, removed):
        log_probs = row_distributions(model, batch, states, rows)  # [n, rows, V]
        entropies += (-(log_probs.exp() * log_probs).sum(-1).mean(-1)).tolist()
        for n in range(len(batch)):
            gone = removed[done + n]
            before = clean[0, _kept(clean_batch, 0, gone)]
            after = states[n, _kept(batch, n, gone)]
            if len(before):
                distances.append(float(1 - torch.nn.functional.cosine_similarity(before, after, dim=-1).mean()))
        done += len(batch)
    return distances, entropies


def _kept(batch: Batch, row: int, gone: Removed) -> list[int]:
    """Columns of the pieces of words that are still there."""
    return [n for n, word in enumerate(batch.source_word_of[row].tolist()) if word >= 0 and word not in gone]


def _under(reverse: TranslationModel, pair: Encoded, sources: Sequence[tuple[str, ...] | None]) -> list[float]:
    """log p of each source text for each piece, given the target; text that is none, or too long, is left out."""
    if pair.pair.source != pair.source_words:  # text in pieces: the reverse model would cut words otherwise
        return []
    pairs = [Pair(pair.pair.id, pair.target_words, words) for words in sources if words]
    encoded = [e for e in map(reverse.encode_pair, pairs) if e.status == "ok"]
    if not encoded:
        return []
    with torch.no_grad():
        batch = reverse.batch(encoded)
        total = reverse.log_probs(batch, reverse.embed(batch)).sum(1) / batch.target_mask.sum(1)
    return [float(value) for value in total]
