"""Load options of the other direction."""

from __future__ import annotations

import pytest

from align.models.load import LoadOptions, Side


@pytest.mark.parametrize(
    ("unspaced", "other"), [("source", "target"), ("target", "source"), ("both", "both"), ("auto", "auto")]
)
def test_swapping_sides_swaps_all_of_them(unspaced, other):
    options = LoadOptions(Side("zh"), Side("en"), unspaced=unspaced)
    assert options.swapped() == LoadOptions(Side("en"), Side("zh"), unspaced=other)
    assert options.swapped().swapped() == options
