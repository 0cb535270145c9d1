"""Second differences over erased words, by loops and on a model whose interactions are known."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from align.cli import cli
from data.bitext import Pair
from data.errors import DataError, UsageError
from eval.erasure import make_corruptions
from eval.interactions import interactions, strongest
from tests.eval import naive_erasure as naive
from tests.tiny import tiny_model, tiny_pairs

MODEL = Path(str(files("data.demo") / "model" / "de-en.pt"))


@pytest.mark.parametrize("name", ["zero", "delete"])
def test_second_differences_by_loops(name):
    model = tiny_model()
    ways = make_corruptions(model, [name])[name]
    for pair in tiny_pairs(3, longest=4):
        encoded = model.encode_pair(pair)
        found = interactions(model, encoded, ways)
        size_j, size_i = found.losses.shape
        for j in range(size_j):

            def after(removed, encoded=encoded, j=j):
                if name == "zero":
                    return naive.blanked(model, encoded, j, removed, "zero")
                return naive.replaced(model, encoded, j, removed, dict.fromkeys(removed, ()))

            for i in range(size_i):
                assert found.losses[j, i] == pytest.approx(after(set()) - after({i}), abs=1e-9)
                for k in range(size_i):
                    expected = naive.second_difference(after, i, k) if i != k else 0
                    # The sign: what is lost without each, less what is lost without both.
                    assert found.pairs[j, i, k] == pytest.approx(expected, abs=1e-9)


def test_the_strongest_of_either_sign_come_first():
    model = tiny_model()
    encoded = model.encode_pair(Pair(3, ("s1", "s2", "s3"), ("t1", "t2")))
    found = interactions(model, encoded, make_corruptions(model, ["unk"])["unk"])
    rows = strongest(found, 2)
    assert len(rows) == 2 * 2
    for j in range(2):
        values = sorted((abs(found.pairs[j, i, k]) for i, k in ((0, 1), (0, 2), (1, 2))), reverse=True)
        ours = rows[2 * j : 2 * j + 2]
        assert [abs(row["interaction"]) for row in ours] == pytest.approx(values[:2])
        for row in ours:
            assert row["pair"] == 4
            total = row["loss_first"] + row["loss_second"] - row["loss_both"]
            assert row["interaction"] == pytest.approx(total)
    alone = model.encode_pair(Pair(0, ("s1",), ("t1",)))
    assert strongest(interactions(model, alone, make_corruptions(model, ["unk"])["unk"]), 1) == []


def invoke(*arguments):
    return CliRunner().invoke(cli, ["interactions", "-m", str(MODEL), *map(str, arguments)], catch_exceptions=False)


def test_command_and_figure(tmp_path):
    text = tmp_path / "joint"
    text.write_text(
        "ich sehe den Mann . ||| I see the man .\n ||| no\nsie kaufen ein Auto . ||| they are buying a car .\n"
    )
    table = invoke("-i", text)
    assert table.stdout.startswith("Asked: which source words act")
    assert "note: pair 2 is empty" in table.stderr
    figures = [tmp_path / "a.png", tmp_path / "b.png"]
    for figure in figures:
        rows = json.loads(invoke("-i", text, "--pair", 3, "--format", "json", "--plot", figure, "--top", 1).stdout)[
            "rows"
        ]
    assert [row["word"] for row in rows] == ["they", "are", "buying", "a", "car", "."]
    assert figures[0].read_bytes() == figures[1].read_bytes()
    assert figures[0].read_bytes().startswith(b"\x89PNG")
    with pytest.raises(DataError, match="no pair 4: the text has 3"):
        invoke("-i", text, "--pair", 4)
    with pytest.raises(UsageError, match="named by --pair"):
        invoke("-i", text, "--plot", tmp_path / "c.png")
    assert np.isfinite([row["interaction"] for row in rows]).all()
