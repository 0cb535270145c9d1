"""The mean of methods against its definition, and how it is written."""

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


@pytest.fixture(scope="module")
def encoded(model):
    return [model.encode_pair(pair) for pair in tiny_pairs(4)]


def twin(model, pair, parts):
    """Weighted mean of shares, a cell at a time. [T, S]"""
    batch = model.batch([pair])
    words = [word >= 0 for word in pair.source_word_of]
    total = torch.zeros(len(pair.target), len(pair.source), dtype=torch.float64)
    for weight, spec in parts:
        scores = make_method(spec).scores(model, batch)[0].tolist()
        for t, row in enumerate(scores):
            positive = [max(score, 0) * word for score, word in zip(row, words, strict=True)]
            for s, score in enumerate(positive):
                if sum(positive):
                    total[t, s] += weight * score / sum(positive)
    return total / sum(weight for weight, _ in parts)


PARTS = [(2.0, "gradient-x-input"), (1.0, "vector-norm:layer=0:position=awi"), (0.5, "gradient-norm")]
SPEC = "mean(2*gradient-x-input, vector-norm:layer=0:position=awi,0.5*gradient-norm)"


def test_mean_is_that_of_shares(model, encoded):
    batch = model.batch(encoded)
    together = make_method(SPEC).scores(model, batch)
    for row, pair in enumerate(encoded):
        found = naive.rows_of(together, batch, row)
        torch.testing.assert_close(found, twin(model, pair, PARTS), atol=1e-9, rtol=1e-7)
        assert found.any()


def test_listed_values_share_the_weight(model, encoded):
    batch = model.batch(encoded)
    listed = make_method("mean(gradient-norm,attention:layer=0|1:heads=0|1)").scores(model, batch)
    heads = [f"0.25*attention:layer={layer}:heads={head}" for layer in (0, 1) for head in (0, 1)]
    torch.testing.assert_close(listed, make_method(f"mean(gradient-norm,{','.join(heads)})").scores(model, batch))
    nested = make_method("mean(gradient-norm,mean(attention:layer=0|1:heads=0|1))").scores(model, batch)
    torch.testing.assert_close(listed, nested)


def test_a_method_reads_as_it_is_written(model):
    method = make_method(SPEC)
    assert str(method) == (
        "mean(2*gradient-x-input:sign=positive,1*vector-norm:layer=0:position=awi,0.5*gradient-norm:norm=l1)"
    )
    assert method.label == "mean(2*gradient-x-input,1*vector-norm:layer=0:position=awi,0.5*gradient-norm)"
    assert make_method(str(method)) == make_method(method.label) == method
    assert compared_methods(SPEC, model) == [method]
    assert method.measured == "saliency+attention+sensitivity"
    assert make_method("mean(lrp,gradient-x-input)").measured == "saliency"


def test_parts_share_evidence(encoded):
    pair = encoded[0]
    single, both = (make_method(spec).evidence for spec in ("gradient-norm", "mean(gradient-norm,gradient-x-input)"))
    assert both.passes(pair) == single.passes(pair)
    apart = make_method("mean(gradient-norm,attention)").evidence
    assert apart.passes(pair).total == single.passes(pair).total + 1


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("mean", "mean takes methods in brackets"),
        ("mean()", "unknown method ''"),
        ("mean(lrp", "unknown method 'mean\\(lrp'"),
        ("mean(lrp))", "brackets of .* do not match"),
        ("mean(0*lrp)", "weights must be above 0"),
        ("mean(lrp,smothgrad)", "did you mean 'smoothgrad'"),
        ("mean(lrp:epsilon=1|x)", "option epsilon takes a number"),
    ],
)
def test_what_is_no_mean(spec, message):
    with pytest.raises(UsageError, match=message):
        make_method(spec)
