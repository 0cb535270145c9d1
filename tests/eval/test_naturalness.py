"""The signs of unnatural input against one pass at a time."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from align.methods.erasure import word_spans
from data.bitext import Pair
from eval.erasure import make_corruptions
from eval.faithfulness import Plan, points
from eval.naturalness import naturalness
from eval.ngrams import NGrams
from tests.tiny import dictionary, tiny_model, tiny_module, tiny_pairs

PLAN = Plan(bins=(0.2, 0.5), seed=3)
PAIR = Pair(4, ("s1", "s2", "s3", "s4", "s5"), ("t1", "t2@@", "t3"))


@pytest.fixture(scope="module")
def model():
    return tiny_model()


@pytest.fixture(scope="module")
def reverse():
    from align.models.fairseq import FairseqModel
    from align.models.subwords import joined_bpe
    from tests.tiny import SOURCE, TARGET

    module, source, target = tiny_module(1, source=dictionary(TARGET), target=dictionary(SOURCE))
    return FairseqModel(module.double(), source, target, joined_bpe, joined_bpe, name="back", fingerprint="1" * 64)


def removed_sets(pair):
    words = np.random.default_rng([3, pair.pair.id]).permutation(list(word_spans(pair))).tolist()
    return [set(words[:k]) for k in points(len(words), PLAN.bins)[1:-1]]


def test_signs_by_loops(model, reverse):
    pair = model.encode_pair(Pair(4, PAIR.source, ("t1", "t3")))
    found = naturalness(model, reverse, pair, make_corruptions(model, ["delete"])["delete"], PLAN)
    distances, entropies, log_probs = [], [], []
    batch = model.batch([pair])
    clean = model.encode(batch, model.embed(batch))[0]
    for gone in removed_sets(pair):
        kept = [n for n in range(5) if n not in gone]
        shorter = model.batch([model.encode_pair(Pair(4, tuple(PAIR.source[n] for n in kept), ("t1", "t3")))])
        states = model.encode(shorter, model.embed(shorter))
        cosines = [float(clean[n] @ states[0, m] / clean[n].norm() / states[0, m].norm()) for m, n in enumerate(kept)]
        distances.append(1 - sum(cosines) / len(cosines))
        p = model.logits(shorter, model.decode(shorter, states)).softmax(-1)[0, :2]
        entropies.append(float(-(p * p.log()).sum(-1).mean()))
        back = reverse.batch([reverse.encode_pair(Pair(4, ("t1", "t3"), tuple(PAIR.source[n] for n in kept)))])
        log_probs.append(float(reverse.log_probs(back, reverse.embed(back)).sum() / (len(kept) + 1)))
    for sign, values in (("state_distance", distances), ("entropy", entropies), ("source_log_prob", log_probs)):
        assert found[sign] == (pytest.approx(sum(values)), len(values))


def test_the_clean_sentence(model, reverse):
    pair = model.encode_pair(Pair(4, PAIR.source, ("t1", "t3")))
    found = naturalness(model, reverse, pair, None, PLAN)
    assert found["state_distance"] == (pytest.approx(0, abs=1e-12), 1)
    back = reverse.batch([reverse.encode_pair(Pair(4, ("t1", "t3"), PAIR.source))])
    assert found["source_log_prob"] == (pytest.approx(float(reverse.log_probs(back, reverse.embed(back)).mean())), 1)


def test_vectors_and_pieces_are_no_text(model, reverse):
    blank = make_corruptions(model, ["zero"])["zero"]
    whole, pieces = (
        model.encode_pair(pair) for pair in (Pair(4, PAIR.source, ("t1",)), Pair(0, ("s1@@", "s2"), ("t1",)))
    )
    assert naturalness(model, reverse, whole, blank, PLAN)["source_log_prob"] == (0.0, 0.0)
    assert naturalness(model, reverse, pieces, None, PLAN)["source_log_prob"] == (0.0, 0.0)
    assert "source_log_prob" in naturalness(model, None, whole, blank, PLAN)


def test_source_under_an_ngram_model(model):
    pair = model.encode_pair(Pair(4, PAIR.source, ("t1", "t3")))
    unigrams = NGrams(1, {("s1",): (-1, 0), ("</s>",): (-0.5, 0), ("<unk>",): (-2, 0)})
    deleting, blank = (make_corruptions(model, [name])[name] for name in ("delete", "zero"))
    total, count = naturalness(model, None, pair, deleting, PLAN, unigrams)["source_ngrams"]
    kept = [[n for n in range(5) if n not in gone] for gone in removed_sets(pair)]
    expected = [-(0.5 + sum(1 if n == 0 else 2 for n in left)) * np.log(10) / (len(left) + 1) for left in kept]
    assert (total, count) == (pytest.approx(sum(expected)), len(kept))
    assert naturalness(model, None, pair, blank, PLAN, unigrams)["source_ngrams"] == (0.0, 0.0)
    assert naturalness(model, None, pair, None, PLAN)["source_ngrams"] == (0.0, 0.0)


@pytest.mark.parametrize("pad_left", [False, True])
def test_side_of_padding_changes_nothing(model, monkeypatch, pad_left):
    pair = model.encode_pair(tiny_pairs(1, seed=5)[0])
    corruption = make_corruptions(model, ["delete"])["delete"]
    expected = naturalness(model, None, pair, corruption, PLAN)
    monkeypatch.setattr(model, "pad_left", pad_left)
    found = naturalness(model, None, pair, corruption, PLAN)
    torch.testing.assert_close(torch.tensor(list(found.values())), torch.tensor(list(expected.values())))
