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


def test_expected_gradients_become_complete(model, encoded):
    batch = model.batch(encoded)
    errors = [float(PathSamples(n, "", 0).compute(model, batch)["completeness"].mean()) for n in (4, 200)]
    assert errors[1] < errors[0] / 3


def test_expected_gradients_agree_with_captum(model, encoded):
    """GradientShap draws sentences and points by itself, so the two means agree within their standard errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from captum.attr import GradientShap
    pair = encoded[0]
    batch = model.batch([pair])
    inputs = model.embed(batch)
    runs = torch.stack(
        [
            make_method(f"expected-gradients:samples=25:sign=signed:seed={seed}").scores(model, batch)[0]
            for seed in range(16)
        ]
    )
    ours, error = runs.mean(0), runs.std(0) / 4  # of 400 samples
    assert error.max() < 0.2 * ours.abs().max()
    baselines = torch.stack([start for start, _ in random_sentences(model, pair, 400, 0)])
    shap = GradientShap(lambda x: model.log_probs(batch.repeat(len(x)), x))
    torch.manual_seed(0)
    np.random.seed(0)  # captum draws from it
    for t in range(len(pair.target)):
        theirs = shap.attribute(inputs, baselines=baselines, n_samples=400, stdevs=0.0, target=t)[0].sum(-1)
        assert ((ours[t] - theirs).abs() <= 5 * error[t] * 2**0.5).all()
        assert (theirs[:-1] != 0).all()


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
