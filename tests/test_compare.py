"""`compare` and `run` on tiny models with files of their own, and on the Hansards models where they are at hand."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from align.cli import cli
from align.methods import METHODS
from align.models.load import LoadOptions, load_model
from data.bitext import read_joint
from data.errors import AlignError
from eval.erasure import make_corruptions
from eval.interactions import interactions
from tests.tiny import tiny_module, tiny_pairs, tiny_settings

SHARED = Path(os.environ.get("NMT_ALIGN_SHARED", Path(__file__).resolve().parents[2] / "shared"))
HANSARDS = SHARED / "models" / "hansards-en-fr"
GOLD = SHARED / "gold" / "hansards-en-fr-test"
FIELDS = (
    "method options layer heads position direction pooling measures aer aer_low aer_high precision recall f1 links "
    "passes seconds signature warning"
).split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two tiny checkpoints with dictionaries beside them, 12 pairs (one empty) and gold."""
    folder = tmp_path_factory.mktemp("tiny")
    for name, seed in (("st", 0), ("ts", 1)):
        module, source, target = tiny_module(seed)
        if name == "ts":
            module, *_ = tiny_module(seed, source=target, target=source)
        languages = (
            {"source_lang": "src", "target_lang": "tgt"}
            if name == "st"
            else {
                "source_lang": "tgt",
                "target_lang": "src",
            }
        )
        cfg = {"model": tiny_settings(**languages), "task": languages}
        torch.save({"cfg": cfg, "model": module.state_dict()}, folder / f"{name}.pt")
        if name == "st":
            source.save(str(folder / "dict.src.txt"))
            target.save(str(folder / "dict.tgt.txt"))
    pairs = tiny_pairs(12)
    lines = [(" ".join(p.source), " ".join(p.target)) for p in pairs]
    lines[5] = ("", "t1 t2")
    (folder / "src").write_text("".join(f"{s}\n" for s, _ in lines))
    (folder / "tgt").write_text("".join(f"{t}\n" for _, t in lines))
    (folder / "joint").write_text("".join(f"{s} ||| {t}\n" for s, t in lines))
    (folder / "gold").write_text("".join("\n" if n == 5 else "0-0\n" for n in range(12)))
    return folder


def invoke(*arguments):
    return CliRunner().invoke(cli, [str(a) for a in arguments], catch_exceptions=False)


def compare(folder, *more):
    model = ["-m", folder / "st.pt", "-s", folder / "src", "-t", folder / "tgt", "-g", folder / "gold"]
    return invoke("compare", *model, "--bootstrap", 50, *more)


def run(folder, *more):
    return invoke("run", "-m", folder / "st.pt", "-s", folder / "src", "-t", folder / "tgt", *more)


def test_all_methods_both_directions(folder):
    methods = "attention,gradient-norm,gradient-x-input,smoothgrad:samples=2,integrated-gradients:steps=2"
    result = compare(folder, "--reverse-model", folder / "ts.pt", "--methods", methods, "--format", "json")
    rows = json.loads(result.stdout)
    assert all(set(FIELDS) <= set(row) for row in rows)
    assert {row["method"] for row in rows} == {spec.partition(":")[0] for spec in methods.split(",")} <= set(METHODS)
    assert {row["direction"] for row in rows} == {
        "forward",
        "reverse",
        "intersection",
        "grow-diag",
        "grow-diag-final-and",
        "agreement",
    }
    assert {row["pooling"] for row in rows} == {"piece", "word"}
    assert [row["aer"] for row in rows] == sorted(row["aer"] for row in rows)
    attention = [row for row in rows if row["method"] == "attention" and row["direction"] == "forward"]
    assert {(r["layer"], r["position"], r["pooling"]) for r in attention} == {
        (layer, position, pooling) for layer in (0, 1) for position in ("awo", "awi") for pooling in ("piece", "word")
    }
    assert all(0 <= row["aer_low"] <= row["aer"] <= row["aer_high"] <= 1 for row in rows)
    assert len({row["signature"] for row in rows}) == len(rows)
    # Rows tell the options that differ from their defaults or vary here; signatures tell all.
    assert {row["options"] for row in rows if row["method"] == "smoothgrad"} == {
        "samples=2:base=input",
        "samples=2:base=l1",
    }
    assert all("noise=0.15" in row["signature"] for row in rows if row["method"] == "smoothgrad")
    complete = [row["completeness_error"] for row in rows if row["method"] == "integrated-gradients"]
    assert any(error is not None for error in complete)
    assert "1 pairs are empty" in result.stderr


