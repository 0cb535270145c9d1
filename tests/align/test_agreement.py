"""Soft agreement of both directions, against its twin; `run` and `compare` combine by it alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from align.agreement import Agreement, combination, soft_agreement
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
