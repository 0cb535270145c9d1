"""LRP: a case derived by hand, the rules written out for a Transformer, conservation, and what stays on torch."""

from __future__ import annotations

import naive
import pytest
import torch
import torch.nn.functional as F
from naive_lrp import Lrp

from align.methods import make_method
from align.methods.propagation import budget
from align.methods.relevance_rules import RelevanceRules
from align.models.prefix import PrefixView
from data.errors import ModelError, UsageError
from tests.tiny import tiny_model, tiny_pairs


@pytest.fixture(scope="module", params=[False, True], ids=["post-norm", "pre-norm"])
def model(request):
    flag = request.param
    return naive.lively(tiny_model(encoder_normalize_before=flag, decoder_normalize_before=flag))


@pytest.fixture(scope="module")
def encoded(model):
    return [model.encode_pair(pair) for pair in tiny_pairs(2, longest=4)]


def relevance(function, *inputs, **options):
    """x * dy/dx under the rules, for a y that is one number."""
    leaves = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in inputs]
    with RelevanceRules(**options):
        out = function(*leaves)
    gradients = torch.autograd.grad(out.sum(), leaves, materialize_grads=True)
    return [(x * g).detach() for x, g in zip(leaves, gradients, strict=True)]


# Two linear layers with a ReLU between them: h = (1*2 + 1*3 = 5, 2*2 - 1*3 = 1, 2 - 2*3 = -4 -> 0), y = 3*5 - 2*1 = 13.
FIRST = [[1.0, 1.0], [2.0, -1.0], [1.0, -2.0]]
SECOND = [[3.0, -2.0, 7.0]]


def two_layers(x):
    hidden = F.linear(x, torch.tensor(FIRST, dtype=torch.float64)).relu()
    return F.linear(hidden, torch.tensor(SECOND, dtype=torch.float64))


def test_epsilon_rule_by_hand():
    # R(h) = (15, -2, 0); x1 takes 15 * 2/5 - 2 * 4/1 = -2, x2 takes 15 * 3/5 - 2 * -3/1 = 15.
    (found,) = relevance(two_layers, [2.0, 3.0])
    torch.testing.assert_close(found, torch.tensor([-2.0, 15.0], dtype=torch.float64))


def test_alpha_beta_rule_by_hand():
    # R(h): positive part to h1, negative part to h2: 13/2 each. h1 = 2 + 3 is all positive: x1 takes 2/5, x2 3/5.
    # h2 = 4 - 3: half to x1 by the positive, half to x2 by the negative part.
    (found,) = relevance(two_layers, [2.0, 3.0], linear="alpha-beta")
    expected = [6.5 * 2 / 5 + 6.5 / 2, 6.5 * 3 / 5 + 6.5 / 2]
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64))


def test_alpha_of_one_follows_positive_contributions_only():
    # 13 to h1, then 2/5 and 3/5 of it.
    (found,) = relevance(two_layers, [2.0, 3.0], linear="alpha-beta", alpha=1.0)
    torch.testing.assert_close(found, torch.tensor([5.2, 7.8], dtype=torch.float64))


def test_epsilon_swallows_its_share():
    # One linear layer: z = 5, stabilised 5 + 1; each input keeps 5/6 of its contribution.
    (found,) = relevance(lambda x: F.linear(x, torch.ones(1, 2, dtype=torch.float64)), [2.0, 3.0], epsilon=1.0)
    torch.testing.assert_close(found, torch.tensor([10 / 6, 15 / 6], dtype=torch.float64))


def test_products_share_evenly_and_activations_pass_relevance_on():
    left, right = relevance(lambda a, b: a * b, [3.0], [4.0])
    assert (left.item(), right.item()) == (6, 6)
    left, right = relevance(lambda a, b: a @ b, [[3.0]], [[4.0]])
    assert (left.item(), right.item()) == (6, 6)
    for function in (F.gelu, F.silu, torch.tanh, F.relu):
        (found,) = relevance(function, [-1.5, 0.0, 2.0])
        torch.testing.assert_close(found, function(torch.tensor([-1.5, 0, 2], dtype=torch.float64)))


def test_softmax_by_its_taylor_rule():
    # R_i = x_i (R_i - s_i sum_j R_j) with all relevance on the first output, which is s_1 itself.
    x = torch.tensor([1.0, 2.0, -1.0], dtype=torch.float64)
    s = x.softmax(0)
    out = torch.tensor([s[0], 0, 0])
    expected = [x[i] * (out[i] - s[i] * s[0]) for i in range(3)]
    (found,) = relevance(lambda v: v.softmax(0)[:1], x.tolist())
    torch.testing.assert_close(found, torch.stack(expected))
    (held,) = relevance(lambda v: v.softmax(0)[:1] * v[:1], x.tolist(), attention="held")
    torch.testing.assert_close(held, torch.tensor([s[0], 0, 0]))