def test_reports_hold_every_system_and_pair(folder, tmp_path):
    pages = [tmp_path / "compare.html", tmp_path / "run.html"]
    result = compare(folder, "--methods", "attention", "--report", pages[0], "--format", "json")
    run(folder, "--method", "attention", "-o", tmp_path / "links", "--report", pages[1])
    rows = json.loads(result.stdout)
    data = [page.read_text().partition('id="data">')[2].partition("</script>")[0] for page in pages]
    compared, ran = map(json.loads, data)
    assert [system["signature"] for system in compared["systems"]] == [row["signature"] for row in rows]
    assert len(compared["pairs"]) == len(ran["pairs"]) == 12
    assert ran["pairs"] == [{k: pair[k] for k in ("line", "source", "target")} for pair in compared["pairs"]]
    assert {len(system["links"]) for system in compared["systems"] + ran["systems"]} == {12}


def test_compare_agrees_with_run_and_score(folder, tmp_path):
    rows = json.loads(compare(folder, "--methods", "gradient-x-input:sign=absolute", "--format", "json").stdout)
    for row in rows:
        path = tmp_path / row["pooling"]
        run(folder, "--method", "gradient-x-input:sign=absolute", "--pooling", row["pooling"], "-o", path)
        scored = json.loads(invoke("score", folder / "gold", path, "--format", "json").stdout)[0]
        assert (scored["aer"], scored["links"]) == (row["aer"], row["links"])


@pytest.mark.parametrize("lexicon", ["", ":lexicon=0.2"])
def test_soft_agreement_of_a_mean_is_the_same_in_compare_and_run(folder, tmp_path, lexicon):
    spec, how = "mean(gradient-norm,2*attention:layer=0|1)", f"agreement:threshold=0.3:mean=geometric{lexicon}"
    both = ["--reverse-model", folder / "ts.pt"]
    rows = json.loads(
        compare(folder, *both, "--methods", spec, "--symmetrize", f"{how},union", "--format", "json").stdout
    )
    assert [row["method"] for row in rows] == ["mean"] * 7
    (row,) = (row for row in rows if row["direction"] == how)
    paths = {name: tmp_path / name for name in ("links", "scores")}
    run(folder, *both, "--method", spec, "--symmetrize", how, "-o", paths["links"], "--scores", paths["scores"])
    scored = json.loads(invoke("score", folder / "gold", paths["links"], "--format", "json").stdout)[0]
    assert (scored["aer"], scored["links"]) == (row["aer"], row["links"])
    values = [float(value) for value in paths["scores"].read_text().split()]
    assert len(values) == row["links"]
    assert min(values) > 0.3


def test_the_report_shows_interactions_of_short_pairs_when_asked(folder, tmp_path):
    page = tmp_path / "page.html"
    compare(folder, "--methods", "attention:layer=0", "--report", page, "--interactions", 4)
    data = json.loads(page.read_text().split('id="data">')[1].split("</script>")[0])
    pairs = {k: pair for k, pair in enumerate(data["pairs"]) if 0 < len(pair["source"]) <= 4}
    assert 0 < len(pairs) < len(data["pairs"]) - 1
    assert set(data["interactions"]) == set(map(str, pairs))
    model = load_model(folder / "st.pt", LoadOptions(input_kind="@@"))
    texts = list(read_joint(str(folder / "joint")))
    blanking = make_corruptions(model, ["zero"])["zero"]
    for k in pairs:
        expected = abs(interactions(model, model.encode_pair(texts[k]), blanking).pairs).max()
        assert data["interactions"][str(k)]["most"] == pytest.approx(expected, abs=1e-5)
    with pytest.raises(AlignError, match="name it by --report"):
        compare(folder, "--methods", "attention:layer=0", "--interactions", 4)


