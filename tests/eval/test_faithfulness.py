"""Comprehensiveness, sufficiency, curves and the oracle against one forced pass at a time."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import kendalltau, spearmanr

from align.methods.draws import Neighbours
from align.methods.erasure import word_spans
from data.bitext import Pair
from data.errors import UsageError
from data.links import GoldAlignment
from eval.bootstrap import paired_means
from eval.erasure import CORRUPTIONS, Erased, make_corruptions, target_pieces, word_log_probs
from eval.faithfulness import (
    ORACLE,
    RANDOM,
    Plan,
    curves,
    exhaustive,
    measure_sentence,
    orders,
    points,
    removed_words,
)
from eval.faithfulness_scores import kendall, method_rows, over_methods, plausibility, spearman, stability, warnings
from tests.eval import naive_erasure as naive

BINS = (0.01, 0.2, 0.5)


def after(model, pair, target, name, way):
    """log p without a set of words, naively."""
    if name in ("zero", "unk"):
        return lambda removed: naive.blanked(model, pair, target, removed, name)
    pieces = {word: substitute.pieces for word, substitute in way.substitutes(pair).items()}
    return lambda removed: naive.replaced(model, pair, target, removed, pieces)


def some_sets(words):
    return [frozenset(s) for k in (0, 1, 2, len(words)) for s in combinations(words, k)][:12]


@pytest.mark.parametrize("name", list(CORRUPTIONS))
def test_each_set_of_words_is_one_forced_pass(model, encoded, name):
    ((way,),) = make_corruptions(model, [name]).values()
    for pair in encoded:
        targets, removed = list(target_pieces(pair)), some_sets(list(word_spans(pair)))
        found = word_log_probs(model, pair, way, removed, targets)
        expected = [[after(model, pair, j, name, way)(s) for j in targets] for s in removed]
        np.testing.assert_allclose(found, expected, atol=1e-9)


def test_replacements(model, encoded):
    found = make_corruptions(model, ["resample", "neighbour"], draws=2, seed=4)
    for pair in encoded:
        drawn = [way.substitutes(pair) for way in found["resample"]]
        near = [way.substitutes(pair) for way in found["neighbour"]]
        assert drawn[0] != drawn[1] or len(word_spans(pair)) == 1
        assert drawn == [way.substitutes(pair) for way in found["resample"]]
        for word, (start, end) in word_spans(pair).items():
            for substitute in (*(d[word] for d in drawn), *(n[word] for n in near)):
                assert substitute.word != pair.source_words[word]
                assert 1 <= len(substitute.pieces) <= end - start
            assert near[0][word] != near[1][word]
        way = found["resample"][0]
        assert way.words(pair, frozenset({0})) == (drawn[0][0].word, *pair.source_words[1:])
    delete = make_corruptions(model, ["delete"])["delete"][0]
    assert delete.words(encoded[0], frozenset({0})) == encoded[0].source_words[1:]


def test_neighbours_by_loops(model):
    pair = model.encode_pair(Pair(0, ("s1@@", "s2", "s3"), ("t1",)))
    table = model.embed(model.batch([model.encode_pair(Pair(0, tuple(f"s{n}" for n in range(12)), ("t1",)))]))[0, :12]
    x = model.embed(model.batch([pair]))[0]
    for word, vector, own in ((0, (x[0] + x[1]) / 2, None), (1, x[2], 3)):
        cosine = [float(row @ vector / row.norm() / vector.norm()) for row in table]
        ranked = sorted((n for n in range(12) if n != own), key=lambda n: -cosine[n])
        for rank in (0, 3):
            assert Neighbours(model).nearest(pair, rank)[word].word == f"s{ranked[rank]}"


def test_orders_fall_and_ties_fall_at_random():
    matrix = np.array([[0.0, 3, 1, 0, 0, 2], [0, 0, 0, 0, 0, 0]])
    words = [0, 1, 2, 3, 5]
    seen = {tuple(orders(matrix, words, [0, 1], np.random.default_rng(seed))) for seed in range(50)}
    assert {order[0][:3] for order in seen} == {(1, 5, 2)}
    assert {order[0][3:] for order in seen} == {(0, 3), (3, 0)}
    assert {order[1][0] for order in seen} == set(words)


def test_shares_of_words():
    assert [removed_words(share, 15) for share in (0.01, 0.05, 0.1, 0.2, 0.5, 1)] == [1, 1, 2, 3, 8, 15]
    assert removed_words(0.01, 1) == 1
    assert points(15, BINS) == (0, 1, 3, 4, 8, 12, 15)
    assert points(1, BINS) == (0, 1)


@pytest.mark.parametrize("name", ["zero", "delete"])
def test_scores_and_curves_by_loops(model, encoded, name):
    ((way,),) = make_corruptions(model, [name]).values()
    rng = np.random.default_rng(3)
    for pair in encoded:
        words, targets = list(word_spans(pair)), list(target_pieces(pair))
        every, counts = frozenset(words), points(len(words), BINS)
        found = orders(rng.normal(size=(len(pair.target_words), len(words))), words, targets, rng)
        result = curves(Erased(model, pair, [way], targets), every, found, counts)
        for j, (target, order) in enumerate(zip(targets, found, strict=True)):
            gone = after(model, pair, target, name, way)
            comp, suff = (f(gone, order, set(words), BINS) for f in (naive.comprehensiveness, naive.sufficiency))
            np.testing.assert_allclose(result.comprehensiveness(BINS)[j], comp, atol=1e-9)
            np.testing.assert_allclose(result.sufficiency(BINS)[j], suff, atol=1e-9)
            tops = [set(order[:k]) for k in counts]
            expected = [naive.area(gone, sets, counts) for sets in (tops, [set(words) - top for top in tops])]
            np.testing.assert_allclose([area[j] for area in result.areas()], expected, atol=1e-9)


def test_no_order_beats_the_exhaustive_oracle(model, encoded):
    ((way,),) = make_corruptions(model, ["unk"]).values()
    pair = max(encoded, key=lambda p: len(p.source_words))
    words, targets = list(word_spans(pair)), list(target_pieces(pair))
    every, counts = frozenset(words), points(len(words), BINS)
    best = exhaustive(Erased(model, pair, [way], targets), every, counts)
    for j, target in enumerate(targets):
        gone = after(model, pair, target, "unk", way)
        for p, count in enumerate(counts):
            sets = [set(s) for s in combinations(words, count)]
            assert best.deletion[j, p] == pytest.approx(min(gone(s) for s in sets))
            assert best.insertion[j, p] == pytest.approx(max(gone(set(words) - s) for s in sets))


def test_a_sentence_with_every_order(model, encoded):
    ways = make_corruptions(model, ["resample"], draws=2)["resample"]
    plan = Plan(bins=BINS, targets=2, random_orders=2, oracle_words=4)
    pair = max(encoded, key=lambda p: len(p.source_words))
    matrix = np.random.default_rng(0).normal(size=(len(pair.target_words), len(pair.source_words)))
    measured = measure_sentence(model, pair, {"a": matrix, "b": -matrix}, ways, plan)
    assert set(measured.forward) == {"a", "b", RANDOM}  # too long for the oracle
    assert measured.forward["a"].words == measured.forward[RANDOM].words == 2
    # Without ties the reverse of an order is the order of the negative scores.
    np.testing.assert_allclose(measured.reverse["a"], measured.forward["b"].comp, atol=1e-9)
    short = min(encoded, key=lambda p: len(p.source_words))
    matrix = np.ones((len(short.target_words), len(short.source_words)))
    assert ORACLE in measure_sentence(model, short, {"a": matrix}, ways, plan).forward


def sentences(model, encoded, name="zero", corrupt=("zero",)):
    rng = np.random.default_rng(1)
    ways = make_corruptions(model, corrupt)[corrupt[0]]
    plan = Plan(bins=BINS, oracle_words=3)
    found = []
    for pair in encoded:
        size = (len(pair.target_words), len(pair.source_words))
        matrices = {"a": rng.normal(size=size), "b": rng.normal(size=size)}
        found.append(measure_sentence(model, pair, matrices, ways, plan))
    return found


def test_rows_are_means_over_target_words(model, encoded):
    found = sentences(model, encoded)
    rows = {row["method"]: row for row in method_rows(found, BINS, 50, 1)}
    assert next(iter(rows)) == RANDOM
    assert list(rows)[-1] == ORACLE
    assert rows["a"]["comp_low"] <= rows["a"]["comp"] <= rows["a"]["comp_high"]
    words = sum(len(target_pieces(pair)) for pair in encoded)
    for field in ("comp", "suff"):
        total = sum(sum(getattr(sentence.forward["a"], field)) / len(BINS) for sentence in found)
        assert rows["a"][field] == pytest.approx(total / words)
    best, other = sorted("ab", key=lambda name: -rows[name]["comp"])
    tables = [[(s.forward[name].comp.mean(), s.forward[name].words) for s in found] for name in (best, other)]
    assert rows[best]["p_best"] is None
    assert rows[other]["p_best"] == paired_means(tables, 50, 1)[1].p_value
    assert rows[ORACLE]["p_best"] is None
    short = [s.forward for s in found if ORACLE in s.forward]
    assert 0 < len(short) < len(found)
    a, floor, top = (sum(s[name].comp.sum() for s in short) for name in ("a", RANDOM, ORACLE))
    assert rows["a"]["of_ceiling"] == pytest.approx((a - floor) / (top - floor))
    assert rows[ORACLE]["of_ceiling"] == 1
    assert rows["a"]["comp_1"] + rows["a"]["comp_20"] + rows["a"]["comp_50"] == pytest.approx(3 * rows["a"]["comp"])


def test_rank_correlations_agree_with_scipy():
    rng = np.random.default_rng(2)
    first, second = rng.normal(size=(2, 6, 5))
    for n, tau in enumerate(kendall(first, second)):
        assert tau == pytest.approx(kendalltau(first[n], second[n]).statistic)
    table = rng.integers(4, size=(12, 2)).astype(float)  # with ties
    rho, low, high = spearman(table, 200, 7)
    assert rho == pytest.approx(spearmanr(*table.T).statistic)
    draws = np.random.default_rng(7).integers(12, size=(200, 12))
    resampled = [spearmanr(*table[row].T).statistic for row in draws]
    assert [low, high] == pytest.approx(np.percentile(resampled, [2.5, 97.5]))
    assert spearman(table[:2], 10, 1) == (None, None, None)


def test_unstable_rankings_are_told(model, encoded):
    found = {"zero": sentences(model, encoded), "delete": sentences(model, encoded, corrupt=("delete",))}
    rows = stability(found, 20, 1)
    assert {(row["score"], row["first"], row["second"]) for row in rows} == {
        ("comp", "zero", "delete"),
        ("suff", "zero", "delete"),
    }
    assert all(row["tau"] in (-1, 1) for row in rows)
    unstable = [{"score": "comp", "first": "zero", "second": "delete", "tau": -1.0}]
    assert "depends on the corruption: tau is below 0.7 for 1 of 1" in warnings(unstable, {"zero": "a"})[0]
    assert "most comprehensive" in warnings([], {"zero": "a", "delete": "b"})[0]
    assert warnings([{**unstable[0], "tau": 0.9}], {"zero": "a", "delete": "a"}) == []


def test_over_methods_agrees_with_scipy():
    aers, comps = [0.5, 0.2, 0.4, 0.3], [1.0, 3.0, 2.5, 2.0]
    plausible = [{"corruption": "zero", "method": n, "aer": aer} for n, aer in enumerate(aers)]
    faithful = [{"corruption": "zero", "method": n, "comp": comp} for n, comp in enumerate(comps)]
    (line,) = over_methods(plausible, faithful)
    assert f"{kendalltau([1 - aer for aer in aers], comps).statistic:.2f}" in line
    assert over_methods(plausible[:1], faithful) == []


def test_plausibility_by_loops(model, encoded):
    found = sentences(model, encoded)
    gold = {s.pair.pair.id: GoldAlignment(frozenset({(0, 0)}), frozenset({(0, 0)})) for s in found}
    links = {"a": {number: frozenset({(0, 0)} if number % 2 else {(1, 0)}) for number in gold}}
    (row,) = plausibility(found, links, gold, 0, 1)
    gains = [np.mean(s.forward["a"].comp - s.forward[RANDOM].comp) / s.forward["a"].words for s in found]
    right = [number % 2 for number in gold]  # AER is 0 or 1
    assert row["rho"] == pytest.approx(spearmanr(right, gains).statistic)
    assert row["aer"] == pytest.approx(1 - sum(right) / len(right))


def test_mistakes(model):
    with pytest.raises(UsageError, match="unknown corruption 'zer'"):
        make_corruptions(model, ["zer"])
    with pytest.raises(UsageError, match="draws must be at least 1"):
        make_corruptions(model, ["zero"], draws=0)
