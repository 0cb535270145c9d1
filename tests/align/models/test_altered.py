"""Altered models: what changes, what must not, and that everything comes off again."""

from __future__ import annotations

import pytest
import torch

from align.methods import make_method
from align.models.altered import blocks, disturbed, randomised, rewired, shifted
from align.models.hf_loading import load_huggingface
from data.errors import ModelError
from tests.align.models.hf_tiny import FAMILIES
from tests.align.models.hf_tiny import pairs as hf_pairs
from tests.tiny import tiny_model, tiny_pairs

LAYERS = ["output", "decoder 1", "decoder 0", "encoder 1", "encoder 0", "embeddings"]


@pytest.fixture(scope="module", params=["post-norm", "tied", "pre-norm", "fsmt", "marian", "t5"])
def model(request, tmp_path_factory):
    settings = {
        "post-norm": {},
        "tied": {"share_decoder_input_output_embed": True},
        "pre-norm": {"encoder_normalize_before": True, "decoder_normalize_before": True},
    }
    if request.param in settings:
        return tiny_model(**settings[request.param])
    folder = tmp_path_factory.mktemp(request.param)
    return load_huggingface(folder, **FAMILIES[request.param](folder), dtype=torch.float64)


@pytest.fixture(scope="module")
def batch(model):
    text = tiny_pairs(4) if model.name == "tiny" else hf_pairs(3)
    return model.batch([model.encode_pair(pair) for pair in text])


def log_probs(model, batch):
    return model.log_probs(batch, model.embed(batch))


def weights(model):
    return {id(p): p.clone() for _, p in model.module.named_parameters()}


def test_blocks_hold_every_weight_from_the_output_down(model):
    found = blocks(model)
    assert list(found) == LAYERS
    held = {id(getattr(*slot)) for slots in found.values() for _, slot in slots}
    assert held == {id(p) for p in model.module.parameters()}
    assert any("output_projection" in path or "lm_head" in path for path, _ in found["output"])


@pytest.mark.parametrize("names", [("output",), ("decoder 1",), ("encoder 0", "embeddings"), tuple(LAYERS)])
def test_random_weights_change_their_block_only_and_go_again(model, batch, names):
    before, expected = weights(model), log_probs(model, batch)
    embedded = model.embed(batch)
    states = model.encode(batch, embedded)
    with randomised(model, names, 0):
        changed = log_probs(model, batch)
        assert not torch.allclose(changed, expected)
        assert torch.equal(model.embed(batch), embedded) == ("embeddings" not in names)
        if not any("enc" in name or "emb" in name for name in names):
            torch.testing.assert_close(model.encode(batch, embedded), states)
    with randomised(model, names, 0):
        assert torch.equal(log_probs(model, batch), changed)
    with randomised(model, names, 1):
        assert not torch.allclose(log_probs(model, batch), changed)
    with pytest.raises(RuntimeError, match="stop"), randomised(model, names, 0):
        raise RuntimeError("stop")
    assert torch.equal(log_probs(model, batch), expected)
    after = weights(model)
    assert all(torch.equal(after[key], value) for key, value in before.items())


def test_a_rewired_model_computes_the_same_by_other_vectors(model, batch):
    expected = log_probs(model, batch)
    value = model.sublayers().cross[0].value
    before = value.weight.clone()
    with rewired(model, 0):
        assert not torch.allclose(value.weight, before)
        torch.testing.assert_close(log_probs(model, batch), expected, atol=1e-9, rtol=1e-9)
    assert torch.equal(value.weight, before)
    assert torch.equal(log_probs(model, batch), expected)


def test_a_shifted_model_computes_the_same(model, batch):
    expected, embedded = log_probs(model, batch), model.embed(batch)
    vector = torch.linspace(-1, 2, model.width, dtype=torch.float64)
    unknown = model.baseline("unk")
    with shifted(model, vector):
        torch.testing.assert_close(model.embed(batch), embedded + vector)
        torch.testing.assert_close(log_probs(model, batch), expected, atol=1e-9, rtol=1e-9)
        torch.testing.assert_close(model.baseline("unk"), unknown + vector)
        assert not model.baseline("zero").any()
    with pytest.raises(RuntimeError, match="stop"), shifted(model, vector):
        raise RuntimeError("stop")
    assert torch.equal(log_probs(model, batch), expected)
    assert not {"embed", "encode", "baseline"} & set(vars(model))


def test_noise_is_added_to_the_pieces_of_its_sentence(model, batch, monkeypatch):
    torch.manual_seed(0)
    noise = {p.pair.id: (p.source, torch.randn(len(p.source), model.width, dtype=torch.float64)) for p in batch.pairs}
    embedded = model.embed(batch)
    for left in (False, True):
        monkeypatch.setattr(model, "pad_left", left)
        again = model.batch(batch.pairs[::-1])
        with disturbed(model, noise):
            found = model.embed(again)
        for row, pair in enumerate(again.pairs):
            other = batch.pairs.index(pair)
            expected = embedded[other, batch.source_mask[other]] + noise[pair.pair.id][1]
            torch.testing.assert_close(found[row, again.source_mask[row]], expected)
    with disturbed(model, noise), pytest.raises(ModelError, match="changes the words"):
        make_method("omission").scores(model, batch)
    assert torch.equal(model.embed(batch), embedded)


def test_models_without_layers_are_refused():
    class Bare:
        name = "bare"

    with pytest.raises(ModelError, match="bare has no encoder and decoder layers"):
        blocks(Bare())