@pytest.mark.parametrize(
    ("methods", "kinds", "warned"),
    [
        ("gradient-norm,gradient-x-input", {"sensitivity", "saliency"}, "mixes saliency and sensitivity:"),
        ("smoothgrad:samples=2", {"sensitivity", "saliency"}, "mixes saliency and sensitivity:"),
        ("gradient-x-input,occlusion", {"saliency"}, None),
        (
            "mean(gradient-x-input,attention),gradient-norm",
            {"saliency+attention", "sensitivity"},
            "mixes attention, sal",
        ),
    ],
)
def test_a_table_that_mixes_what_is_measured_says_so(folder, tmp_path, methods, kinds, warned):
    page = tmp_path / "page.html"
    result = compare(folder, "--methods", methods, "--format", "json", "--report", page)
    rows = json.loads(result.stdout)
    assert {row["measures"] for row in rows} == kinds
    for text in (result.stderr, page.read_text(), *(row["warning"] or "" for row in rows)):
        assert (warned in text) if warned else ("this table mixes" not in text)


def test_table_and_tsv(folder):
    table = compare(folder, "--methods", "attention:layer=0", "--top", 1).stdout.splitlines()
    assert len(table) == 3
    assert table[-1].startswith("signature: method:attention|layer:0")
    tsv = compare(folder, "--methods", "attention:layer=0", "--format", "tsv").stdout.splitlines()
    assert set(FIELDS) <= set(tsv[0].split("\t"))
    assert len(tsv) == 1 + 4


def test_run_writes_links_scores_and_matrices(folder, tmp_path):
    paths = [tmp_path / name for name in ("links", "scores", "m.npz", "m.jsonl")]
    options = ["--method", "attention:layer=0", "-o", paths[0], "--scores", paths[1]]
    run(folder, *options, "--matrices", paths[2])
    run(folder, *options, "--overwrite", "--matrices", paths[3])
    links = [line.split() for line in paths[0].read_text().splitlines()]
    scores = [line.split() for line in paths[1].read_text().splitlines()]
    records = [json.loads(line) for line in paths[3].read_text().splitlines()]
    assert len(links) == len(scores) == len(records) == 12
    assert links[5] == []
    assert records[5]["status"] == "empty"
    with np.load(paths[2], allow_pickle=False) as arrays:
        for n, record in enumerate(records):
            assert [f"{i}-{j}" for i, j, _ in record["links"]] == links[n]
            assert [score for *_, score in record["links"]] == [float(score) for score in scores[n]]
            assert arrays[str(n)].shape == (len(record["tgt"]), len(record["src"]))
            if record["matrix"]:
                np.testing.assert_allclose(arrays[str(n)], record["matrix"], atol=1e-6)
            for j, row in enumerate(record["matrix"]):
                if row:
                    assert [int(np.argmax(row)), j] in [link[:2] for link in record["links"]]


def test_run_reads_every_kind_of_input(folder):
    expected = run(folder).stdout
    joint = invoke("run", "-m", folder / "st.pt", "-i", folder / "joint").stdout
    piped = CliRunner().invoke(cli, ["run", "-m", str(folder / "st.pt"), "-i", "-"], (folder / "joint").read_text())
    (folder / "tsv").write_text((folder / "joint").read_text().replace(" ||| ", "\t"))
    tsv = invoke("run", "-m", folder / "st.pt", "--tsv", folder / "tsv").stdout
    assert expected == joint == piped.stdout == tsv
    assert expected.count("\n") == 12


def test_batch_size_changes_nothing(folder):
    outputs = {run(folder, "--method", "gradient-x-input", "--batch-pieces", n).stdout for n in (1, 40, 10_000)}
    assert len(outputs) == 1


def test_run_both_directions(folder):
    both = run(folder, "--reverse-model", folder / "ts.pt", "--symmetrize", "union", "--method", "attention:layer=0")
    forward = run(folder, "--method", "attention:layer=0")
    for ours, one in zip(both.stdout.splitlines(), forward.stdout.splitlines(), strict=True):
        assert set(one.split()) <= set(ours.split())
    assert both.stdout != forward.stdout


