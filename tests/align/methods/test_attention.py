"""Attention methods: rows where the word is output or input, heads, layers."""

from __future__ import annotations

import pytest
import torch

from align.methods import compared_methods, make_method
from data.errors import UsageError
from tests.tiny import tiny_model, tiny_pairs


@pytest.fixture(scope="module")
def model():
    return tiny_model()


@pytest.fixture(scope="module")
def batch(model):
    return model.batch([model.encode_pair(pair) for pair in tiny_pairs()])


def test_awi_is_the_row_whose_input_is_the_piece(model, batch):
    awo = make_method("attention:layer=0").scores(model, batch)
    awi = make_method("attention:layer=0:position=awi").scores(model, batch)
    for row, pair in enumerate(batch.pairs):
        for t, piece in enumerate(pair.target):
            steps = [step for step, given in enumerate(pair.prefix) if step > 0 and step - 1 == t]
            if steps:
                assert pair.prefix[steps[0]] == piece
                assert torch.equal(awi[row, t], awo[row, steps[0]])
            else:
                assert not awi[row, t].any()


def test_heads_average_to_the_mean(model, batch):
    mean = make_method("attention:layer=1").scores(model, batch)
    heads = [make_method(f"attention:layer=1:heads={head}").scores(model, batch) for head in range(2)]
    assert torch.allclose(sum(heads) / 2, mean)
    assert not torch.allclose(heads[0], heads[1])


def test_rows_sum_to_one_over_real_pieces(model, batch):
    for method in compared_methods("attention:position=awo", model):
        rows = method.scores(model, batch).masked_fill(~batch.source_mask[:, None], 0).sum(-1)
        assert torch.allclose(rows[batch.target_mask], torch.ones_like(rows[batch.target_mask]), atol=1e-6)


def test_negative_layers_count_from_the_last(model, batch):
    last, same = (make_method(f"attention:layer={layer}").scores(model, batch) for layer in (1, -1))
    assert torch.equal(last, same)


def test_reading_shared_evidence_is_computing_it_alone(model, batch):
    methods = compared_methods("attention", model)
    assert len(methods) == 4
    shared = methods[0].evidence.compute(model, batch)
    for method in methods:
        assert torch.allclose(method.read(shared, batch), method.scores(model, batch), atol=1e-12)


@pytest.mark.parametrize("spec", ["attention:layer=2", "attention:layer=-3"])
def test_layers_out_of_range(model, batch, spec):
    with pytest.raises(UsageError, match="decoder layers 0 to 1"):
        make_method(spec).scores(model, batch)
    method = make_method(spec)
    evidence = method.evidence.compute(model, batch)
    with pytest.raises(UsageError, match="decoder layers 0 to 1"):
        method.read(evidence, batch)


def test_heads_out_of_range(model, batch):
    with pytest.raises(UsageError, match="heads 0 to 1"):
        make_method("attention:heads=2").scores(model, batch)
