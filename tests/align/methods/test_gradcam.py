"""Attention x gradient and relevancy, with the weights as variables of a Transformer written out head by head."""

from __future__ import annotations

import naive
import pytest
import torch

from align.methods import gradcam, make_method
from align.models.prefix import PrefixView
from data.errors import UsageError
from tests.tiny import tiny_model, tiny_pairs

CLOSE = {"atol": 1e-8, "rtol": 1e-6}


@pytest.fixture(scope="module", params=[False, True], ids=["post-norm", "pre-norm"])
def model(request):
    flag = request.param
    return naive.lively(tiny_model(encoder_normalize_before=flag, decoder_normalize_before=flag))


@pytest.fixture(scope="module")
def encoded(model):
    return [model.encode_pair(pair) for pair in tiny_pairs(4)]


def weights_and_gradients(model, pair):
    """Attention weights and the gradients of each log p at them, [H, Q, K] and [T, H, Q, K] by (part, layer)."""
    trace = naive.run(model, pair)
    weights = {
        (part, layer): step.weights
        for part in ("encoder", "decoder", "cross")
        for layer, step in enumerate(getattr(trace, part))
    }
    nudges = {key: torch.zeros_like(value).requires_grad_() for key, value in weights.items()}
    scores = naive.log_probs(naive.run(model, pair, nudges=nudges), pair)
    rows = [torch.autograd.grad(score, nudges.values(), retain_graph=True) for score in scores]
    return weights, {key: torch.stack([row[n] for row in rows]) for n, key in enumerate(nudges)}


def test_a_gradient_at_a_weight_by_finite_differences(model, encoded):
    _, gradients = weights_and_gradients(model, encoded[1])
    for key, gradient in gradients.items():
        ends = []
        for step in (1e-5, -1e-5):
            nudge = torch.zeros(gradient.shape[1:], dtype=torch.float64)
            nudge[1, 1, 0] = step
            ends.append(naive.log_probs(naive.run(model, encoded[1], nudges={key: nudge}), encoded[1]))
        torch.testing.assert_close((ends[0] - ends[1]) / 2e-5, gradient[:, 1, 1, 0], atol=1e-7, rtol=1e-5)


def naive_rules(weights, gradients, cells=slice(None)):
    """The three rules, a cell at a time. `weights` [H, T, S], `gradients` [T', H, T, S]; `cells` that can be read."""
    heads, size_t, size_s = weights.shape
    rules = {rule: torch.zeros(size_t, size_s, dtype=torch.float64) for rule in gradcam.RULES}
    for t in range(size_t):
        importance = [float(gradients[t, h][cells].mean()) for h in range(heads)]
        for s in range(size_s):
            products = [float(weights[h, t, s] * gradients[t, h, t, s]) for h in range(heads)]
            rules["positive"][t, s] = sum(max(0.0, p) for p in products) / heads
            rules["signed"][t, s] = sum(products)
            rules["cam"][t, s] = max(0.0, sum(importance[h] * float(weights[h, t, s]) for h in range(heads)) / heads)
    return rules


@pytest.mark.parametrize("cells", [gradcam.CELLS, 1])
def test_rules_are_those_of_the_formulas(model, encoded, cells, monkeypatch):
    monkeypatch.setattr(gradcam, "CELLS", cells)
    batch = model.batch(encoded)
    view = PrefixView(model)
    square = view.batch([view.encode_pair(pair.pair) for pair in encoded])
    for layer in range(model.layers):
        methods = {rule: make_method(f"attention-x-gradient:layer={layer}:rule={rule}") for rule in gradcam.RULES}
        scores = {rule: method.scores(model, batch) for rule, method in methods.items()}
        over_prefix = {rule: method.scores(view, square) for rule, method in methods.items()}
        for row, pair in enumerate(encoded):
            weights, gradients = weights_and_gradients(model, pair)
            expected = naive_rules(weights["cross", layer], gradients["cross", layer])
            own = weights["decoder", layer], gradients["decoder", layer]
            expected_own = naive_rules(*own, cells=torch.ones(own[0].shape[1:]).tril().bool())
            for rule in gradcam.RULES:
                torch.testing.assert_close(naive.rows_of(scores[rule], batch, row), expected[rule], **CLOSE)
                found = naive.rows_of(over_prefix[rule], square, row)
                torch.testing.assert_close(found, expected_own[rule], **CLOSE)


