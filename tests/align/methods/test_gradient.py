"""Gradient methods against loops written from the formulas, finite differences, and captum."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

from align.methods import compared_methods, make_method
from align.methods.gradient import NoisyGradients, PathGradients, _generator, quadrature
from align.methods.rows import gradient_rows
from data.bitext import Pair
from data.errors import UsageError
from tests.tiny import tiny_model, tiny_pairs

CLOSE = {"atol": 1e-6, "rtol": 1e-6}


@pytest.fixture(scope="module", params=[False, True], ids=["post-norm", "pre-norm"])
def model(request):
    flag = request.param
    return tiny_model(encoder_normalize_before=flag, decoder_normalize_before=flag)


@pytest.fixture(scope="module")
def encoded(model):
    return [model.encode_pair(pair) for pair in tiny_pairs(4)]


def naive_jacobian(model, pair, point):
    """g[t, s, d], one backward pass for each target piece. [T, S, D]"""
    batch = model.batch([pair])
    rows = []
    for t in range(len(pair.target)):
        x = point.clone().requires_grad_()
        (g,) = torch.autograd.grad(model.log_probs(batch, x[None])[0, t], x)
        rows.append(g)
    return torch.stack(rows)


def rows_of(scores, batch, row):
    return scores[row][batch.target_mask[row]][:, batch.source_mask[row]]


def clean(model, pair):
    return model.embed(model.batch([pair]))[0]


def naive_readings(g, x):
    """Loops over target and source pieces: dot product, mean absolute value, Euclidean length."""
    size_t, size_s, _ = g.shape
    dot, l1, l2 = (torch.zeros(size_t, size_s, dtype=torch.float64) for _ in range(3))
    for t in range(size_t):
        for s in range(size_s):
            dot[t, s] = sum(float(a * b) for a, b in zip(g[t, s], x[s], strict=True))
            l1[t, s] = sum(abs(float(a)) for a in g[t, s]) / len(x[s])
            l2[t, s] = sum(float(a) ** 2 for a in g[t, s]) ** 0.5
    return {"input": dot, "l1": l1, "l2": l2}


def test_jacobian_by_finite_differences(model, encoded):
    pair = encoded[0]
    batch, x = model.batch([pair]), clean(model, pair)
    g, log_probs = gradient_rows(model, batch, x[None], lambda chunk: chunk.permute(3, 0, 1, 2))  # [D, B, T, S]
    assert torch.allclose(log_probs, model.log_probs(batch, x[None]), **CLOSE)
    step = 1e-5
    for s in range(len(pair.source)):
        for d in range(model.width):
            ends = []
            for sign in (1, -1):
                moved = x.clone()
                moved[s, d] += sign * step
                ends.append(model.log_probs(batch, moved[None])[0])
            slope = (ends[0] - ends[1]) / (2 * step)
            assert torch.allclose(g[d, 0, :, s], slope, atol=1e-6)


def test_rows_do_not_depend_on_chunks(model, encoded, monkeypatch):
    batch = model.batch(encoded)
    method = make_method("gradient-x-input:sign=signed")
    whole = method.scores(model, batch)
    for cells in (1, len(encoded) * batch.source.shape[1] * model.width * 3):
        monkeypatch.setattr("align.methods.rows.CELLS", cells)
        assert torch.allclose(method.scores(model, batch), whole, atol=1e-12)
    for rows in (1, len(encoded) * 2):
        monkeypatch.setattr("align.methods.rows.SCORED_ROWS", rows)
        assert torch.allclose(method.scores(model, batch), whole, atol=1e-12)


@pytest.mark.parametrize(
    ("spec", "key", "sign"),
    [
        ("gradient-norm:norm=l1", "l1", lambda m: m),
        ("gradient-norm:norm=l2", "l2", lambda m: m),
        ("gradient-x-input:sign=positive", "input", lambda m: m.clamp(min=0)),
        ("gradient-x-input:sign=absolute", "input", torch.abs),
        ("gradient-x-input:sign=signed", "input", lambda m: m),
    ],
)
def test_plain_gradients(model, encoded, spec, key, sign):
    batch = model.batch(encoded)
    scores = make_method(spec).scores(model, batch)
    for row, pair in enumerate(encoded):
        x = clean(model, pair)
        expected = sign(naive_readings(naive_jacobian(model, pair, x), x)[key])
        assert torch.allclose(rows_of(scores, batch, row), expected, **CLOSE)


@pytest.mark.parametrize("base", ["input", "l1", "l2"])
def test_smoothgrad(model, encoded, base):
    samples, noise, seed = 3, 0.15, 7
    batch = model.batch(encoded)
    scores = make_method(f"smoothgrad:samples={samples}:noise={noise}:base={base}:seed={seed}").scores(model, batch)
    for row, pair in enumerate(encoded):
        x = clean(model, pair)
        generator = _generator(seed, pair.pair.id)
        total = torch.zeros(len(pair.target), len(pair.source), dtype=torch.float64)
        for _ in range(samples):
            noisy = x + noise * (x.max() - x.min()) * torch.randn(x.shape, generator=generator).double()
            u = naive_readings(naive_jacobian(model, pair, noisy), x)[base]
            for t in range(len(pair.target)):
                positive = [max(0.0, float(value)) for value in u[t]]
                for s, value in enumerate(positive):
                    total[t, s] += value / sum(positive) if sum(positive) else 0.0
        assert torch.allclose(rows_of(scores, batch, row), total / samples, **CLOSE)


def test_smoothgrad_without_noise_is_the_plain_gradient(model, encoded):
    batch = model.batch(encoded)
    smooth = make_method("smoothgrad:samples=2:noise=0").scores(model, batch)
    plain = make_method("gradient-x-input").scores(model, batch).masked_fill(~batch.source_mask[:, None], 0)
    total = plain.sum(-1, keepdim=True)
    assert torch.allclose(smooth, torch.where(total > 0, plain / total, 0.0), **CLOSE)


def test_smoothgrad_seeds_are_of_the_sentence(model, encoded):
    method = make_method("smoothgrad:samples=2")
    together = method.scores(model, model.batch(encoded))
    alone = method.scores(model, model.batch(encoded[2:3]))[0]
    assert torch.allclose(rows_of(together, model.batch(encoded), 2), alone, **CLOSE)
    other = make_method("smoothgrad:samples=2:seed=1").scores(model, model.batch(encoded))
    assert not torch.allclose(together, other)
    draws = {float(torch.randn(1, generator=_generator(seed, n))) for seed in range(20) for n in range(20)}
    assert len(draws) == 400


@pytest.mark.parametrize("baseline", ["zero", "unk", "mean", "pad"])
@pytest.mark.parametrize("rule", ["midpoint", "gauss-legendre"])
def test_integrated_gradients(model, encoded, baseline, rule):
    steps = 4
    batch = model.batch(encoded)
    found = PathGradients(baseline, steps, rule).compute(model, batch)
    nodes = (
        [((k + 0.5) / steps, 1 / steps) for k in range(steps)]
        if rule == "midpoint"
        else [((n + 1) / 2, w / 2) for n, w in zip(*np.polynomial.legendre.leggauss(steps), strict=True)]
    )
    for row, pair in enumerate(encoded):
        x = clean(model, pair)
        start = model.baseline(baseline).expand_as(x).clone()
        for s, word in enumerate(pair.source_word_of):
            if word == -1:
                start[s] = x[s]
        expected = torch.zeros(len(pair.target), len(pair.source), dtype=torch.float64)
        for node, weight in nodes:
            g = naive_jacobian(model, pair, start + float(node) * (x - start))
            for t in range(len(pair.target)):
                for s in range(len(pair.source)):
                    expected[t, s] += float(weight) * float((g[t, s] * (x[s] - start[s])).sum())
        assert torch.allclose(rows_of(found["signed"], batch, row), expected, **CLOSE)
        single = model.batch([pair])
        gain = (model.log_probs(single, x[None]) - model.log_probs(single, start[None]))[0]
        residual = found["completeness"][row][batch.target_mask[row]]
        assert torch.allclose(residual, (expected.sum(1) - gain).abs(), **CLOSE)


def test_what_the_baseline_replaces(model, encoded):
    batch = model.batch(encoded)
    words = make_method("integrated-gradients:steps=2:sign=signed").scores(model, batch)
    everything = make_method("integrated-gradients:steps=2:sign=signed:replaced=all").scores(model, batch)
    eos = batch.source_mask & (batch.source_word_of < 0)
    columns = eos[:, None, :].expand_as(words)
    assert not words[columns].any(), "a piece that is kept contributes nothing"
    assert everything[columns].any()


def test_integrated_gradients_are_complete_with_enough_steps(model, encoded):
    batch = model.batch(encoded)
    few, many = (PathGradients("zero", steps, "gauss-legendre").compute(model, batch) for steps in (4, 200))
    assert many["completeness"].max() < few["completeness"].max()
    assert many["completeness"].max() < 0.1 < few["completeness"].max()


def test_integrated_gradients_against_captum(model, encoded):
    from captum.attr import IntegratedGradients

    pair = encoded[1]
    batch, x = model.batch([pair]), clean(model, pair)
    start = torch.where((batch.source_word_of[0] >= 0)[:, None], torch.zeros_like(x), x)
    ours = make_method("integrated-gradients:steps=10:sign=signed").scores(model, batch)[0]
    oracle = IntegratedGradients(lambda points: model.log_probs(batch.repeat(len(points)), points))
    for t in range(len(pair.target)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = oracle.attribute(x[None], start[None], target=t, n_steps=10, method="gausslegendre")
        assert torch.allclose(ours[t], theirs[0].sum(-1), **CLOSE)


def test_methods_leave_the_model_as_it_was(model, encoded):
    before = {name: value.clone() for name, value in model.module.state_dict().items()}
    for spec in ("gradient-norm", "smoothgrad:samples=1", "integrated-gradients:steps=1"):
        for method in compared_methods(spec, model):
            assert not method.scores(model, model.batch(encoded)).requires_grad
    after = model.module.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert all(p.grad is None and not p.requires_grad for p in model.module.parameters())


def test_costs(model):
    pair = model.encode_pair(Pair(0, ("s1",), ("t1",) * 6))  # 7 target pieces with </s>
    evidence = make_method("gradient-x-input").evidence.passes(pair)
    assert (evidence.forward, evidence.backward, evidence.total) == (1, 7, 8)
    assert NoisyGradients(30, 0.15, 0).passes(pair).total == 30 * 8
    assert PathGradients("zero", 24, "midpoint").passes(pair).total == 24 * 8 + 2
    assert make_method("attention").evidence.passes(pair).total == 1


def test_quadrature_integrates_polynomials():
    for rule, degree in (("midpoint", 1), ("gauss-legendre", 9)):
        assert sum(w * x**degree for x, w in quadrature(rule, 5)) == pytest.approx(1 / (degree + 1))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("gradient", "did you mean 'gradient-norm'"),
        ("gradient-norm:norm=l3", "unknown norm 'l3'"),
        ("gradient-norm:norms=l1", "did you mean 'norm'"),
        ("gradient-norm:l1", "expected option=value"),
        ("smoothgrad:samples=0", "at least 1"),
        ("smoothgrad:samples=1.5", "whole number"),
        ("smoothgrad:noise=nan", "takes a number"),
        ("smoothgrad:noise=-1", "takes a number"),
        ("integrated-gradients:steps=0", "at least 1"),
        ("integrated-gradients:rule=left", "unknown quadrature rule"),
        ("integrated-gradients:baseline=none", "unknown baseline"),
        ("attention:position=out", "awo, awi"),
        ("attention:heads=all", "heads must be"),
    ],
)
def test_bad_specifications(spec, message):
    with pytest.raises(UsageError, match=message):
        make_method(spec)
