"""fairseq's architectures, trained by `fairseq-train`: its ids, attention, log-probabilities; true gradients."""

from __future__ import annotations

import pytest
import torch

from align.methods import make_method
from align.methods.rows import gradient_rows
from data.errors import ModelError, UsageError
from tests.fairseq_training import load_trained, observed, trained, validation_pairs

FAMILIES = ("transformer", "transformer_align", "lstm", "fconv", "lightconv", "dynamicconv")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("trained"), *FAMILIES)


@pytest.fixture(scope="module", params=FAMILIES)
def family(request):
    return request.param


@pytest.fixture(scope="module")
def model(folder, family):
    return load_trained(folder, family)


@pytest.fixture(scope="module")
def encoded(model, folder):
    return [model.encode_pair(pair) for pair in validation_pairs(folder)[:3]]


def attention_of_fairseq(model, heads):
    """Of all weights [L, B, H, T, S], what the model itself returns: [B, T, S]."""
    returned = {"FConvModel": heads.mean((0, 2)), "TransformerAlignModel": heads[0][:, 0]}
    return returned.get(type(model.module).__name__, heads[-1].mean(1))


def test_ids_and_answers_are_those_of_training(folder, family, model):
    mine = {(pair.source, pair.prefix, pair.target): pair for pair in map(model.encode_pair, validation_pairs(folder))}
    rows = observed(folder, family)
    assert len(rows) > 1
    for row in rows:
        batch = model.batch([mine[row.source, row.prefix, row.target]])
        assert torch.allclose(model.log_probs(batch, model.embed(batch))[0], row.log_probs.double(), atol=1e-5)
        weights = attention_of_fairseq(model, model.cross_attention(batch, range(model.layers)))
        assert torch.allclose(weights[0], row.attention.double(), atol=1e-5)


def test_log_probs_are_those_of_fairseq(model, encoded):
    batch = model.batch(encoded[:1])
    logits, _ = model.module(batch.source, batch.source_mask.sum(1), batch.prefix)
    expected = logits.log_softmax(-1).gather(-1, batch.target[..., None])[..., 0]
    assert torch.allclose(model.log_probs(batch, model.embed(batch)), expected, atol=1e-6)


def test_gradients_by_finite_differences(model, encoded):
    batch = model.batch(encoded[:1])
    x = model.embed(batch)
    g, _ = gradient_rows(model, batch, x, lambda chunk: chunk.permute(3, 0, 1, 2))  # [D, B, T, S]
    step = 1e-5
    for s in range(x.shape[1]):
        for d in range(x.shape[2]):
            moved = x.clone()
            moved[0, s, d] += step
            up = model.log_probs(batch, moved)
            moved[0, s, d] -= 2 * step
            slope = (up - model.log_probs(batch, moved))[0] / (2 * step)
            assert torch.allclose(g[d, 0, :, s], slope, atol=1e-5)


def test_attention_is_that_of_fairseq(model, encoded):
    batch = model.batch(encoded[:1])
    ours = attention_of_fairseq(model, model.cross_attention(batch, range(model.layers)))
    _, extra = model.module(batch.source, batch.source_mask.sum(1), batch.prefix)
    theirs = extra["attn"][0] if isinstance(extra, dict) else extra
    assert torch.allclose(ours, theirs.double(), atol=1e-6)
    with pytest.raises(UsageError, match="does not exist"):
        model.cross_attention(batch, [model.layers])


@pytest.mark.parametrize("spec", ["attention", "attention:position=awi", "gradient-x-input:sign=signed"])
def test_batching_changes_nothing(model, encoded, spec):
    method = make_method(spec)
    batch = model.batch(encoded)
    together = method.scores(model, batch)
    for row, pair in enumerate(encoded):
        alone = method.scores(model, model.batch([pair]))[0]
        real = together[row][batch.target_mask[row]][:, batch.source_mask[row]]
        assert torch.allclose(real, alone, atol=1e-6)


def test_what_a_family_lacks_is_said(model):
    if type(model.module).__name__ in ("TransformerModel", "TransformerAlignModel"):
        assert len(model.sublayers().cross) == 2
    else:
        with pytest.raises(ModelError, match="is no Transformer"):
            model.sublayers()
