"""Vector norms against the formula, head by head."""

from __future__ import annotations

import naive
import pytest
import torch

from align.methods import compared_methods, make_method
from data.errors import UsageError
from tests.tiny import tiny_model, tiny_pairs


@pytest.fixture(scope="module")
def model():
    return naive.lively(tiny_model())


def naive_norms(step):
    """|| sum_h a_h[t, s] f_h(s) ||, a cell at a time. [T, S]"""
    heads, size_t, size_s = step.weights.shape
    norms = torch.zeros(size_t, size_s, dtype=torch.float64)
    for t in range(size_t):
        for s in range(size_s):
            vector = sum(step.weights[h, t, s] * step.carried[h, s] for h in range(heads))
            norms[t, s] = sum(float(x) ** 2 for x in vector) ** 0.5
    return norms


def test_norms_are_those_of_the_formula(model):
    encoded = [model.encode_pair(pair) for pair in tiny_pairs(4)]
    batch = model.batch(encoded)
    for layer in range(model.layers):
        awo = make_method(f"vector-norm:layer={layer}").scores(model, batch)
        awi = make_method(f"vector-norm:layer={layer}:position=awi").scores(model, batch)
        for row, pair in enumerate(encoded):
            expected = naive_norms(naive.run(model, pair).cross[layer])
            torch.testing.assert_close(naive.rows_of(awo, batch, row), expected, atol=1e-7, rtol=1e-6)
            shifted = torch.cat([expected[1:], torch.zeros(1, expected.shape[1])])
            torch.testing.assert_close(naive.rows_of(awi, batch, row), shifted, atol=1e-7, rtol=1e-6)


def test_comparison_goes_through_layers_and_positions(model):
    methods = compared_methods("vector-norm", model)
    assert len(set(methods)) == 2 * model.layers
    assert len({method.evidence for method in methods}) == 1


@pytest.mark.parametrize("layer", [2, -3])
def test_layers_out_of_range(model, layer):
    batch = model.batch([model.encode_pair(pair) for pair in tiny_pairs(1)])
    with pytest.raises(UsageError, match="decoder layers 0 to 1"):
        make_method(f"vector-norm:layer={layer}").scores(model, batch)


def test_unknown_position():
    with pytest.raises(UsageError, match="unknown position 'awj'"):
        make_method("vector-norm:position=awj")