def test_translate_and_align(folder, tmp_path):
    common = ["run", "-m", folder / "st.pt", "-s", folder / "src", "--method", "attention:layer=0"]
    links = invoke(*common, "--translate", "--beam", 2, "--translations", tmp_path / "tgt").stdout
    assert (tmp_path / "tgt").read_text().count("\n") == links.count("\n") == 12
    assert invoke(*common, "-t", tmp_path / "tgt").stdout == links
    with pytest.raises(AlignError, match="belong together"):
        invoke(*common, "--translate")
    with pytest.raises(AlignError, match="--source alone"):
        invoke(*common, "-t", folder / "tgt", "--translate", "--translations", tmp_path / "other")


def test_fail_on_a_status(folder):
    assert run(folder).exit_code == 0
    result = CliRunner().invoke(
        cli,
        ["run", "-m", str(folder / "st.pt"), "-i", str(folder / "joint"), "--fail-on", "empty"],
        standalone_mode=False,
    )
    assert result.return_value == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "attenton"], "did you mean 'attention'"),
        (["--method", "attention:layer=7"], "decoder layers 0 to 1"),
        (["-i", "x"], "in one way"),
        (["--source-dict", "SELF"], r"embed_tokens.*entries"),
        (["--matrices", "m.txt"], "must end in .npz or .jsonl"),
    ],
)
def test_mistakes(folder, arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = [str(folder / "dict.small") if a == "SELF" else a for a in arguments]
    (folder / "dict.small").write_text("a 1\n")
    (tmp_path / "x").write_text("")
    with pytest.raises(AlignError, match=message):
        run(folder, *arguments)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x"]


def test_unknown_text_is_refused(folder, tmp_path):
    (tmp_path / "src").write_text("eins zwei drei\n")
    (tmp_path / "tgt").write_text("one two three\n")
    arguments = ["run", "-m", folder / "st.pt", "-s", tmp_path / "src", "-t", tmp_path / "tgt"]
    with pytest.raises(AlignError, match="75% of the pieces of this text are unknown"):
        invoke(*arguments)
    assert invoke(*arguments, "--max-unknown", 1).stdout.count("\n") == 1


def test_gold_of_another_length(folder, tmp_path):
    (tmp_path / "gold").write_text("".join("\n" if n == 5 else "0-0\n" for n in range(11)))
    with pytest.raises(AlignError, match=r"11|12"):
        invoke("compare", "-m", folder / "st.pt", "-i", folder / "joint", "-g", tmp_path / "gold")


needs_hansards = pytest.mark.skipif(
    not (HANSARDS / "en-fr.pt").is_file() or not GOLD.is_dir(), reason="the shared Hansards models are not at hand"
)


@pytest.fixture(scope="module")
def expected():
    rows = [line.split("\t") for line in (HANSARDS / "expected.tsv").read_text().splitlines()[1:]]
    return {(model, method, pooling): float(aer) for model, method, pooling, aer, *_ in rows}


@pytest.mark.slow
@needs_hansards
@pytest.mark.parametrize("model", ["en-fr", "fr-en"])
def test_hansards_attention(model, expected):
    """AER by layer, position and pooling as an independent implementation found it, within 1 point."""
    sides = ["-s", GOLD / "src", "-t", GOLD / "tgt"] if model == "en-fr" else ["-s", GOLD / "tgt", "-t", GOLD / "src"]
    swap = [] if model == "en-fr" else ["--gold-swap"]
    arguments = ["-m", HANSARDS / f"{model}.pt", *sides, "-g", GOLD / "gold", *swap, "--bootstrap", 0]
    rows = json.loads(invoke("compare", *arguments, "--methods", "attention", "--format", "json").stdout)
    assert len(rows) == 12
    for row in rows:
        theirs = expected[model, f"attention/{row['position']}/{row['layer']}", row["pooling"]]
        assert row["aer"] == pytest.approx(theirs, abs=0.01)
