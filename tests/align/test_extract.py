"""Pooling, masking and choosing links, against loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from align.extract import Extraction, extract, row_shares
from align.matrix import apply_punctuation_rule, is_punctuation, mask_pieces, pool_words
from align.models.base import Batch, Encoded
from align.models.subwords import NO_WORD
from data.bitext import Pair
from data.errors import UsageError


def batch_of(
    *sides: tuple[list[int], list[int]], words: tuple[tuple[str, ...], tuple[str, ...]] | None = None
) -> Batch:
    """A batch from the word indices of source and target pieces of each pair."""
    pairs = []
    for number, (source, target) in enumerate(sides):
        names = words or tuple(tuple(f"w{n}" for n in range(max(side) + 1)) for side in (source, target))
        ids = (tuple(range(4, 4 + len(source))), tuple(range(4, 4 + len(target))))
        pairs.append(
            Encoded(Pair(number, *names), *names, *ids, (2, *ids[1][:-1]), tuple(source), tuple(target), unknown=0)
        )

    def padded(rows, fill):
        width = max(map(len, rows))
        return torch.tensor([[*row, *[fill] * (width - len(row))] for row in rows])

    def real(rows):
        return padded([[1] * len(row) for row in rows], 0).bool()

    sources, targets = [list(p.source_word_of) for p in pairs], [list(p.target_word_of) for p in pairs]
    return Batch(
        tuple(pairs),
        padded([p.source for p in pairs], 1),
        real(sources),
        padded(sources, NO_WORD),
        padded([p.prefix for p in pairs], 1),
        padded([p.target for p in pairs], 1),
        real(targets),
        padded(targets, NO_WORD),
    )


TWO = (([0, 0, 1, 2, -1], [0, 1, 1, -1]), ([0, 1, -1], [0, 0, -1]))


def naive_pool(scores, source, target):
    """W[j, i] = mean over pieces t of word j of the sum over pieces s of word i."""
    result = np.zeros((max(target) + 1, max(source) + 1))
    for j in range(result.shape[0]):
        rows = [t for t, word in enumerate(target) if word == j]
        for i in range(result.shape[1]):
            for t in rows:
                for s, word in enumerate(source):
                    if word == i:
                        result[j, i] += scores[t, s] / len(rows)
    return result


def naive_piece_links(scores, source, target, keep):
    links = set()
    for t, j in enumerate(target):
        if j == -1:
            continue
        allowed = [s for s in range(len(source)) if keep or source[s] != -1]
        best = max(allowed, key=lambda s: (scores[t, s], -s))
        if scores[t, best] > 0 and source[best] != -1:
            links.add((source[best], j))
    return links


def random_scores(batch, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(*batch.target.shape, batch.source.shape[1])))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("eos", ["mask", "keep"])
def test_piece_links(seed, eos):
    batch = batch_of(*TWO)
    scores = random_scores(batch, seed)
    found = extract(scores, batch, Extraction(pooling="piece", eos=eos))
    for row, (source, target) in enumerate(TWO):
        assert set(found[row].scores) == naive_piece_links(scores[row].numpy(), source, target, eos == "keep")


@pytest.mark.parametrize("seed", range(5))
def test_word_pooling_and_links(seed):
    batch = batch_of(*TWO)
    scores = random_scores(batch, seed)
    found = extract(scores, batch, Extraction(pooling="word"))
    for row, (source, target) in enumerate(TWO):
        expected = naive_pool(scores[row].numpy(), source, target)
        np.testing.assert_allclose(found[row].matrix, expected, atol=1e-12)
        best = {(int(line.argmax()), j) for j, line in enumerate(expected) if line.max() > 0}
        assert set(found[row].scores) == best


def test_kept_eos_can_win_a_word():
    batch = batch_of(([0, 1, -1], [0, 1, -1]))
    scores = torch.tensor([[[0.2, 0.1, 0.7], [0.1, 0.6, 0.3], [0.0, 0.0, 1.0]]], dtype=torch.float64)
    for pooling in ("piece", "word"):
        assert set(extract(scores, batch, Extraction(pooling))[0].scores) == {(0, 0), (1, 1)}
        assert set(extract(scores, batch, Extraction(pooling, eos="keep"))[0].scores) == {(1, 1)}


@pytest.mark.parametrize("pooling", ["piece", "word"])
@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_rows_without_evidence_give_no_link(pooling, bad):
    batch = batch_of(([0, 1, -1], [0, 1, -1]))
    scores = torch.tensor([[[bad, bad, 0.5], [0.1, 0.6, 0.3], [0.1, 0.2, 0.3]]], dtype=torch.float64)
    found = extract(scores, batch, Extraction(pooling))[0]
    assert set(found.scores) == {(1, 1)}
    assert found.finite == bool(np.isfinite(bad))


def test_ties_go_to_the_lowest_index():
    batch = batch_of(([0, 1, -1], [0, -1]))
    assert set(extract(torch.full((1, 2, 3), 0.3), batch, Extraction())[0].scores) == {(0, 0)}


def test_thresholds_and_mutual_choice():
    batch = batch_of(([0, 1, -1], [0, 1, -1]))
    scores = torch.tensor([[[0.6, 0.4, 0.0], [0.55, 0.45, 0.0], [0, 0, 0]]], dtype=torch.float64)

    def links(**options):
        return set(extract(scores, batch, Extraction(**options))[0].scores)

    assert links() == {(0, 0), (0, 1)}
    assert links(threshold=0.58) == {(0, 0)}
    assert links(extractor="mutual") == {(0, 0)}
    assert links(extractor="threshold", threshold=0.44) == {(0, 0), (0, 1), (1, 1)}
    assert links(extractor="threshold", threshold=0.4, pooling="piece") == {(0, 0), (1, 0), (0, 1), (1, 1)}


def test_scores_are_shares_of_the_row():
    batch = batch_of(([0, 1, -1], [0, -1]))
    scores = torch.tensor([[[3.0, 1.0, 9.0], [0.0, 0.0, 0.0]]])
    assert extract(scores, batch, Extraction())[0].scores == {(0, 0): 0.75}
    assert extract(scores, batch, Extraction(pooling="piece"))[0].scores == {(0, 0): 0.75}


def test_final_punctuation():
    scores = torch.full((1, 3, 3), 0.1, dtype=torch.float64)
    scores[0, 0, 1] = 0.9
    both = batch_of(([0, 1, -1], [0, 1, -1]), words=(("a", "."), ("b", "!?")))
    one = batch_of(([0, 1, -1], [0, 1, -1]), words=(("a", "."), ("b", "c")))
    none = batch_of(([0, 1, -1], [0, 1, -1]), words=(("a", "b"), ("b", "!")))
    for pooling in ("piece", "word"):
        rule = Extraction(pooling, punctuation=True)
        assert set(extract(scores, both, rule)[0].scores) == {(0, 0), (1, 1)}
        assert set(extract(scores, one, rule)[0].scores) == {(0, 0), (0, 1)}
        assert set(extract(scores, none, rule)[0].scores) == {(1, 0), (0, 1)}
    assert scores[0, 0, 1] == 0.9, "the caller's scores stay"
    assert torch.equal(apply_punctuation_rule(scores, none), scores)


@pytest.mark.parametrize(
    ("word", "expected"), [(".", True), ("」", True), ("...", True), ("", False), ("a.", False), ("$", False)]
)
def test_punctuation(word, expected):
    assert is_punctuation(word) == expected


@settings(deadline=None, max_examples=50)
@given(st.data())
def test_pooling_keeps_the_mass_of_word_rows(data):
    size_t, size_s = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 5))
    source = sorted(data.draw(st.lists(st.integers(0, 2), min_size=size_s, max_size=size_s)))
    source = [sorted(set(source)).index(word) for word in source]
    target = list(range(size_t))
    batch = batch_of((source, target))
    scores = torch.rand(1, size_t, size_s, dtype=torch.float64)
    pooled = pool_words(mask_pieces(scores, batch, keep_eos=False), batch)
    assert torch.allclose(pooled.sum(-1), scores.sum(-1))


def test_row_shares():
    np.testing.assert_allclose(row_shares(np.array([[1.0, 3.0], [-1.0, 0.0]])), [[0.25, 0.75], [0.0, 0.0]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pooling": "words"}, "did you mean 'word'"),
        ({"extractor": "max"}, "unknown extractor"),
        ({"threshold": 1.5}, "0..1"),
        ({"threshold": float("nan")}, "0..1"),
        ({"extractor": "threshold"}, "above 0"),
        ({"eos": "drop"}, "unknown eos rule"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(UsageError, match=message):
        Extraction(**options)
