"""Erasure one sentence, one set of words and one pass at a time, written from the definitions."""

from __future__ import annotations

import math
from dataclasses import replace


def log_prob(model, pair, target, changed=None, embeddings=None):
    """log p of a target word of `pair` where the model reads `changed`, or `embeddings`, instead."""
    batch = model.batch([changed or pair])
    x = model.embed(batch) if embeddings is None else embeddings[None]
    rows = model.log_probs(batch, x)[0]
    return sum(float(rows[t]) for t, word in enumerate(pair.target_word_of) if word == target)


def blanked(model, pair, target, removed, kind):
    x = model.embed(model.batch([pair]))[0].clone()
    for column, word in enumerate(pair.source_word_of):
        if word in removed:
            x[column] = model.baseline(kind)
    return log_prob(model, pair, target, embeddings=x)


def replaced(model, pair, target, removed, pieces):
    """`pieces[word]` stand where a removed word was."""
    source, word_of = [], []
    for column, (piece, word) in enumerate(zip(pair.source, pair.source_word_of, strict=True)):
        if word not in removed:
            source.append(piece)
            word_of.append(word)
        elif column == 0 or pair.source_word_of[column - 1] != word:
            source += pieces[word]
            word_of += [word] * len(pieces[word])
    return log_prob(model, pair, target, replace(pair, source=tuple(source), source_word_of=tuple(word_of)))


def comprehensiveness(after, order, every, bins):
    """Mean loss without the top words; `after` gives log p without a set of words."""
    losses = []
    for share in bins:
        k = max(1, math.ceil(share * len(order)))
        losses.append(after(set()) - after(set(order[:k])))
    return losses


def sufficiency(after, order, every, bins):
    """Mean loss with the top words alone."""
    losses = []
    for share in bins:
        k = max(1, math.ceil(share * len(order)))
        losses.append(after(set()) - after(every - set(order[:k])))
    return losses


def area(after, sets, sizes):
    """Trapezoids under log p along growing sets of words, over the share of words."""
    total = 0.0
    values = [after(s) for s in sets]
    for n in range(1, len(sets)):
        total += (values[n] + values[n - 1]) / 2 * (sizes[n] - sizes[n - 1]) / sizes[-1]
    return total


def second_difference(after, i, k):
    """f(x) - f(x without i) - f(x without k) + f(x without both)."""
    return after(set()) - after({i}) - after({k}) + after({i, k})
