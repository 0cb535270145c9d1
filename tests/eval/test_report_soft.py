"""Reading the soft alignments that `run --matrices` writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.errors import DataError
from eval.soft_alignments import is_soft, read_soft

GOOD: dict[str, Any] = {
    "id": 0,
    "src": ["a", "b"],
    "tgt": ["x"],
    "links": [[1, 0, 0.75]],
    "matrix": [[0.25, 0.75]],
    "status": "ok",
    "method": "method:attention",
}
EMPTY: dict[str, Any] = {**GOOD, "src": [], "tgt": ["x", "y"], "links": [], "matrix": [[], []]}


def write(path: Path, *records: object) -> Path:
    path.write_text("".join(f"{r if isinstance(r, str) else json.dumps(r)}\n" for r in records))
    return path


def test_what_a_line_holds(tmp_path: Path) -> None:
    first, second = read_soft(write(tmp_path / "a.jsonl", GOOD, EMPTY))
    assert (first.pair.id, first.pair.source, first.pair.target) == (0, ("a", "b"), ("x",))
    assert first.links == {(1, 0)}
    assert first.matrix.tolist() == [[0.25, 0.75]]
    assert first.signature == "method:attention"
    assert second.pair.id == 1
    assert second.matrix.shape == (2, 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"src": None}, "no list `src`"),
        ({"tgt": [1]}, "`tgt` holds something else than words"),
        ({"src": ["a", ""]}, "`src` holds something else than words"),
        ({"links": [[2, 0]]}, r"link \[2, 0\] is not within 2 source and 1 target words"),
        ({"links": [[-1, 0]]}, "is not within"),
        ({"links": [[0]]}, "is not within"),
        ({"links": ["0-0"]}, "is not within"),
        ({"links": [[0.0, 0]]}, "is not within"),
        ({"matrix": [[1, 2, 3]]}, r"`matrix` is not 1 rows \(target words\) of 2 numbers \(source words\)"),
        ({"matrix": [[1, "2"]]}, "`matrix` is not"),
        ({"matrix": [1, 2]}, "`matrix` is not"),
        ({"matrix": []}, "`matrix` is not"),
        ({"matrix": [[10**400, 0]]}, "too large"),
        ({"method": 5}, "`method` is no text"),
    ],
)
def test_a_line_that_does_not_fit(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = write(tmp_path / "a.jsonl", GOOD, {**GOOD, **change})
    with pytest.raises(DataError, match=message) as caught:
        list(read_soft(path))
    assert caught.value.line == 2


@pytest.mark.parametrize(
    "line", ["", "[]", "{", "1", "0-0 1-1", json.dumps(GOOD).replace("0.25", "NaN"), "[" * 100_000]
)
def test_a_line_that_is_none(tmp_path: Path, line: str) -> None:
    with pytest.raises(DataError, match="expected a line of `run --matrices`") as caught:
        list(read_soft(write(tmp_path / "a.jsonl", line)))
    assert caught.value.line == 1


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(sorted(GOOD)), inner),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.sampled_from(sorted(GOOD)), json_values)
def test_a_field_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, key: str, value: Any) -> None:
    path = write(tmp_path_factory.mktemp("soft") / "a.jsonl", {**GOOD, key: value})
    try:
        (found,) = read_soft(path)
    except DataError:
        return
    assert found.matrix.shape == (len(found.pair.target), len(found.pair.source))
    assert np.isfinite(found.matrix).all()
    assert all(i < len(found.pair.source) and j < len(found.pair.target) for i, j in found.links)


def test_names() -> None:
    assert is_soft("a.jsonl")
    assert is_soft(Path("a.jsonl.gz"))
    assert not is_soft("a.npz")
