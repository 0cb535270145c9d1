"""The paired bootstrap against loops over the same draws, and against scipy."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest
from scipy.stats import bootstrap as scipy_bootstrap

from data.errors import DataError
from eval import bootstrap
from eval.aer import AlignmentStats, scores, total
from eval.bootstrap import AERInterval, MeanInterval, paired_bootstrap, paired_means, resample


def system(seed: int, sentences: int = 40, quality: float = 0.8) -> list[AlignmentStats]:
    """Statistics of a made-up system; those of one seed have the same gold whatever the quality."""
    rng = np.random.default_rng(seed)
    stats = []
    for _ in range(sentences):
        sure, links = (int(n) for n in rng.integers(1, 12, size=2))
        hits = int(quality * min(sure, links))
        stats.append(AlignmentStats(hits, min(links, hits + 1), links, sure))
    return stats


def drawn_by_loops(stats: list[AlignmentStats], resamples: int, seed: int) -> list[AlignmentStats]:
    rng = np.random.default_rng(seed)
    draws = rng.integers(len(stats), size=(resamples, len(stats)))
    corpora = []
    for row in draws:
        corpus = AlignmentStats()
        for n in row:
            corpus = corpus + stats[n]
        corpora.append(corpus)
    return corpora


def test_sums_are_those_of_the_documented_draws() -> None:
    first, second = system(1), system(2)
    assert resample([first, second], 50, seed=7) == [
        drawn_by_loops(first, 50, 7),
        drawn_by_loops(second, 50, 7),
    ]


@pytest.mark.parametrize("at_once", [1, 39, 40, 41, 130])
def test_memory_limit_changes_nothing(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    whole = resample([system(1)], 20, seed=7)
    monkeypatch.setattr(bootstrap, "_DRAWS_AT_ONCE", at_once)
    assert resample([system(1)], 20, seed=7) == whole


def test_interval_and_p_value_by_loops() -> None:
    systems = [system(1), system(1, quality=0.75), system(2)]
    resamples, seed = 200, 3
    drawn = [[scores(s).aer or 0.0 for s in drawn_by_loops(stats, resamples, seed)] for stats in systems]
    observed = [scores(total(stats)).aer or 0.0 for stats in systems]
    for number, interval in enumerate(paired_bootstrap(systems, resamples, seed)):
        ordered = sorted(drawn[number])
        rank = 0.025 * (resamples - 1)  # between the 4th and the 5th of 200, counted from 0
        low = ordered[4] + (rank - 4) * (ordered[5] - ordered[4])
        high = ordered[-5] - (rank - 4) * (ordered[-5] - ordered[-6])
        assert interval.low == pytest.approx(low, abs=1e-12)
        assert interval.high == pytest.approx(high, abs=1e-12)
        differences = [a - b for a, b in zip(drawn[number], drawn[0], strict=True)]
        centre = sum(differences) / resamples
        as_far = sum(abs(d - centre) >= abs(observed[number] - observed[0]) for d in differences)
        assert interval.p_value == (None if number == 0 else pytest.approx((as_far + 1) / (resamples + 1)))


def test_interval_agrees_with_scipy() -> None:
    stats = system(4, sentences=100)
    columns = np.array([astuple(s) for s in stats]).T

    def aer(
        sure_hits: np.ndarray, possible_hits: np.ndarray, links: np.ndarray, sure: np.ndarray, axis: int
    ) -> np.ndarray:
        agreeing = sure_hits.sum(axis) + possible_hits.sum(axis)
        return np.asarray(1 - agreeing / (links.sum(axis) + sure.sum(axis)))

    expected = scipy_bootstrap(
        tuple(columns),
        aer,
        paired=True,
        vectorized=True,
        n_resamples=20_000,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    (interval,) = paired_bootstrap([stats], resamples=20_000)
    width = expected.high - expected.low
    assert interval.low == pytest.approx(expected.low, abs=0.05 * width)
    assert interval.high == pytest.approx(expected.high, abs=0.05 * width)


def test_equal_systems_do_not_differ_and_better_ones_do() -> None:
    same, better = paired_bootstrap([system(1), system(1), system(1, quality=0.95)])[1:]
    assert same.p_value == 1
    assert better.p_value == pytest.approx(1 / 1001)


def test_a_system_is_judged_the_same_whatever_its_company() -> None:
    alone = paired_bootstrap([system(1)])[0]
    assert paired_bootstrap([system(1), system(2)])[0] == alone
    assert paired_bootstrap([system(1)], seed=1)[0] != alone


def test_undefined_resamples_are_left_out() -> None:
    empty = AlignmentStats()
    assert paired_bootstrap([[empty], [empty]]) == [AERInterval(None, None, None)] * 2
    assert paired_bootstrap([[], []]) == [AERInterval(None, None, None)] * 2
    perfect = AlignmentStats(1, 1, 1, 1)
    assert paired_bootstrap([[empty, perfect], [empty, perfect]])[1] == AERInterval(0.0, 0.0, 1.0)


def test_systems_must_cover_the_same_sentences() -> None:
    with pytest.raises(DataError, match=r"same sentences, got \[39, 40\]"):
        paired_bootstrap([system(1), system(1, sentences=39)])


def test_means_by_loops() -> None:
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 9, size=30).tolist()
    systems = [[(float(rng.normal()) * n, float(n)) for n in counts] for _ in range(3)]
    systems[2][4] = (0.0, 0.0)
    resamples, seed = 100, 5
    draws = np.random.default_rng(seed).integers(30, size=(resamples, 30))

    def mean(system, sentences):
        return sum(system[n][0] for n in sentences) / sum(system[n][1] for n in sentences)

    drawn = [[mean(system, row) for row in draws] for system in systems]
    for number, (system, found) in enumerate(zip(systems, paired_means(systems, resamples, seed), strict=True)):
        observed = [mean(s, range(30)) for s in systems]
        assert found.value == pytest.approx(mean(system, range(30)))
        assert (found.low, found.high) == pytest.approx(tuple(np.percentile(drawn[number], [2.5, 97.5])))
        differences = [a - b for a, b in zip(drawn[number], drawn[0], strict=True)]
        centre = sum(differences) / resamples
        as_far = sum(abs(d - centre) >= abs(observed[number] - observed[0]) for d in differences)
        assert found.p_value == (None if number == 0 else pytest.approx((as_far + 1) / (resamples + 1)))


def test_a_mean_of_nothing_is_undefined() -> None:
    nothing = MeanInterval(None, None, None, None)
    assert paired_means([[(0.0, 0.0)], [(0.0, 0.0)]]) == [nothing] * 2
    assert paired_means([[], []]) == [nothing] * 2
    with pytest.raises(DataError, match="same sentences"):
        paired_means([[(1.0, 1.0)], []])
