"""`faithfulness` on the models that ship with the package."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest
from click.testing import CliRunner

from align.cli import cli
from align.models.load import LoadOptions, load_model
from data.demo import handmade
from data.errors import AlignError, UsageError

MODEL = Path(str(files("data.demo") / "model"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    short = sorted(handmade(), key=lambda pair: len(pair.source))[:6]
    for name, side in (("de", "source"), ("en", "target")):
        (folder / name).write_text("".join(" ".join(getattr(pair, side)) + "\n" for pair in short), "utf-8")
    gold = (
        " ".join(
            [
                *(f"{i}-{j}" for i, j in sorted(p.gold.sure)),
                *(f"{i}p{j}" for i, j in sorted(p.gold.possible - p.gold.sure)),
            ]
        )
        for p in short
    )
    (folder / "gold").write_text("".join(f"{line}\n" for line in gold))
    return folder


def run(folder, *more, target="en"):
    text = ["-m", MODEL / "de-en.pt", "-s", folder / "de", *([] if target is None else ["-t", folder / target])]
    arguments = ["faithfulness", *text, "--targets", 2, "--bootstrap", 20, "--random-orders", 2, *more]
    return CliRunner().invoke(cli, [str(a) for a in arguments], catch_exceptions=False)


def test_everything_as_json(folder):
    found = json.loads(
        run(
            folder,
            *("--reverse-model", MODEL / "en-de.pt", "-g", folder / "gold", "--corruptions", "zero,delete,neighbour"),
            *("--methods", "attention:position=awo:layer=1,occlusion:baseline=zero,gradient-norm:norm=l1"),
            *("--format", "json"),
        ).stdout
    )
    assert found["opening"][0].startswith("Asked: ")
    rows = {(row["corruption"], row["method"]): row for row in found["faithfulness"]}
    assert len(rows) == len(found["faithfulness"]) == 3 * 5
    zero = rows["zero", "occlusion"]
    assert zero["own"] == "yes"
    assert rows["delete", "occlusion"]["own"] == ""
    assert rows["zero", "gradient-norm"]["measures"] == "sensitivity"
    assert {row["rank"] for row in rows.values() if row["measures"] in ("floor", "ceiling")} == {None}
    # What the method names is needed more than random words, and it cannot do better than the oracle.
    assert zero["comp_reversed"] < rows["zero", "random"]["comp"] < zero["comp"]
    assert rows["zero", "oracle"]["of_ceiling"] == 1
    assert zero["of_ceiling"] <= 1
    corruptions = {row["corruption"]: row for row in found["corruptions"]}
    assert list(corruptions) == ["clean", "zero", "delete", "neighbour"]
    assert corruptions["clean"]["source_log_prob"] > corruptions["delete"]["source_log_prob"]
    assert corruptions["zero"]["source_log_prob"] is None
    assert len(found["stability"]) == 2 * 3
    assert {row["sentences"] for row in found["plausibility"]} == {6}
    assert sum("tau over 3 methods" in line for line in found["conclusions"]) == 3


def test_text_opens_with_its_purpose_and_tsv_holds_a_table(folder):
    common = ["--methods", "occlusion:baseline=unk,omission", "--corruptions", "unk"]
    text = run(folder, *common, "--for", "end-user").stdout
    assert text.startswith("Asked: does the model lose a target word")
    assert "For: an end user" in text
    assert "Kendall" not in text  # one corruption cannot disagree with another
    tsv = run(folder, *common, "--format", "tsv", "-o", folder / "out.tsv")
    lines = (folder / "out.tsv").read_text().splitlines()
    assert tsv.stdout == ""
    assert len(lines) == 1 + 4
    assert {len(line.split("\t")) for line in lines} == {len(lines[0].split("\t"))}


def test_batches_and_other_sentences_change_nothing(folder):
    common = ["--methods", "gradient-x-input:sign=signed", "--corruptions", "resample", "--format", "json"]
    rows = [json.loads(run(folder, *common, "--batch-pieces", n).stdout)["faithfulness"][1] for n in (1, 500)]
    assert rows[0]["comp"] == pytest.approx(rows[1]["comp"], abs=1e-4)


def test_own_translations_are_explained(folder):
    common = ["--methods", "occlusion:baseline=unk", "--corruptions", "unk", "--format", "json", "--limit", 3]
    own = json.loads(run(folder, *common, "--translate", "--beam", 2, target=None).stdout)
    model = load_model(MODEL / "de-en.pt", LoadOptions())
    sources = [line.split() for line in (folder / "de").read_text("utf-8").splitlines()[:3]]
    (folder / "own").write_text("".join(f"{' '.join(words)}\n" for words in model.translate(sources, 2)), "utf-8")
    with_rest = (folder / "own").read_text("utf-8") + "x\n" * 3
    (folder / "own").write_text(with_rest, "utf-8")
    assert json.loads(run(folder, *common, target="own").stdout)["faithfulness"] == own["faithfulness"]
    with pytest.raises(UsageError, match="not of the words that --translate"):
        run(folder, "--translate", "-g", folder / "gold", target=None)
    with pytest.raises(UsageError, match="--source alone"):
        run(folder, "--translate")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--bins", "0,5"], "--bins takes per cents"),
        (["--bins", "some"], "--bins takes per cents"),
        (["--corruptions", "mask"], "unknown corruption 'mask'"),
        (["--methods", "attenton"], "did you mean 'attention'"),
    ],
)
def test_mistakes(folder, arguments, message):
    with pytest.raises(AlignError, match=message):
        run(folder, *arguments)
