"""Agreement of maps against loops and SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon
from scipy.stats import kendalltau, spearmanr

from eval.agreement import (
    MEASURES,
    agreement,
    clustering,
    jsd_rows,
    kendall_rows,
    kind_rows,
    link_f1,
    matrix,
    order,
    pair_rows,
    spearman_rows,
    top_rows,
)


@pytest.fixture(scope="module")
def maps():
    """Three maps of 6 x 5 with ties, zeros and signs; row 2 of the first is constant."""
    rng = np.random.default_rng(0)
    found = rng.normal(size=(3, 6, 5))
    found[1] = found[1].round()
    found[2] = found[2].clip(min=0)
    found[0, 2] = 0.5
    return found


def naive_ranks(row):
    return [sum(x < y for x in row) + (sum(x == y for x in row) + 1) / 2 for y in row]


def naive_spearman(a, b):
    a, b = naive_ranks(a), naive_ranks(b)
    mean_a, mean_b = sum(a) / len(a), sum(b) / len(b)
    top = sum((x - mean_a) * (y - mean_b) for x, y in zip(a, b, strict=True))
    spread = math.sqrt(sum((x - mean_a) ** 2 for x in a) * sum((y - mean_b) ** 2 for y in b))
    return top / spread if spread else math.nan


def naive_kendall(a, b):
    agree = untied_a = untied_b = 0
    for i in range(len(a)):
        for k in range(i):
            x, y = np.sign(a[i] - a[k]), np.sign(b[i] - b[k])
            agree, untied_a, untied_b = agree + x * y, untied_a + abs(x), untied_b + abs(y)
    return agree / math.sqrt(untied_a * untied_b) if untied_a and untied_b else math.nan


def naive_jsd(a, b):
    a, b = ([max(0, x) for x in row] for row in (a, b))
    if not sum(a) or not sum(b):
        return math.nan
    a, b = ([x / sum(row) for x in row] for row in (a, b))
    total = 0.0
    for x, y in zip(a, b, strict=True):
        total += sum(p * math.log(2 * p / (x + y)) for p in (x, y) if p > 0) / 2
    return total


def naive_top(a, b, top):
    def best(row):
        return set(sorted(range(len(row)), key=lambda i: (-row[i], i))[:top])

    if len(a) <= top or max(a) == min(a) or max(b) == min(b):
        return math.nan
    return len(best(a) & best(b)) / top


@pytest.mark.filterwarnings("ignore:An input array is constant")
def test_rows_against_loops_and_scipy(maps):
    for a in range(3):
        for b in range(3):
            for j in range(6):
                one, other = maps[a, j], maps[b, j]
                for found, naive, oracle in (
                    (spearman_rows(maps), naive_spearman(one, other), spearmanr(one, other).statistic),
                    (kendall_rows(maps), naive_kendall(one, other), kendalltau(one, other).statistic),
                ):
                    assert found[a, b, j] == pytest.approx(naive, nan_ok=True)
                    assert found[a, b, j] == pytest.approx(oracle, nan_ok=True)
                found = jsd_rows(maps)[a, b, j]
                assert found == pytest.approx(naive_jsd(one, other), nan_ok=True, abs=1e-12)
                if not math.isnan(found):
                    oracle = jensenshannon(one.clip(min=0), other.clip(min=0)) ** 2
                    assert found == pytest.approx(oracle, abs=1e-12)
                for top in (1, 2, 5):
                    expected = naive_top(list(one), list(other), top)
                    assert top_rows(maps, top)[a, b, j] == pytest.approx(expected, nan_ok=True)


def test_what_means_nothing_is_left_out(maps):
    for measure in (spearman_rows, kendall_rows):
        assert np.isnan(measure(maps)[0, :, 2]).all()
        assert np.isnan(measure(maps[:, :, :2])).all()
    assert np.isnan(jsd_rows(-np.ones((2, 1, 4)))).all()
    assert jsd_rows(np.eye(2)[:, None]).max() == pytest.approx(math.log(2))
    assert math.isnan(link_f1(frozenset(), frozenset()))
    assert link_f1(frozenset({(0, 0), (1, 1)}), frozenset({(0, 0)})) == pytest.approx(2 / 3)
    assert link_f1(frozenset({(0, 0)}), frozenset()) == 0


@pytest.fixture(scope="module")
def sentences(maps):
    rng = np.random.default_rng(1)
    made = [maps, rng.normal(size=(3, 4, 6)), rng.normal(size=(3, 2, 2))]
    links = [[frozenset({(0, n), (1, 1)}) for n in range(3)] for _ in made]
    return [agreement(m, found, 3) for m, found in zip(made, links, strict=True)]


def test_corpus_rows_are_means_of_means(sentences):
    rows = pair_rows(["a", "b", "c"], sentences, 20, 0)
    assert [(row["method"], row["other"]) for row in rows] == [("a", "b"), ("a", "c"), ("b", "c")]
    for row in rows:
        a, b = "abc".index(row["method"]), "abc".index(row["other"])
        for measure in MEASURES:
            means = []
            for sentence in sentences:
                values = np.atleast_1d(getattr(sentence, measure)[a, b])
                values = [v for v in values if not math.isnan(v)]
                if values:
                    means.append(sum(values) / len(values))
            assert row[measure] == pytest.approx(sum(means) / len(means))
            assert row[f"{measure}_low"] <= row[measure] <= row[f"{measure}_high"]
        assert row["rows_left_out"] == 2 + (a == 0)


def test_kinds_are_compared_without_a_method_and_itself(sentences):
    rows = kind_rows(["attention", "saliency", "attention"], sentences, "kendall", 20, 0)
    found = {(row["kind"], row["with"]): row["kendall"] for row in rows}
    assert set(found) == {("attention", "attention"), ("attention", "saliency")}
    means = [s.mean("kendall") for s in sentences[:2]]
    assert found["attention", "attention"] == pytest.approx(sum(m[0, 2] for m in means) / 2)
    assert found["attention", "saliency"] == pytest.approx(sum((m[0, 1] + m[1, 2]) / 2 for m in means) / 2)


def test_similar_methods_stand_side_by_side():
    labels = list("abcdef")
    close = {frozenset("ae"), frozenset("bd"), frozenset("cf")}
    rows = [
        {"method": a, "other": b, "spearman": 0.9 if frozenset((a, b)) in close else 0.1, "jsd": 0.1}
        for n, a in enumerate(labels)
        for b in labels[n + 1 :]
    ]
    table = matrix(labels, rows, "spearman")
    assert np.array_equal(table, table.T)
    assert (table.diagonal() == 1).all()
    assert (matrix(labels, rows, "jsd").diagonal() == 0).all()
    names = [labels[n] for n in order(table, "spearman")]
    assert sorted(names) == labels
    assert {frozenset(names[n : n + 2]) for n in (0, 2, 4)} == close
    assert clustering(table, "spearman")[0, 2] == pytest.approx(0.1)
    undefined = matrix(labels, [{**row, "spearman": None} for row in rows], "spearman")
    assert sorted(order(undefined, "spearman")) == list(range(6))
    assert order(table[:2, :2], "spearman") == [0, 1]
