"""Occlusion, omission and resampling against one forced pass at a time, and captum."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from align.methods import make_method, occlusion
from align.methods.draws import WordDrawer, read_word_counts
from align.models.inside import word_counts
from data.bitext import Pair
from data.errors import DataError, ModelError, UsageError
from tests.tiny import tiny_model, tiny_pairs

CLOSE = {"atol": 1e-8, "rtol": 1e-6}


@pytest.fixture(scope="module", params=[False, True], ids=["post-norm", "pre-norm"])
def model(request):
    flag = request.param
    return tiny_model(encoder_normalize_before=flag, decoder_normalize_before=flag)


@pytest.fixture(scope="module")
def encoded(model):
    return [model.encode_pair(pair) for pair in tiny_pairs(5)]


def log_probs(model, pair, embeddings=None):
    """One pass for one pair. [T]"""
    batch = model.batch([pair])
    return model.log_probs(batch, model.embed(batch) if embeddings is None else embeddings[None])[0]


def groups(pair, unit):
    """Columns that go together."""
    columns = [s for s, word in enumerate(pair.source_word_of) if word >= 0]
    if unit == "piece":
        return [[s] for s in columns]
    return [[s for s in columns if pair.source_word_of[s] == word] for word in range(len(pair.source_words))]


def check(model, encoded, method, naive):
    batch = model.batch(encoded)
    scores = method.scores(model, batch)
    for row, pair in enumerate(encoded):
        rows = torch.zeros(len(pair.target), len(pair.source), dtype=torch.float64)
        for columns in groups(pair, method.options().get("unit", "word")):
            rows[:, columns[0]] = naive(pair, columns)
        found = scores[row][batch.target_mask[row]][:, batch.source_mask[row]]
        torch.testing.assert_close(found, rows, **CLOSE)


@pytest.mark.parametrize("pieces", [occlusion.PIECES, 40])
@pytest.mark.parametrize("unit", ["word", "piece"])
@pytest.mark.parametrize("baseline", ["zero", "unk", "pad", "mean"])
def test_occlusion_is_the_loss_of_one_pass(model, encoded, baseline, unit, pieces, monkeypatch):
    monkeypatch.setattr(occlusion, "PIECES", pieces)

    def naive(pair, columns):
        x = model.embed(model.batch([pair]))[0].clone()
        for column in columns:
            x[column] = model.baseline(baseline)
        return log_probs(model, pair) - log_probs(model, pair, x)

    check(model, encoded, make_method(f"occlusion:baseline={baseline}:unit={unit}:sign=signed"), naive)


def test_probabilities_in_place_of_their_logarithms(model, encoded):
    def naive(pair, columns):
        x = model.embed(model.batch([pair]))[0].clone()
        x[columns] = 0
        return log_probs(model, pair).exp() - log_probs(model, pair, x).exp()

    check(model, encoded, make_method("occlusion:objective=prob:sign=signed"), naive)


def test_occlusion_agrees_with_captum(model, encoded):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from captum.attr import FeatureAblation
    pair = encoded[0]
    batch = model.batch([pair])
    inputs = model.embed(batch)
    # captum numbers the features from 0: the words, and after them `</s>`, which is left out below.
    mask = torch.where(batch.source_word_of < 0, len(pair.source_words), batch.source_word_of)[..., None]
    ablation = FeatureAblation(lambda x: model.log_probs(batch, x))
    scores = make_method("occlusion:sign=signed").scores(model, batch)[0]
    for t in range(len(pair.target)):
        theirs = ablation.attribute(inputs, baselines=0, target=t, feature_mask=mask.expand_as(inputs))[0, :, 0]
        for columns in groups(pair, "word"):
            torch.testing.assert_close(scores[t, columns[0]], theirs[columns[0]], **CLOSE)


@pytest.mark.parametrize("unit", ["word", "piece"])
def test_omission_is_the_loss_of_a_shorter_sentence(model, encoded, unit):
    def naive(pair, columns):
        tokens = tuple(token for n, token in enumerate(pair.pair.source) if n not in columns)
        # Without the last piece of a word the pieces before it would join the next word, but the ids are the same.
        shorter = model.encode_pair(Pair(0, tokens, pair.pair.target))
        if not tokens:
            shorter = replace(shorter, status="ok")
        return log_probs(model, pair) - log_probs(model, shorter)

    check(model, encoded, make_method(f"omission:unit={unit}:sign=signed"), naive)


@pytest.mark.parametrize("pad_left", [False, True])
def test_omission_and_resampling_whatever_the_side_of_padding(model, encoded, pad_left, monkeypatch):
    for spec in ("omission:sign=signed", "resampling:sign=signed"):
        method = make_method(spec)
        alone = [method.scores(model, model.batch([pair]))[0] for pair in encoded]
        monkeypatch.setattr(model, "pad_left", pad_left)
        batch = model.batch(encoded)
        together = method.scores(model, batch)
        for row, expected in enumerate(alone):
            found = together[row][batch.target_mask[row]][:, batch.source_mask[row]]
            torch.testing.assert_close(found, expected, **CLOSE)


def test_resampling_is_the_mean_loss_over_the_words_drawn(model, encoded, tmp_path):
    path = tmp_path / "words"
    path.write_text("s1 3\ns2\ns3 2\n")
    method = make_method("resampling:draws=3:seed=5:sign=signed")
    method = type(method)(**{**method.options(), "words": str(path)})
    words, weights = ["s1", "s2", "s3"], np.array([3, 1, 2]) / 6

    drawn = {}
    for pair in encoded:
        generator = np.random.default_rng([5, pair.pair.id])
        for columns in groups(pair, "word"):
            for _ in range(3):
                word = None
                while word is None or [model.source_dictionary.index(word)] == [pair.source[c] for c in columns]:
                    word = words[int((generator.random() >= weights.cumsum()).sum())]
                drawn.setdefault((pair.pair.id, columns[0]), []).append(word)

    def naive(pair, columns):
        losses = []
        for word in drawn[pair.pair.id, columns[0]]:
            tokens = list(pair.pair.source)
            tokens[columns[0] : columns[-1] + 1] = [word]
            other = model.encode_pair(Pair(0, tuple(tokens), pair.pair.target))
            losses.append(log_probs(model, pair) - log_probs(model, other))
        return sum(losses) / 3

    check(model, encoded, method, naive)


def test_costs_count_words_or_pieces(model):
    pair = model.encode_pair(Pair(0, ("s1", "s1@@", "s2", "s3"), ("t1",)))
    costs = {spec: make_method(spec).evidence.passes(pair).total for spec in ("occlusion", "omission:unit=piece")}
    assert costs == {"occlusion": 1 + 3, "omission:unit=piece": 1 + 4}
    assert make_method("resampling:draws=4").evidence.passes(pair).total == 1 + 4 * 3


def test_words_are_drawn_by_their_counts(model, tmp_path):
    path = tmp_path / "words"
    path.write_text("s1\ns2 3\n")
    draw = WordDrawer(model, str(path))
    generator = np.random.default_rng(0)
    drawn = Counter(draw(generator, [0]) for _ in range(2000))
    first, second = ((model.source_dictionary.index(word),) for word in ("s1", "s2"))
    assert set(drawn) == {first, second}
    assert 0.22 < drawn[first] / 2000 < 0.28


def test_the_dictionary_is_the_default_list(model):
    assert word_counts(model) == {f"s{n}": 10.0 for n in range(12)}


def test_a_list_without_short_words(model, tmp_path):
    path = tmp_path / "words"
    path.write_text("s1\n")
    draw = WordDrawer(model, str(path))
    with pytest.raises(ModelError, match="no word of 1 or fewer pieces"):
        draw(np.random.default_rng(0), [model.source_dictionary.index("s1")])


def test_the_best_piece_is_that_of_the_best_word(model, encoded):
    batch = model.batch(encoded)
    words = make_method("occlusion:sign=signed").scores(model, batch)
    for row, pair in enumerate(encoded):
        for columns in groups(pair, "word"):
            assert not words[row][:, columns[1:]].any()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("house 12\n\n", "words:2: expected a word and its count"),
        ("house twelve\n", "words:1: expected a word and its count"),
        ("house 0\n", "words:1: expected a word and its count"),
        ("a b 3\n", "words:1: expected a word and its count"),
        ("", "words: holds no words"),
    ],
)
def test_bad_word_lists(tmp_path, text, message):
    path = tmp_path / "words"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        read_word_counts(str(path))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("occlusion:baseline=one", "unknown baseline 'one'"),
        ("occlusion:unit=letter", "unknown unit 'letter'"),
        ("omission:objective=logit", "unknown objective 'logit'"),
        ("omission:sign=negative", "unknown sign 'negative'"),
        ("resampling:draws=0", "draws must be at least 1"),
    ],
)
def test_options_out_of_range(spec, message):
    with pytest.raises(UsageError, match=message):
        make_method(spec)