def test_rms_norm_holds_its_scale():
    (found,) = relevance(lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True)), [3.0, 4.0])
    torch.testing.assert_close(found, torch.tensor([3.0, 4.0], dtype=torch.float64) / 12.5**0.5)


def test_fused_attention_takes_the_rules_of_its_steps():
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, 2, 3, 4, generator=generator, dtype=torch.float64) for _ in range(3))

    def steps(q, k, v):
        scores = torch.matmul(q * 0.5, k.transpose(-1, -2))
        hidden = torch.full_like(scores, -torch.inf).triu(1)
        return torch.matmul(F.softmax(scores + hidden, dim=-1), v)[..., -1, :]

    def fused(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)[..., -1, :]

    expected = relevance(steps, q.tolist(), k.tolist(), v.tolist())
    found = relevance(fused, q.tolist(), k.tolist(), v.tolist())
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b)
    assert expected[0].any()


@pytest.mark.parametrize("held", [False, True], ids=["propagated", "held"])
@pytest.mark.parametrize("rule", ["epsilon", "alpha-beta"])
def test_relevance_is_that_of_the_rules_written_out(model, encoded, rule, held):
    batch = model.batch(encoded)
    attention = "held" if held else "propagated"
    method = make_method(f"lrp:linear={rule}:alpha=0.7:attention={attention}:sign=signed")
    scores = method.scores(model, batch)
    view = PrefixView(model)
    prefix = view.batch([view.encode_pair(pair.pair) for pair in encoded])
    over_prefix = method.scores(view, prefix)
    for row, pair in enumerate(encoded):
        twin = Lrp(model, pair, rule, 0.7, held)
        found = [twin.row(t) for t in range(len(pair.target))]
        at_source, at_prefix = (torch.stack(rows) for rows in zip(*found, strict=True))
        torch.testing.assert_close(naive.rows_of(scores, batch, row), at_source, atol=1e-8, rtol=1e-6)
        torch.testing.assert_close(naive.rows_of(over_prefix, prefix, row), at_prefix, atol=1e-8, rtol=1e-6)


@pytest.mark.parametrize("options", ["", ":attention=held", ":linear=alpha-beta", ":linear=alpha-beta:alpha=1.0"])
def test_relevance_is_conserved(model, encoded, options):
    method = make_method(f"lrp:sign=signed{options}")
    for pair in encoded:
        found = budget(model, pair, method)
        batch = model.batch([pair])
        logits = model.logits(batch, model.decode(batch, model.encode(batch, model.embed(batch))))
        expected = logits[0].gather(-1, batch.target[0, :, None])[:, 0]
        torch.testing.assert_close(found.logit, expected)
        torch.testing.assert_close(found.source, method.scores(model, batch)[0].sum(-1))
        assert found.error.max() < 1e-11
        assert found.inputs.any()
        assert found.biases.any()
        assert found.softmax.any() == ("held" not in options)


def test_an_epsilon_breaks_conservation_and_the_budget_says_so(model, encoded):
    assert budget(model, encoded[0], make_method("lrp:epsilon=0.1")).error.max() > 1e-3


def test_values_stay_and_nothing_is_left_behind(model, encoded):
    batch = model.batch(encoded)
    expected = model.log_probs(batch, model.embed(batch))
    for options in ({}, {"linear": "alpha-beta"}, {"epsilon": 0.1}, {"attention": "held"}):
        with RelevanceRules(**options):
            found = model.log_probs(batch, model.embed(batch))
        torch.testing.assert_close(found, expected, atol=1e-12, rtol=1e-12)
        assert torch.equal(model.log_probs(batch, model.embed(batch)), expected)
    with pytest.raises(RuntimeError, match="stop"), RelevanceRules():
        raise RuntimeError("stop")
    x = torch.tensor([2.0], requires_grad=True)
    (gradient,) = torch.autograd.grad(F.gelu(x).sum(), x)
    assert not torch.allclose(gradient * x, F.gelu(x))


def test_attention_with_key_biases_is_refused():
    layer = torch.nn.MultiheadAttention(4, 2, add_bias_kv=True)
    x = torch.randn(3, 1, 4)
    with pytest.raises(ModelError, match="key biases"), RelevanceRules():
        layer(x, x, x)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("lrp:linear=gamma", "unknown linear 'gamma'"),
        ("lrp:attention=frozen", "unknown attention 'frozen'"),
        ("lrp:sign=negative", "unknown sign 'negative'"),
        ("lrp:alpha=2.0", "alpha in 0..1"),
    ],
)
def test_options_out_of_range(spec, message):
    with pytest.raises(UsageError, match=message):
        make_method(spec)