@pytest.mark.parametrize("rule", gradcam.RULES)
def test_the_last_layer_takes_one_backward_pass(model, encoded, rule):
    batch = model.batch(encoded)
    last, named, first = (make_method(f"attention-x-gradient:layer={layer}:rule={rule}") for layer in (-1, 1, 0))
    assert last.evidence.on(model) == named.evidence.on(model)
    assert last.evidence.on(model).passes(encoded[0]).backward == 1
    assert first.evidence.on(model).passes(encoded[0]).backward == len(encoded[0].target)
    quick, every = last.scores(model, batch), gradcam.AttentionGradients(None).compute(model, batch)[rule]
    assert len(every) == 2
    for row in range(len(encoded)):
        torch.testing.assert_close(naive.rows_of(quick, batch, row), naive.rows_of(every[-1], batch, row))


def naive_relevancy(model, pair):
    """Row t of the relevancy maps made for target piece t: over the source [T, S], over the target prefix [T, T]."""
    weights, gradients = weights_and_gradients(model, pair)
    size_t, size_s = len(pair.target), len(pair.source)

    def normalised(relevancy):
        rest = relevancy - torch.eye(len(relevancy))
        rows = [row / row.sum() if row.sum() != 0 else row for row in rest]
        return torch.stack(rows) + torch.eye(len(relevancy))

    result, over_prefix = [], []
    for t in range(size_t):
        maps = {key: (weights[key] * gradients[key][t]).clamp(min=0).mean(0) for key in weights}
        r_ss, r_qq = torch.eye(size_s, dtype=torch.float64), torch.eye(size_t, dtype=torch.float64)
        r_qs = torch.zeros(size_t, size_s, dtype=torch.float64)
        for layer in range(len(model.module.encoder.layers)):
            r_ss = r_ss + maps["encoder", layer] @ r_ss
        for layer in range(model.layers):
            own = maps["decoder", layer]
            r_qs, r_qq = r_qs + own @ r_qs, r_qq + own @ r_qq
            r_qs = r_qs + normalised(r_qq).T @ maps["cross", layer] @ normalised(r_ss)
        result.append(r_qs[t])
        over_prefix.append(r_qq[t])
    return torch.stack(result), torch.stack(over_prefix)


def test_relevancy_is_that_of_the_update_rules(model, encoded):
    batch = model.batch(encoded)
    scores = make_method("relevancy").scores(model, batch)
    view = PrefixView(model)
    square = view.batch([view.encode_pair(pair.pair) for pair in encoded])
    over_prefix = make_method("relevancy").scores(view, square)
    for row, pair in enumerate(encoded):
        expected, expected_own = naive_relevancy(model, pair)
        torch.testing.assert_close(naive.rows_of(scores, batch, row), expected, **CLOSE)
        torch.testing.assert_close(naive.rows_of(over_prefix, square, row), expected_own, **CLOSE)


def test_options_out_of_range(model, encoded):
    batch = model.batch(encoded)
    with pytest.raises(UsageError, match="decoder layers 0 to 1"):
        make_method("attention-x-gradient:layer=2").scores(model, batch)
    with pytest.raises(UsageError, match="unknown rule 'negative'"):
        make_method("attention-x-gradient:rule=negative")


def test_gradients_leave_no_graph_on_the_result(model, encoded):
    batch = model.batch(encoded)
    for name in ("attention-x-gradient", "attention-x-gradient:layer=0", "relevancy", "lrp"):
        assert not make_method(name).scores(model, batch).requires_grad
