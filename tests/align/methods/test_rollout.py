"""Rollout against sums over all paths, flow against the minimum cut of small graphs by trying them all."""

from __future__ import annotations

from itertools import product

import naive
import numpy as np
import pytest

from align.extract import Extraction, extract
from align.methods import make_method
from align.methods.rollout import attention_flow
from align.models.prefix import PrefixView
from data.errors import UsageError
from tests.tiny import tiny_model, tiny_pairs


@pytest.fixture(scope="module", params=[False, True], ids=["post-norm", "pre-norm"])
def model(request):
    flag = request.param
    return tiny_model(encoder_normalize_before=flag, decoder_normalize_before=flag)


@pytest.fixture(scope="module")
def encoded(model):
    return [model.encode_pair(pair) for pair in tiny_pairs(4)]


def mixed(step):
    """Half attention, half the position itself, a cell at a time. [Q, Q]"""
    mean = step.weights.mean(0)
    cells = [[(float(mean[q, k]) + (q == k)) / 2 for k in range(mean.shape[1])] for q in range(mean.shape[0])]
    return np.array(cells)


def naive_encoder(trace):
    """Sum over all paths from a top position to a source piece of the product of its steps. [S, S]"""
    maps = [mixed(step) for step in trace.encoder][::-1]
    size = len(maps[0])
    rollout = np.zeros((size, size))
    for path in product(range(size), repeat=len(maps) + 1):
        rollout[path[0], path[-1]] += np.prod([m[a, b] for m, a, b in zip(maps, path, path[1:], strict=False)])
    return rollout


def naive_decoder(trace, layer):
    """What decoder position t after `layer` is made of, [T, S + T]: recursion on the definition."""
    size_t, size_s = trace.cross[0].weights.shape[1:]
    if layer < 0:
        return np.concatenate([np.zeros((size_t, size_s)), np.eye(size_t)], axis=1)
    below, own = naive_decoder(trace, layer - 1), mixed(trace.decoder[layer])
    sources = trace.cross[layer].weights.mean(0).numpy() @ naive_encoder(trace)
    rows = []
    for t in range(size_t):
        before = sum(own[t, u] * below[u] for u in range(size_t))
        rows.append(before / 2 + np.concatenate([sources[t] / 2, np.zeros(size_t)]))
    return np.array(rows)


def test_rollout_is_that_of_the_definition(model, encoded):
    batch = model.batch(encoded)
    view = PrefixView(model)
    square = view.batch([view.encode_pair(pair.pair) for pair in encoded])
    for layer in range(model.layers):
        over_prefix = make_method(f"rollout:layer={layer}").scores(view, square)
        cross = make_method(f"rollout:scope=cross:layer={layer}").scores(model, batch)
        decoder = make_method(f"rollout:layer={layer}").scores(model, batch)
        for row, pair in enumerate(encoded):
            trace = naive.run(model, pair)
            expected = trace.cross[layer].weights.mean(0).numpy() @ naive_encoder(trace)
            np.testing.assert_allclose(naive.rows_of(cross, batch, row), expected, atol=1e-9)
            full = naive_decoder(trace, layer)
            np.testing.assert_allclose(full.sum(1), 1)
            size_s = len(pair.source)
            np.testing.assert_allclose(naive.rows_of(decoder, batch, row), full[:, :size_s], atol=1e-9)
            np.testing.assert_allclose(naive.rows_of(over_prefix, square, row), full[:, size_s:], atol=1e-9)


def cheapest_cut(edges, nodes, start, end):
    """Least capacity that parts `start` from `end`, by trying every set of nodes (max-flow min-cut theorem)."""
    others = [n for n in range(nodes) if n not in (start, end)]
    best = np.inf
    for sides in product((False, True), repeat=len(others)):
        near = {start} | {n for n, side in zip(others, sides, strict=True) if side}
        best = min(best, sum(c for a, b, c in edges if a in near and b not in near))
    return best


def test_flow_is_the_cheapest_cut():
    generator = np.random.default_rng(0)

    def weights(rows, columns, causal=False):
        found = generator.random((rows, columns)) ** 3
        found = np.tril(found) if causal else found
        return found / found.sum(1, keepdims=True)

    # Nodes: source 0 1, encoder output 2 3, decoder input 4 5, after self-attention 6 7, after cross-attention 8 9.
    encoder, own, cross = weights(2, 2), weights(2, 2, causal=True), weights(2, 2)
    edges = []
    for a, b in product(range(2), repeat=2):
        edges.append((2 + a, b, (encoder[a, b] + (a == b)) / 2))
        edges.append((6 + a, 4 + b, (own[a, b] + (a == b)) / 2))
        edges.append((8 + a, 2 + b, cross[a, b] / 2))
        if a == b:
            edges.append((8 + a, 6 + b, 0.5))
    found = attention_flow([encoder], [own], [cross])
    expected = [[cheapest_cut(edges, 10, 8 + t, s) for s in range(2)] for t in range(2)]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_flow_through_two_decoder_layers_is_the_cheapest_cut():
    # One target piece, two source pieces. Nodes: source 0 1, decoder input 2, then 3 and 4, 5 and 6 of its layers.
    first, second = np.array([[0.9, 0.1]]), np.array([[0.3, 0.7]])
    one = np.ones((1, 1))
    edges = [(3, 2, 1), (4, 3, 0.5), (4, 0, 0.45), (4, 1, 0.05), (5, 4, 1), (6, 5, 0.5), (6, 0, 0.15), (6, 1, 0.35)]
    found = attention_flow([], [one, one], [first, second])
    expected = [[cheapest_cut(edges, 7, 6, s) for s in range(2)]]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_allclose(found, [[0.6, 0.4]], atol=1e-5)


def test_flow_takes_the_attention_of_the_model(model, encoded):
    batch = model.batch(encoded)
    scores = make_method("flow:layer=0").scores(model, batch)
    for row, pair in enumerate(encoded):
        trace = naive.run(model, pair)
        encoder, decoder, cross = (
            [step.weights.mean(0).numpy() for step in part] for part in (trace.encoder, trace.decoder, trace.cross)
        )
        expected = attention_flow(encoder, decoder[:1], cross[:1])
        np.testing.assert_allclose(naive.rows_of(scores, batch, row), expected, atol=1e-5)


def test_long_pairs_have_no_flow(model, encoded):
    batch = model.batch(encoded)
    lengths = [max(len(pair.source), len(pair.target)) for pair in encoded]
    longest = sorted(set(lengths))[-2]
    scores = make_method(f"flow:longest={longest}").scores(model, batch)
    short = [length <= longest for length in lengths]
    assert any(short)
    finite = [found.finite for found in extract(scores, batch, Extraction())]
    assert finite == short


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("flow:layer=2", "decoder layers 0 to 1"),
        ("flow:longest=0", "longest must be at least 1"),
        ("rollout:scope=encoder", "unknown scope 'encoder'"),
    ],
)
def test_options_out_of_range(model, encoded, spec, message):
    with pytest.raises(UsageError, match=message):
        make_method(spec).scores(model, model.batch(encoded))


def test_flow_is_left_out_of_all():
    assert not make_method("flow").in_all
