"""ALTI and ALTI+ against the formulas, a position at a time."""

from __future__ import annotations

import naive
import pytest
import torch

from align.methods import contributions, make_method
from align.methods.contributions import Contributions, source_shares
from align.models.inside import insides
from align.models.prefix import PrefixView
from data.errors import UsageError
from tests.tiny import tiny_model, tiny_pairs

CLOSE = {"atol": 1e-9, "rtol": 1e-7}


@pytest.fixture(scope="module", params=[False, True], ids=["post-norm", "pre-norm"])
def model(request):
    flag = request.param
    return naive.lively(tiny_model(encoder_normalize_before=flag, decoder_normalize_before=flag))


@pytest.fixture(scope="module")
def encoded(model):
    return [model.encode_pair(pair) for pair in tiny_pairs(4)]


def through_norm(step, position, vector):
    """gamma (z - mean z) / sigma with sigma of the real vector; nothing where LayerNorm comes first."""
    if not step.norm_after:
        return vector
    real = step.residual[position] + step.attended[position]
    sigma = (((real - real.mean()) ** 2).mean() + step.norm.eps) ** 0.5
    return step.norm.weight * (vector - vector.mean()) / sigma


def naive_shares(step, residual_is_own):
    """max(0, |y| - |y - T_i|) over its sum; the residual belongs to the own position or stands last. [Q, K or K + 1]"""
    heads, queries, keys = step.weights.shape
    rows = []
    for q in range(queries):
        added = [sum(step.weights[h, q, k] * step.carried[h, k] for h in range(heads)) for k in range(keys)]
        if residual_is_own:
            added[q] = added[q] + step.residual[q]
        else:
            added.append(step.residual[q])
        y = step.result[q]
        shares = [max(0.0, float(y.abs().sum() - (y - through_norm(step, q, z)).abs().sum())) for z in added]
        own = [float(k == (q if residual_is_own else keys)) for k in range(len(shares))]
        rows.append([share / sum(shares) for share in shares] if sum(shares) > 0 else own)
    return torch.tensor(rows, dtype=torch.float64)


def naive_alti(trace):
    """P_l and C_l^x E for each decoder layer, and Q_l."""
    size_t, size_s = trace.cross[0].weights.shape[1:]
    encoder = torch.eye(size_s, dtype=torch.float64)
    for step in trace.encoder:
        encoder = naive_shares(step, True) @ encoder
    p, q = torch.zeros(size_t, size_s, dtype=torch.float64), torch.eye(size_t, dtype=torch.float64)
    found = []
    for own, cross in zip(trace.decoder, trace.cross, strict=True):
        shares, own_shares = naive_shares(cross, False), naive_shares(own, True)
        residual = torch.diag(shares[:, -1])
        p = shares[:, :-1] @ encoder + residual @ own_shares @ p
        q = residual @ own_shares @ q
        found.append((p, shares[:, :-1] @ encoder, q))
    return found


def test_contributions_are_those_of_the_formulas(model, encoded, monkeypatch):
    batch = model.batch(encoded)
    for cells in (contributions.CELLS, 1):  # in one chunk, and row by row
        monkeypatch.setattr(contributions, "CELLS", cells)
        evidence = Contributions().compute(model, batch)
        shares = source_shares(model, batch)
        view = PrefixView(model)
        square = view.batch([view.encode_pair(pair.pair) for pair in encoded])
        over_prefix = Contributions().compute(view, square)
        for row, pair in enumerate(encoded):
            for layer, (p, cross, q) in enumerate(naive_alti(naive.run(model, pair))):
                torch.testing.assert_close(naive.rows_of(evidence["decoder"][layer], batch, row), p, **CLOSE)
                torch.testing.assert_close(naive.rows_of(evidence["cross"][layer], batch, row), cross, **CLOSE)
                torch.testing.assert_close(naive.rows_of(over_prefix["decoder"][layer], square, row), q, **CLOSE)
                torch.testing.assert_close((p.sum(1) + q.sum(1)), torch.ones(len(p), dtype=torch.float64))
            torch.testing.assert_close(shares[row, : len(pair.target)], 1 - q.sum(1), **CLOSE)


def test_methods_read_layers_and_scopes(model, encoded):
    batch = model.batch(encoded)
    evidence = Contributions().compute(model, batch)
    for scope in ("decoder", "cross"):
        for layer in range(2):
            scores = make_method(f"alti:scope={scope}:layer={layer}").scores(model, batch)
            assert torch.equal(scores, evidence[scope][layer])
    with pytest.raises(UsageError, match="unknown scope 'encoder'"):
        make_method("alti:scope=encoder")


def test_self_attention_stays_causal(model, encoded):
    block = insides(model, model.batch(encoded)).decoder[1]
    shares = contributions.self_contributions(block)
    assert not shares.triu(1).any()


def test_a_position_without_contributions_is_made_of_itself(model, encoded):
    found = insides(model, model.batch(encoded))
    for block, shares in (
        (found.decoder[0], contributions.self_contributions),
        (found.cross[0], lambda block: contributions.cross_contributions(block)[1]),
    ):
        # A result that every summand leads away from.
        block.before = torch.zeros_like(block.before)
        block.after = torch.zeros_like(block.after)
        block.attended = torch.zeros_like(block.attended)
        result = shares(block)
        expected = torch.eye(result.shape[-1]).expand(result.shape) if result.dim() == 3 else torch.ones(result.shape)
        assert torch.equal(result, expected.double())
