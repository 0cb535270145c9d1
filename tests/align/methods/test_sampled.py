"""VarGrad, Expected Gradients and SmoothGrad over Integrated Gradients against loops over their samples."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

from align.methods import make_method
from align.methods.gradient import _generator, quadrature
from align.methods.sampled import PathSamples
from align.models.inside import word_counts
from data.errors import UsageError
from tests.tiny import tiny_model, tiny_pairs

CLOSE = {"atol": 1e-8, "rtol": 1e-6}


@pytest.fixture(scope="module")
def model():
    return tiny_model()


@pytest.fixture(scope="module")
def encoded(model):
    return [model.encode_pair(pair) for pair in tiny_pairs(3)]


def jacobian(model, pair, point):
    """g[t, s, d], one backward pass for each target piece."""
    batch = model.batch([pair])
    rows = []
    for t in range(len(pair.target)):
        x = point.clone().requires_grad_()
        rows.append(torch.autograd.grad(model.log_probs(batch, x[None])[0, t], x)[0])
    return torch.stack(rows)


def noisy_points(model, pair, samples, noise, seed):
    x = model.embed(model.batch([pair]))[0]
    generator = _generator(seed, pair.pair.id)
    for _ in range(samples):
        drawn = torch.randn(x.shape, generator=generator).to(x)
        yield x + noise * (x.max() - x.min()) * drawn


def check(model, encoded, method, naive):
    batch = model.batch(encoded)
    scores = method.scores(model, batch)
    for row, pair in enumerate(encoded):
        found = scores[row][batch.target_mask[row]][:, batch.source_mask[row]]
        torch.testing.assert_close(found, naive(pair), **CLOSE)


@pytest.mark.parametrize("base", ["input", "l1", "l2"])
def test_vargrad_is_the_variance_of_the_samples(model, encoded, base):
    def naive(pair):
        x = model.embed(model.batch([pair]))[0]
        found = []
        for point in noisy_points(model, pair, 4, 0.15, 3):
            g = jacobian(model, pair, point)
            found.append({"input": (g * x).sum(-1), "l1": g.abs().mean(-1), "l2": (g**2).sum(-1).sqrt()}[base])
        mean = sum(found) / 4
        return sum((u - mean) ** 2 for u in found) / 3

    check(model, encoded, make_method(f"vargrad:samples=4:seed=3:base={base}"), naive)


def test_smoothgrad_over_integrated_gradients(model, encoded):
    def naive(pair):
        words = torch.tensor(pair.source_word_of) >= 0
        total = 0
        for end in noisy_points(model, pair, 3, 0.15, 0):
            start = torch.where(words[:, None], 0, end)
            integral = sum(
                weight * (jacobian(model, pair, start + node * (end - start)) * (end - start)).sum(-1)
                for node, weight in quadrature("gauss-legendre", 2)
            )
            positive = integral.clamp(min=0)
            rows = [row / row.sum() if row.sum() > 0 else row for row in positive]
            total = total + torch.stack(rows)
        return total / 3

    check(model, encoded, make_method("smoothgrad:base=integrated:samples=3:steps=2"), naive)


def random_sentences(model, pair, samples, seed):
    """Embeddings of sentences of drawn words, and the share of the way, as the method draws them."""
    generator = np.random.default_rng([seed, pair.pair.id])
    names = list(word_counts(model))
    for _ in range(samples):
        ids = list(pair.source)
        for column, word in enumerate(pair.source_word_of):
            while word >= 0 and ids[column] == pair.source[column]:
                ids[column] = model.source_dictionary.index(names[int(generator.random() * 12)])
        yield model.scale * model.module.encoder.embed_tokens(torch.tensor(ids)), generator.random()


def test_expected_gradients_are_the_mean_over_their_samples(model, encoded):
    def naive(pair):
        x = model.embed(model.batch([pair]))[0]
        found = [
            (jacobian(model, pair, start + share * (x - start)) * (x - start)).sum(-1)
            for start, share in random_sentences(model, pair, 3, 7)
        ]
        return sum(found) / 3

    check(model, encoded, make_method("expected-gradients:samples=3:seed=7:sign=signed"), naive)


def test_expected_gradients_report_what_the_sampling_lacks(model, encoded):
    batch = model.batch(encoded)
    evidence = PathSamples(3, "", 7).compute(model, batch)
    for row, pair in enumerate(encoded):
        alone = model.batch([pair])
        before = model.log_probs(alone, model.embed(alone))[0]
        starts = [start for start, _ in random_sentences(model, pair, 3, 7)]
        gain = sum(before - model.log_probs(alone, start[None])[0] for start in starts) / 3
        lack = (evidence["signed"][row].sum(-1)[batch.target_mask[row]] - gain).abs()
        torch.testing.assert_close(evidence["completeness"][row][batch.target_mask[row]], lack, **CLOSE)


def test_expected_gradients_agree_with_captum(model, encoded, monkeypatch):
    """GradientShap on the same random sentences, at the same points of the way."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from captum.attr import GradientShap
    pair = encoded[0]
    batch = model.batch([pair])
    inputs = model.embed(batch)
    shap = GradientShap(lambda x: model.log_probs(batch, x))
    ours = make_method("expected-gradients:samples=3:sign=signed").scores(model, batch)[0]
    theirs = torch.zeros_like(ours)
    for start, share in random_sentences(model, pair, 3, 0):
        monkeypatch.setattr(np.random, "uniform", lambda low, high, size, share=share: np.full(size, share))
        for t in range(len(pair.target)):
            found = shap.attribute(inputs, baselines=start[None], n_samples=1, stdevs=0.0, target=t)
            theirs[t] += found[0].sum(-1) / 3
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("vargrad:samples=1", "samples must be at least 2"),
        ("vargrad:base=integrated", "unknown base 'integrated'"),
        ("expected-gradients:samples=0", "samples must be at least 1"),
        ("expected-gradients:sign=negative", "unknown sign 'negative'"),
        ("smoothgrad:base=integrated:steps=0", "steps must be at least 1"),
    ],
)
def test_options_out_of_range(spec, message):
    with pytest.raises(UsageError, match=message):
        make_method(spec)
