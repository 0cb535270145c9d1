"""What lies beside a checkpoint, and load options of the other direction."""

from __future__ import annotations

import pytest
import torch

from align.models.load import LoadOptions, Side, load_model
from data.errors import ModelError
from tests.tiny import SOURCE, dictionary, tiny_module, tiny_settings


@pytest.mark.parametrize(
    ("unspaced", "other"), [("source", "target"), ("target", "source"), ("both", "both"), ("auto", "auto")]
)
def test_swapping_sides_swaps_all_of_them(unspaced, other):
    options = LoadOptions(Side("zh"), Side("en"), unspaced=unspaced)
    assert options.swapped() == LoadOptions(Side("en"), Side("zh"), unspaced=other)
    assert options.swapped().swapped() == options


def test_dictionary_of_all_languages_beside_the_model(tmp_path):
    both = dictionary(SOURCE)
    module, *_ = tiny_module(source=both, target=both)
    torch.save({"cfg": {"model": tiny_settings()}, "model": module.state_dict()}, tmp_path / "model.pt")
    options = LoadOptions(Side("de"), Side("en"))
    with pytest.raises(ModelError, match=r"dict\.de\.txt is not there"):
        load_model(tmp_path / "model.pt", options)
    both.save(str(tmp_path / "dict.txt"))
    assert load_model(tmp_path / "model.pt", options).target_dictionary.symbols == both.symbols
    dictionary([*SOURCE, *(f"x{n}" for n in range(9))]).save(str(tmp_path / "dict.de.txt"))
    with pytest.raises(ModelError, match=r"dict\.de\.txt"):
        load_model(tmp_path / "model.pt", options)
