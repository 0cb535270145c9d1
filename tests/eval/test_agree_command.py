"""`agree` on a tiny model: its tables against the maps it was made from."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import spearmanr

from align.cli import cli
from align.extract import Extraction
from align.methods import make_method
from align.models.load import LoadOptions, load_model
from align.pipeline import align_pairs
from data.bitext import read_joint
from data.errors import DataError, UsageError
from eval.agree_command import METHODS
from eval.faithfulness_report import usable

SPECS = "attention:position=awo,gradient-norm:norm=l1,occlusion:baseline=zero:sign=signed"


def agree(checkpoint, *more):
    arguments = ["agree", "-m", checkpoint / "st.pt", "-i", checkpoint / "joint", "--bootstrap", 20, *more]
    return CliRunner().invoke(cli, [str(a) for a in arguments], catch_exceptions=False)


def test_all_tables(checkpoint, tmp_path):
    by_sentence, picture = tmp_path / "sentences.tsv", tmp_path / "map.svg"
    files = ["--sentences", by_sentence, "--plot", picture, "-g", checkpoint / "gold"]
    report = json.loads(agree(checkpoint, "--methods", SPECS, *files, "--format", "json").stdout)
    assert len(report["rows"]) == 4 * 3 / 2
    assert len(report["clustered"]) == len(set(report["clustered"])) == len(report["gold"]) == 4
    model = load_model(checkpoint / "st.pt", LoadOptions(input_kind="@@"))
    pairs = [pair for pair in read_joint(str(checkpoint / "joint")) if pair.source]
    methods = {m.label: m for m in usable(SPECS.split(","), model)[0]}
    maps = {
        label: [a.matrix for a in align_pairs(model, pairs, method, Extraction())] for label, method in methods.items()
    }
    lines = list(csv.DictReader(by_sentence.read_text().splitlines(), delimiter="\t"))
    assert len(lines) == 6 * len(pairs)
    for row in report["rows"]:
        of_pair = [line for line in lines if (line["method"], line["other"]) == (row["method"], row["other"])]
        means = []
        for pair, line, one, other in zip(pairs, of_pair, maps[row["method"]], maps[row["other"]], strict=True):
            assert int(line["line"]) == pair.id + 1
            if one.shape[1] < 3:
                assert line["spearman"] == ""
                continue
            expected = np.mean([spearmanr(a, b).statistic for a, b in zip(one, other, strict=True)])
            assert float(line["spearman"]) == pytest.approx(expected, abs=1e-5)
            means.append(expected)
        assert row["spearman"] == pytest.approx(np.mean(means), abs=1e-5)
    assert {(row["kind"], row["with"]) for row in report["kinds"]} == {
        ("attention", "attention"),
        ("attention", "saliency"),
        ("attention", "sensitivity"),
        ("saliency", "sensitivity"),
    }
    text = picture.read_text()
    assert "<svg" in text
    agree(checkpoint, "--methods", SPECS, "--plot", tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_text() == text


@pytest.mark.parametrize("measure", ["kendall", "top", "jsd", "links"])
def test_text(checkpoint, measure):
    result = agree(checkpoint, "--methods", SPECS, "--measure", measure, "--top", 1, "--limit", 4)
    assert result.stdout.startswith("Asked: do the methods say the same")
    assert f"\n{measure}: " in result.stdout
    assert "Agreement is not faithfulness" in result.stdout
    assert agree(checkpoint, "--methods", SPECS, "--format", "tsv").stdout.startswith("method\tother\tspearman\t")


def test_default_methods_are_one_variant_each_but_for_attention(checkpoint):
    model = load_model(checkpoint / "st.pt", LoadOptions())
    found, notes = usable(METHODS.split(","), model)
    assert not notes
    assert len(found) == len(METHODS.split(",")) + model.layers - 1
    assert make_method("relevancy") in found


def test_errors(checkpoint, tmp_path):
    with pytest.raises(UsageError, match="at least two"):
        agree(checkpoint, "--methods", "relevancy")
    with pytest.raises(UsageError, match=r"must end in"):
        agree(checkpoint, "--plot", tmp_path / "x.gif")
    (tmp_path / "gold").write_text("0-0\n")
    with pytest.raises(DataError, match="links for 1 sentence pairs, text of 8"):
        agree(checkpoint, "--methods", SPECS, "-g", tmp_path / "gold")
    (tmp_path / "gold").write_text("".join("\n" if n == 5 else "0-0 30-0\n" for n in range(8)))
    with pytest.raises(DataError, match="30-0"):
        agree(checkpoint, "--methods", SPECS, "-g", tmp_path / "gold", "--limit", 3)
