"""Methods that look inside, on Hugging Face models: batches change nothing, and relevance is conserved."""

from __future__ import annotations

import dataclasses

import pytest
import torch

pytest.importorskip("transformers")

from align.methods import make_method, usable_methods
from align.methods.propagation import budget
from align.methods.relevance_rules import RelevanceRules
from align.models.hf_loading import load_huggingface
from align.models.huggingface import T5Model
from align.models.prefix import PrefixView
from tests.align.models.hf_tiny import FAMILIES, pairs

NAMES = ["fsmt", "m2m_100", "marian", "mbart", "mt5", "t5"]


@pytest.fixture(scope="module", params=NAMES)
def model(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    return load_huggingface(folder, **FAMILIES[request.param](folder), dtype=torch.float64)


@pytest.fixture(scope="module")
def encoded(model):
    return [model.encode_pair(pair) for pair in pairs(2, longest=3)]


def test_all_methods_but_those_that_draw_words_are_usable(model):
    assert {name for name, lack in usable_methods(model).items() if lack} == {"expected-gradients", "resampling"}


@pytest.mark.parametrize("name", ["alti", "attention-x-gradient", "flow", "lrp", "relevancy", "rollout", "vector-norm"])
def test_batches_change_nothing(model, encoded, name):
    method = make_method(name)
    batch = model.batch(encoded)
    together = method.scores(model, batch)
    for row, pair in enumerate(encoded):
        found = together[row][batch.target_mask[row]][:, batch.source_mask[row]]
        expected = method.scores(model, model.batch([pair]))[0]
        torch.testing.assert_close(found, expected, atol=2e-6, rtol=1e-5)
        assert expected.any()


def test_drawn_words_stand_for_words_of_a_list(model, encoded, tmp_path):
    path = tmp_path / "words"
    path.write_text("the 3\nis 2\n")
    batch = model.batch(encoded)
    for name in ("expected-gradients", "resampling"):
        method = dataclasses.replace(make_method(name), words=str(path), sign="signed")
        assert method.check(model) is None
        scores = method.scores(model, batch)
        assert scores.isfinite().all()
        assert scores.any()


def test_the_prefix_is_explained_by_slopes(model, encoded):
    view = PrefixView(model)
    pair = encoded[0]
    seen = view.encode_pair(pair.pair)
    found = make_method("gradient-x-input:sign=signed").scores(view, view.batch([seen]))[0]
    batch = model.batch([pair])
    # T5 normalises in float32, where smaller steps drown in rounding.
    step = 1e-2 if isinstance(model, T5Model) else 1e-5
    source = model.embed(batch)  # before the table is hooked, which some families share with the encoder

    def log_probs(position, factor):
        scale = torch.ones(1, len(pair.prefix), 1, dtype=torch.float64)
        scale[:, position] = factor
        handle = model.prefix_vocabulary().table.register_forward_hook(lambda module, inputs, output: output * scale)
        try:
            return model.log_probs(batch, source)[0].detach()
        finally:
            handle.remove()

    for position in range(len(pair.prefix)):
        slope = (log_probs(position, 1 + step) - log_probs(position, 1 - step)) / (2 * step)
        torch.testing.assert_close(found[:, position], slope, atol=1e-4, rtol=1e-3)
    assert found.any()


@pytest.mark.parametrize("options", ["", ":attention=held", ":linear=alpha-beta"])
def test_relevance_is_conserved(model, encoded, options):
    for pair in encoded:
        assert budget(model, pair, make_method(f"lrp{options}")).error.max() < 1e-11


def test_rules_keep_values_and_leave_nothing(model, encoded):
    from transformers.activations import NewGELUActivation

    before = NewGELUActivation.forward
    batch = model.batch(encoded)
    expected = model.log_probs(batch, model.embed(batch))
    with RelevanceRules():
        torch.testing.assert_close(model.log_probs(batch, model.embed(batch)), expected, atol=1e-10, rtol=1e-10)
    assert NewGELUActivation.forward is before
    assert torch.equal(model.log_probs(batch, model.embed(batch)), expected)
