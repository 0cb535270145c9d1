"""Ensembles: averaged probabilities, and gradients of them."""

from __future__ import annotations

import pytest
import torch

from align.methods import make_method
from align.methods.rows import gradient_rows
from align.models.ensemble import Ensemble
from data.bitext import Pair
from data.errors import ModelError
from tests.tiny import tiny_model, tiny_pairs


@pytest.fixture(scope="module")
def members():
    return [tiny_model(seed=0), tiny_model(seed=1)]


@pytest.fixture(scope="module")
def ensemble(members):
    return Ensemble(members)


@pytest.fixture(scope="module")
def encoded(ensemble):
    return [ensemble.encode_pair(pair) for pair in tiny_pairs(3)]


def test_probabilities_are_averaged(ensemble, members, encoded):
    batch = ensemble.batch(encoded)
    ours = ensemble.log_probs(batch, ensemble.embed(batch)).exp()
    theirs = sum(m.log_probs(batch, m.embed(batch)).exp() for m in members) / 2
    assert torch.allclose(ours[batch.target_mask], theirs[batch.target_mask], atol=1e-12)


def test_gradients_by_finite_differences(ensemble, encoded):
    batch = ensemble.batch(encoded[:1])
    x = ensemble.embed(batch)
    g, _ = gradient_rows(ensemble, batch, x, lambda chunk: chunk.permute(3, 0, 1, 2))
    for d in (0, 7, 8, 15):
        moved = x.clone()
        moved[0, 0, d] += 1e-5
        up = ensemble.log_probs(batch, moved)
        moved[0, 0, d] -= 2e-5
        slope = (up - ensemble.log_probs(batch, moved))[0] / 2e-5
        assert torch.allclose(g[d, 0, :, 0], slope, atol=1e-6)


def test_attention_is_the_mean(ensemble, members, encoded):
    batch = ensemble.batch(encoded)
    method = make_method("attention:layer=1")
    theirs = sum(method.scores(m, batch) for m in members) / 2
    assert torch.allclose(method.scores(ensemble, batch), theirs, atol=1e-12)


def test_two_of_a_kind_are_the_one(members, encoded):
    twice = Ensemble([members[0], members[0]])
    batch = twice.batch(encoded)
    method = make_method("gradient-x-input:sign=signed")
    assert torch.allclose(method.scores(twice, batch), method.scores(members[0], batch), atol=1e-9)


def test_members_that_do_not_fit(members):
    with pytest.raises(ModelError, match="same number of decoder layers"):
        Ensemble([members[0], tiny_model(decoder_layers=1)])
    wide = Ensemble([members[0], tiny_model(encoder_embed_dim=16, decoder_embed_dim=16)])
    batch = wide.batch([wide.encode_pair(pair) for pair in tiny_pairs(1)])
    with pytest.raises(ModelError, match="same width"):
        wide.encode(batch, wide.embed(batch))
    assert Ensemble(members).encode_pair(Pair(0, (), ())).status == "empty"
