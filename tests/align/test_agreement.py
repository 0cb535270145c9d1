"""Soft agreement of both directions, against its twin; `run` and `compare` combine by it alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from align.agreement import Agreement, agreement_with_lexicon, combination, means_of, soft_agreement
from data.errors import DataError, UsageError

if TYPE_CHECKING:
    from data.links import Link


def twin(forward: list[list[float]], reverse: list[list[float]], how: Agreement) -> dict[Link, float]:
    links = {}
    for j, row in enumerate(forward):
        for i, f in enumerate(row):
            r = reverse[j][i]
            if f > 0 and r > 0:
                mean = 2 / (1 / f + 1 / r) if how.mean == "harmonic" else (f * r) ** 0.5
                if mean > how.threshold:
                    links[i, j] = mean
    return links


@pytest.mark.parametrize("mean", ["harmonic", "geometric"])
@pytest.mark.parametrize("threshold", [0.0, 0.05, 0.1, 0.2])
def test_soft_agreement_equals_its_twin(threshold: float, mean: str) -> None:
    rng = np.random.default_rng(3)
    forward = rng.dirichlet([0.3] * 30, size=20)  # [J, I], rows sum to 1
    reverse = rng.dirichlet([0.3] * 20, size=30).T  # [J, I], columns sum to 1
    how = Agreement(threshold, mean)
    links = soft_agreement(forward, reverse, how)
    assert links
    assert links == pytest.approx(twin(forward.tolist(), reverse.tolist(), how), rel=1e-12)
    assert list(links) == sorted(links)
    assert all(type(n) is int for link in links for n in link)


def lexicon_twin(
    pairs: list[tuple[list[str], list[str], list[list[float]]]], how: Agreement
) -> list[dict[Link, float]]:
    def count(s: str | None, t: str | None) -> float:
        return sum(
            means[j][i]
            for source, target, means in pairs
            for j, there in enumerate(target)
            for i, here in enumerate(source)
            if s in (None, here.lower()) and t in (None, there.lower()) and means[j][i] > 0.02
        )

    found = []
    for source, target, means in pairs:
        links = {}
        for i, s in enumerate(map(str.lower, source)):
            for j, t in enumerate(map(str.lower, target)):
                if means[j][i] > 0.02:
                    dice = 2 * count(s, t) / (count(s, None) + count(None, t))
                    score = means[j][i] ** (1 - how.lexicon) * dice**how.lexicon
                    if score > how.threshold:
                        links[i, j] = score
        found.append(links)
    return found


@pytest.mark.parametrize("mean", ["harmonic", "geometric"])
def test_agreement_with_a_lexicon_equals_its_twin(mean: str) -> None:
    rng = np.random.default_rng(4)
    how = Agreement(0.1, mean, lexicon=0.3)
    pairs = []
    for _ in range(6):
        source, target = (rng.choice(list("aAbcde"), size=size).tolist() for size in rng.integers(1, 6, size=2))
        forward = rng.dirichlet([0.3] * len(source), size=len(target))
        reverse = rng.dirichlet([0.3] * len(target), size=len(source)).T
        pairs.append((source, target, means_of(forward, reverse, how)))
    twin = lexicon_twin([(s, t, means.tolist()) for s, t, means in pairs], how)
    found = list(agreement_with_lexicon(pairs, how))
    assert sum(map(len, found)) > 5
    for ours, theirs in zip(found, twin, strict=True):
        assert ours == pytest.approx(theirs, rel=1e-12)
        assert list(ours) == sorted(ours)


def test_what_comes_back_wins_over_the_context() -> None:
    """In every sentence alone both words are linked; in the text only the translation is."""
    means = np.array([[0.4, 0.3]])
    text = [(["la", other], ["the"], means) for other in ("maison", "porte", "table", "rue")]
    alone = [soft_agreement(means, means, Agreement(0.28)) for _ in text]
    assert all(set(links) == {(0, 0), (1, 0)} for links in alone)
    together = list(agreement_with_lexicon(text, Agreement(0.28, lexicon=0.3)))
    assert all(set(links) == {(0, 0)} for links in together)


def test_a_lexicon_of_no_evidence() -> None:
    nothing = (["a"], ["b"], np.zeros((1, 1)))
    assert list(agreement_with_lexicon([nothing, ([], [], np.zeros((0, 0)))], Agreement(lexicon=0.5))) == [{}, {}]
    for weight in (-0.1, 1.0, float("nan")):
        with pytest.raises(UsageError, match="weight of the lexicon"):
            Agreement(lexicon=weight)


def test_without_evidence() -> None:
    nan = float("nan")
    forward = [[0.0, nan, 1.0], [0.0, 0.0, 0.5]]
    reverse = [[0.0, 0.5, 1.0], [1.0, 0.0, nan]]
    assert soft_agreement(forward, reverse, Agreement(0.0)) == {(2, 0): 1.0}
    assert soft_agreement(np.zeros((0, 3)), np.zeros((0, 3)), Agreement()) == {}


def test_the_threshold_is_exclusive() -> None:
    assert soft_agreement([[0.5]], [[0.5]], Agreement(0.5)) == {}
    assert soft_agreement([[0.5]], [[0.5]], Agreement(0.49)) == {(0, 0): 0.5}


def test_other_shapes_and_thresholds_are_refused() -> None:
    with pytest.raises(DataError, match=r"\(2, 3\) and \(3, 2\)"):
        soft_agreement(np.zeros((2, 3)), np.zeros((3, 2)), Agreement())
    with pytest.raises(DataError, match="one shape"):
        soft_agreement(np.zeros(3), np.zeros(3), Agreement())
    for threshold in (-0.1, float("nan")):
        with pytest.raises(UsageError, match="must not be negative"):
            Agreement(threshold)


def test_combinations_by_name() -> None:
    assert combination("gdfa") == "grow-diag-final-and"
    assert combination("agreement") == Agreement(0.2, "harmonic")
    how = combination("agreement:threshold=0.15:mean=geometric")
    assert how == Agreement(0.15, "geometric")
    assert combination(str(how)) == how
    for spec, message in (
        ("agrement", "did you mean 'agreement'"),
        ("agreement:mean=median", "unknown mean 'median'"),
        ("agreement:threshold=low", "option threshold takes a number"),
        ("union:threshold=0.1", "unknown symmetrisation"),
    ):
        with pytest.raises(UsageError, match=message):
            combination(spec)
