"""What is read from inside a model: against a Transformer written out head by head, and leaving no trace."""

from __future__ import annotations

import dataclasses

import naive
import pytest
import torch

from align.methods import METHODS, make_method, usable_methods
from align.models.inside import insides, recorded, word_counts
from data.errors import ModelError
from tests.tiny import tiny_model, tiny_pairs


@pytest.fixture(scope="module", params=[False, True], ids=["post-norm", "pre-norm"])
def model(request):
    flag = request.param
    return naive.lively(tiny_model(encoder_normalize_before=flag, decoder_normalize_before=flag))


@pytest.fixture(scope="module")
def encoded(model):
    return [model.encode_pair(pair) for pair in tiny_pairs(4)]


def test_the_naive_transformer_is_the_model(model, encoded):
    for pair in encoded:
        batch = model.batch([pair])
        expected = model.log_probs(batch, model.embed(batch))[0]
        torch.testing.assert_close(naive.log_probs(naive.run(model, pair), pair), expected)


def test_blocks_hold_what_attention_computed(model, encoded):
    batch = model.batch(encoded)
    found = insides(model, batch)
    for row, pair in enumerate(encoded):
        trace = naive.run(model, pair)
        source, target = batch.source_mask[row], batch.target_mask[row]
        sides = {"encoder": (source, source), "decoder": (target, target), "cross": (target, source)}
        for part, (queries, keys) in sides.items():
            for block, step in zip(getattr(found, part), getattr(trace, part), strict=True):
                torch.testing.assert_close(block.weights[row][:, queries][:, :, keys], step.weights)
                torch.testing.assert_close(block.carried()[row][:, keys], step.carried)
                torch.testing.assert_close(block.residual[row, queries], step.residual)
                torch.testing.assert_close(block.attended[row, queries], step.attended)
                torch.testing.assert_close(block.result[row, queries], step.result)


def test_summands_add_up_to_the_result(model, encoded):
    found = insides(model, model.batch(encoded))
    for block in (*found.encoder, *found.decoder, *found.cross):
        carried = torch.einsum("bhqk,bhkd->bqkd", block.weights, block.carried())
        total = block.normalised(carried).sum(2) + block.normalised(block.residual)
        total = total + block.normalised(block.sublayer.output.bias.expand_as(block.residual))
        bias = block.sublayer.norm.bias if block.sublayer.norm_after else 0
        torch.testing.assert_close(total + bias, block.result)


def hooks(model):
    return [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.module.modules()]


def test_hooks_come_off_and_results_stay(model, encoded):
    batch = model.batch(encoded)
    before, expected = hooks(model), model.log_probs(batch, model.embed(batch))
    with recorded(model):
        assert torch.equal(model.log_probs(batch, model.embed(batch)), expected)
    with pytest.raises(RuntimeError, match="stop"), recorded(model):
        raise RuntimeError("stop")
    assert hooks(model) == before


class Closed:
    """A model that shows nothing of its inside."""

    name, layers = "closed", 2

    def __init__(self, model):
        self.embed, self.encode, self.decode = model.embed, model.encode, model.decode


def test_models_that_show_nothing(model, encoded):
    batch = model.batch(encoded)
    inside = {"alti", "attention-x-gradient", "lrp", "relevancy", "rollout", "vector-norm"}
    for name in (*inside, "flow"):
        with pytest.raises(ModelError, match="closed does not show its attention sublayers"):
            make_method(name).scores(Closed(model), batch)
        with pytest.raises(ModelError, match="closed does not show its attention sublayers"):
            make_method(name).check(Closed(model))
    left_out = {name for name, lack in usable_methods(Closed(model)).items() if lack is not None}
    assert left_out == inside | {"expected-gradients", "resampling"}
    assert set(usable_methods(model).values()) == {None}
    assert "flow" not in usable_methods(model)
    with pytest.raises(ModelError, match="closed brings no word frequencies"):
        word_counts(Closed(model))


def test_changed_attention_is_refused(model, encoded):
    layer = model.module.decoder.layers[0]
    layer.attn_ln = torch.nn.LayerNorm(8)
    try:
        with pytest.raises(ModelError, match="attn_ln changes what attention adds"):
            insides(model, model.batch(encoded))
    finally:
        layer.attn_ln = None


@pytest.mark.parametrize("pad_left", [False, True])
@pytest.mark.parametrize("spec", [*sorted(METHODS.keys() - {"mean"}), "mean(lrp,2*vector-norm)"])
def test_batches_order_and_padding_change_nothing(model, encoded, spec, pad_left, monkeypatch):
    method = make_method(spec)
    cheap = {"samples": 2, "steps": 2, "draws": 2, "sign": "signed"}
    method = dataclasses.replace(method, **{key: cheap[key] for key in cheap.keys() & method.options().keys()})
    monkeypatch.setattr(model, "pad_left", pad_left)
    batch = model.batch(encoded[::-1])
    together = method.scores(model, batch)
    assert together.shape == (len(encoded), batch.target.shape[1], batch.source.shape[1])
    for row, pair in enumerate(batch.pairs):
        alone = method.scores(model, model.batch([pair]))[0]
        torch.testing.assert_close(naive.rows_of(together, batch, row), alone, atol=1e-6, rtol=1e-5)
        assert alone.any()
