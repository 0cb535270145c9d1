"""Saliency over the target prefix against loops over prefixes that are written out, one prediction at a time."""

from __future__ import annotations

from dataclasses import replace

import naive
import numpy as np
import pytest
import torch

from align.methods import make_method
from align.methods.gradient import _generator, quadrature
from align.models.inside import word_counts
from align.models.prefix import PrefixView
from tests.tiny import TARGET, tiny_model, tiny_pairs

CLOSE = {"atol": 1e-8, "rtol": 1e-6}
PAIRS = tiny_pairs(4, seed=5)


@pytest.fixture(scope="module")
def model():
    return naive.lively(tiny_model())


def check(model, method, expected):
    """Scores over the prefix, all pairs in one batch, against `expected(pair)`, [T, T]."""
    view = PrefixView(model)
    batch = view.batch([view.encode_pair(pair) for pair in PAIRS])
    scores = make_method(method).scores(view, batch)
    for row, pair in enumerate(PAIRS):
        found = naive.rows_of(scores, batch, row)
        torch.testing.assert_close(found, expected(model.encode_pair(pair)), **CLOSE)
        assert found.any() or len(pair.target) == 1


def words_of(pair):
    """The word of each decoder input: that of the target piece before."""
    return [-1, *pair.target_word_of[:-1]]


def log_prob(model, pair, prefix, piece):
    """log p of a target piece after a prefix of ids."""
    told = replace(pair, prefix=tuple(prefix), target=(*prefix[1:], piece), target_word_of=(0,) * len(prefix))
    return naive.log_probs(naive.run(model, told), told)[-1].detach()


def losses(model, pair, replacements):
    """Row t, column where a word begins: loss of log p of piece t when the word's pieces before it are replaced."""
    words = words_of(pair)
    found = torch.zeros(len(words), len(words), dtype=torch.float64)
    for word, drawn in replacements:
        first = words.index(word)
        size = words.count(word)
        for t in range(first, len(words)):
            whole = pair.prefix[: t + 1]
            new = drawn if t >= first + size - 1 else drawn[: t - first + 1]
            changed = (*whole[:first], *new, *whole[first + size :])
            piece = pair.target[t]
            found[t, first] += log_prob(model, pair, whole, piece) - log_prob(model, pair, changed, piece)
    return found


def test_omission_closes_the_gap(model):
    def expected(pair):
        return losses(model, pair, [(word, ()) for word in sorted({w for w in words_of(pair) if w >= 0})])

    check(model, "omission:sign=signed", expected)


def test_resampling_draws_target_words(model):
    names = list(word_counts(PrefixView(model)))
    assert set(names) == {name for name in TARGET if not name.endswith("@@")}

    def expected(pair):
        generator = np.random.default_rng([3, pair.pair.id])
        words, replacements = words_of(pair), []
        for word in sorted({w for w in words if w >= 0}):
            old = tuple(p for p, w in zip(pair.prefix, words, strict=True) if w == word)
            for _ in range(2):
                new = old
                while new == old:
                    new = (model.target_dictionary.index(names[int(generator.random() * len(names))]),)
                replacements.append((word, new))
        return losses(model, pair, replacements) / 2

    check(model, "resampling:draws=2:seed=3:sign=signed", expected)


def embedded(model, ids):
    return model.module.decoder.embed_tokens(torch.tensor(ids))


def jacobian(model, pair, point):
    """g[t, s, d] of log p(y_t) at the embeddings of the prefix, one backward pass for each target piece."""
    x = point.detach().clone().requires_grad_()
    scores = naive.log_probs(naive.run(model, pair, prefix=x), pair)
    return torch.stack([torch.autograd.grad(score, x, retain_graph=True)[0] for score in scores])


def test_gradient_norms_and_integrated_gradients(model):
    check(model, "gradient-norm:norm=l2", lambda pair: jacobian(model, pair, embedded(model, pair.prefix)).norm(dim=-1))

    def integral(pair):
        end = embedded(model, pair.prefix)
        start = torch.where(torch.tensor(words_of(pair))[:, None] >= 0, 0, end)
        points = [(weight, start + node * (end - start)) for node, weight in quadrature("midpoint", 3)]
        return sum(weight * (jacobian(model, pair, point) * (end - start)).sum(-1) for weight, point in points)

    check(model, "integrated-gradients:steps=3:rule=midpoint:sign=signed", integral)


def noisy_dots(model, pair, samples, seed):
    """Gradient x input at noisy copies of the prefix. [T, T] each"""
    x = embedded(model, pair.prefix)
    generator = _generator(seed, pair.pair.id)
    for _ in range(samples):
        noise = torch.randn(x.shape, generator=generator).to(x)
        point = x + 0.15 * (x.max() - x.min()) * noise
        yield (jacobian(model, pair, point) * x).sum(-1)


def test_smoothgrad_and_vargrad(model):
    def smooth(pair):
        found = [dots.clamp(min=0) for dots in noisy_dots(model, pair, 3, 2)]
        rows = [torch.stack([row / row.sum() if row.sum() > 0 else row for row in dots]) for dots in found]
        return sum(rows) / 3

    check(model, "smoothgrad:samples=3:seed=2", smooth)
    check(model, "vargrad:samples=3:seed=2", lambda pair: torch.stack([*noisy_dots(model, pair, 3, 2)]).var(0))


def test_expected_gradients_start_at_drawn_target_words(model):
    names = list(word_counts(PrefixView(model)))

    def expected(pair):
        generator = np.random.default_rng([1, pair.pair.id])
        total = torch.zeros(len(pair.target), len(pair.target), dtype=torch.float64)
        for _ in range(2):
            ids = list(pair.prefix)
            for column, word in enumerate(words_of(pair)):
                while word >= 0 and ids[column] == pair.prefix[column]:
                    ids[column] = model.target_dictionary.index(names[int(generator.random() * len(names))])
            start, end = embedded(model, ids), embedded(model, pair.prefix)
            point = start + generator.random() * (end - start)
            total += (jacobian(model, pair, point) * (end - start)).sum(-1)
        return total / 2

    check(model, "expected-gradients:samples=2:seed=1:sign=signed", expected)


def test_a_mean_takes_shares_of_prefix_words(model):
    view = PrefixView(model)

    def expected(pair):
        total = 0
        for weight, name in ((2, "omission"), (1, "gradient-x-input")):
            batch = view.batch([view.encode_pair(pair.pair)])
            rows = make_method(name).scores(view, batch)[0]
            rows = rows * (torch.tensor(words_of(pair)) >= 0)
            total = total + weight * torch.stack([row / row.sum() if row.sum() > 0 else row for row in rows])
        return total / 3

    check(model, "mean(2*omission,gradient-x-input)", expected)
