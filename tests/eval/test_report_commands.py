"""`view`, `show` and `plot`, and the `--report` of `score`, `run` and `compare`."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner, Result

from align.extract import Extraction
from align.lexicon_commands import lexicon
from data.bitext import Pair
from data.errors import DataError, UsageError
from data.links import GoldAlignment
from eval.commands import score
from eval.plot_command import plot
from eval.report.build import ALPHABET
from eval.report.lexicon import lexicon_report
from eval.show_command import picture, show
from eval.view_command import view

SOURCE = "the house is small\nit\n"
TARGET = "das Haus ist klein\nes\n"
LINKS = "0-0 1-1 2-3\n0-0\n"
GOLD = "0p0 1-1 2-2 3-3\n0-0\n"
SOFT = {
    "src": ["日本", "<b>"],
    "tgt": ["x", "$y$"],
    "links": [[1, 0, 0.75]],
    "matrix": [[0.5, 1.5], [0, 0]],
    "method": "method:attention:layer=1|pool:word",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    texts = {"s": SOURCE, "t": TARGET, "links": LINKS, "gold": GOLD, "soft.jsonl": json.dumps(SOFT) + "\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def invoke(command: click.Command, *arguments: str) -> Result:
    return CliRunner().invoke(command, arguments, catch_exceptions=False)


def payload(path: Path | str) -> dict[str, Any]:
    text = Path(path).read_text()
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found
    data = json.loads(found[1])
    assert isinstance(data, dict)
    return data


TEXT = ("-s", "s", "-t", "t")


def test_view_of_plain_links(folder: Path) -> None:
    result = invoke(view, "links", *TEXT)
    assert result.exit_code == 0
    assert result.stderr == "2 pairs in alignment.html\n"
    data = payload("alignment.html")
    assert data["pairs"][0] == {"line": 1, "source": SOURCE.split()[:4], "target": TARGET.split()[:4]}
    (system,) = data["systems"]
    assert (system["name"], system["links"], system["soft"]) == ("links", ["001123", "00"], None)
    assert ">AER" not in Path("alignment.html").read_text()


def test_view_with_gold_ranks_files(folder: Path) -> None:
    (folder / "empty").write_text("\n\n")
    invoke(view, "empty", "links", *TEXT, "-g", "gold", "-o", "page.html")
    data = payload("page.html")
    assert [system["name"] for system in data["systems"]] == ["links", "empty"]
    assert data["systems"][0]["aer"] == pytest.approx(1 - (2 + 3) / (4 + 4))  # 4 links, 2 of 4 sure, 3 possible
    assert data["pairs"][0]["sure"] == "112233"
    assert data["pairs"][0]["possible"] == "00"


def test_view_of_soft_alignments_needs_no_text(folder: Path) -> None:
    invoke(view, "soft.jsonl")
    data = payload("alignment.html")
    assert data["matrices"] == [["".join(ALPHABET[n] for n in (16, 47, 0, 0))]]  # 63 times 0.25, 0.75, and no evidence
    assert data["systems"][0]["signature"] == SOFT["method"]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("links",), UsageError, "no text"),
        (("links", "links", *TEXT), UsageError, "given twice"),
        (("links", *TEXT, "-o", "s"), UsageError, "is an input"),
        (("links", *TEXT, "-o", "gold"), UsageError, "exists already"),
        (("links", *TEXT, "--format", "gold", "-g", "missing"), DataError, "missing"),
        (("soft.jsonl", *TEXT), DataError, "soft alignments of 1 pairs, a text of 2"),
        (("gold", *TEXT), DataError, "gold:1:1"),
        (("links", "-s", "t", "-t", "s", "--one-based"), DataError, "links:1:1"),
    ],
)
def test_view_refuses(folder: Path, arguments: Sequence[str], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        invoke(view, *arguments)
    assert not (folder / "alignment.html").exists()


def test_soft_alignments_of_other_words(folder: Path) -> None:
    (folder / "s1").write_text("日本 b\n")
    (folder / "t1").write_text("x $y$\n")
    with pytest.raises(DataError, match="the words are not those of the text"):
        invoke(view, "soft.jsonl", "-s", "s1", "-t", "t1")


def test_show(folder: Path) -> None:
    assert invoke(show, "links", *TEXT).stdout.splitlines() == [
        "0 the  1 house  2 is  3 small",
        "",
        "          0 1 2 3",
        "  0 das   * . . .  the",
        "  1 Haus  . * . .  house",
        "  2 ist   . . . .",
        "  3 klein . . * .  is",
    ]


def test_show_with_gold(folder: Path) -> None:
    assert invoke(show, "links", *TEXT, "-g", "gold").stdout.splitlines()[3:] == [
        "  0 das   + . . .  the(+)",
        "  1 Haus  . * . .  house(*)",
        "  2 ist   . . o .  is(o)",
        "  3 klein . . x o  is(x) small(o)",
        "",
        "* hit   + hit, possible only   x false   o missed   . nothing",
    ]


def test_show_counts_past_ten_and_keeps_columns() -> None:
    pair = Pair(0, tuple(f"s{i}" for i in range(12)), ("日本", "x\x1b"))
    lines = list(picture(pair, frozenset({(10, 0)})))
    assert lines[2].split() == ["0", "1"]
    assert (
        lines[2].index("1") == lines[3].rindex("0") == lines[4].index("*") + 2
    )  # 日本 is four wide, as two characters
    assert lines[5].startswith("  1 x\\x1b .")


def test_show_of_empty_pairs() -> None:
    assert list(picture(Pair(0, (), ("x",)), frozenset())) == ["", "", "      ", "  0 x"]
    assert next(picture(Pair(0, ("x",), ()), frozenset(), GoldAlignment(frozenset()))) == "0 x"


def test_show_of_a_pair_that_is_not_there(folder: Path) -> None:
    assert invoke(show, "links", *TEXT, "--pair", "2").stdout.splitlines()[-1] == "  0 es *  it"
    with pytest.raises(DataError, match="there is no pair 3: 2 pairs"):
        invoke(show, "links", *TEXT, "--pair", "3")


@pytest.mark.parametrize(("name", "magic"), [("a.png", b"\x89PNG"), ("a.pdf", b"%PDF")])
def test_plot(folder: Path, name: str, magic: bytes) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    result = invoke(plot, "soft.jsonl", "-o", name)
    assert [re.sub(" missing.*;", ";", line) for line in result.stderr.splitlines()] == [
        "note: Glyph 26085 (\\N{CJK UNIFIED IDEOGRAPH-65E5}); --font names a font that has it",
        "note: Glyph 26412 (\\N{CJK UNIFIED IDEOGRAPH-672C}); --font names a font that has it",
    ]
    first = Path(name).read_bytes()
    assert first.startswith(magic)
    invoke(plot, "soft.jsonl", "-o", name, "--overwrite")
    assert Path(name).read_bytes() == first
    invoke(plot, "soft.jsonl", "-o", name, "--overwrite", "--no-links")
    assert Path(name).read_bytes() != first


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("links", "-o", "a.png"), UsageError, "expected a .jsonl file"),
        (("soft.jsonl", "-o", "a.gif"), UsageError, "must end in .pdf or .png"),
        (("soft.jsonl", "-o", "a.png", "--pair", "2"), DataError, "there is no pair 2"),
        (("soft.jsonl", "-o", "a.png", "--font", "No Such Font"), UsageError, "'No Such Font' is not installed"),
    ],
)
def test_plot_refuses(folder: Path, arguments: Sequence[str], error: type[Exception], message: str) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    with pytest.raises(error, match=message):
        invoke(plot, *arguments)
    assert not list(folder.glob("a.*"))


def test_score_report(folder: Path) -> None:
    result = invoke(score, "gold", "links", "links", *TEXT, "--report", "page.html", "--format", "json")
    (first, second) = payload("page.html")["systems"]
    assert first == second
    (row, _) = json.loads(result.stdout)
    assert {key: first[key] for key in ("aer", "aer_low", "signature")} == {
        key: row[key] for key in ("aer", "aer_low", "signature")
    }
    with pytest.raises(UsageError, match="--report shows words"):
        invoke(score, "gold", "links", "--report", "other.html")
    with pytest.raises(UsageError, match="exists already"):
        invoke(score, "gold", "links", *TEXT, "--report", "page.html")


def test_run_report_holds_the_first_pairs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from eval.report import files

    monkeypatch.setattr(files, "MAX_PAIRS", 2)
    report = files.RunReport()
    for result in tiny_results():
        report.add(result)
    assert report.write("page.html", "method:attention:layer=1|x:y") == ["the first 2 of 6 sentence pairs"]
    data = payload("page.html")
    assert len(data["pairs"]) == 2
    assert data["systems"][0]["name"] == "attention:layer=1"


def tiny_results() -> list[Any]:
    from align.methods import make_method
    from align.pipeline import align_pairs
    from tests.tiny import tiny_model, tiny_pairs

    return list(align_pairs(tiny_model(), tiny_pairs(), make_method("attention:layer=1"), Extraction("word")))


def test_comparison_report_shows_both_directions() -> None:
    from eval.compare import Comparison, compare, score_systems
    from eval.report.build import payload as build
    from eval.report.compared import comparison_report
    from tests.tiny import SOURCE as S
    from tests.tiny import TARGET as T
    from tests.tiny import dictionary, tiny_model, tiny_pairs

    plan = Comparison(["attention"], [Extraction("word"), Extraction("piece")], ["agreement", "union"])
    forward = tiny_model()
    reverse = tiny_model(seed=1, source=dictionary(T), target=dictionary(S))
    pairs = tiny_pairs()
    systems = compare(plan, forward, reverse, pairs)
    gold = [GoldAlignment(frozenset({(0, 0)}))] * len(pairs)
    ranked = score_systems(systems, gold, {}, 0, 1)
    ranked.sort(key=lambda scored: scored[0].direction != "reverse")  # as if these were the best
    report = comparison_report(ranked, gold, ["a fact"])
    assert [len(pair.source) for pair in report.pairs] == [sum("@@" not in word for word in p.source) for p in pairs]
    assert all(word.startswith("t") for pair in report.pairs for word in pair.target)
    assert [s.row for s in report.systems] == [row for _, row in ranked]
    data, notes = build(report)
    assert notes == []
    matrices = data["matrices"]
    assert isinstance(matrices, list)
    assert len(matrices) == 2 * 2 * 3  # layers, AWO and AWI, directions and both; not once more for each pooling
    assert [label for label, _ in report.cards["attention"]] == [
        "Measures",
        "Question",
        "For",
        "Cost",
        "Known failure",
        "Explains from",
        "Source",
    ]
    for shown, (system, _) in zip(report.systems, ranked, strict=True):
        assert shown.soft is not None
        if system.direction in ("forward", "reverse"):
            matrix = system.run.aligned[2].matrix
            naive = np.array([[max(x, 0) / max(sum(max(y, 0) for y in line), 1e-300) for x in line] for line in matrix])
            expected = naive if system.direction == "forward" else naive.T
            np.testing.assert_allclose(shown.soft(2), expected)
    both = {(s.run.method, s.direction): shown for shown, (s, _) in zip(report.systems, ranked, strict=True)}
    method = systems[0].run.method
    sides = [both[method, side].soft for side in ("forward", "reverse", "union")]
    there, back, mean = (soft(2) for soft in sides if soft is not None)
    np.testing.assert_allclose(mean, (there + back) / 2)


def test_view_of_a_lexicon(folder: Path) -> None:
    invoke(lexicon, "-s", "s", "-t", "t", "-a", "links", "--context", "1", "-o", "l.jsonl")
    result = invoke(view, "--lexicon", "l.jsonl", "-o", "page.html")
    assert result.stderr == "2 pairs in page.html\n"
    data = payload("page.html")
    assert ["house", "Haus", 1.0, 1.0, 1.0, [0]] in data["lexicon"]
    assert ["", "ist", 1.0, 1.0, 1.0, [0]] in data["lexicon"]
    assert [pair["line"] for pair in data["pairs"]] == [1, 2]
    for arguments in (["links", "--lexicon", "l.jsonl"], []):
        with pytest.raises(UsageError, match="either ALIGNMENTS or --lexicon"):
            invoke(view, *arguments)


def test_a_large_lexicon_is_cut_to_its_frequent_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eval.report.lexicon.MAX_ENTRIES", 2)
    monkeypatch.setattr("eval.report.lexicon.MAX_PAIRS", 1)
    rows = []
    for line, (word, count) in enumerate((("a", 1), ("b", 3), ("c", 2)), 1):
        example = {"line": line, "source": [word], "target": ["x"], "links": [[0, 0]]}
        counts = {"count": count, "source_count": count, "target_count": 6}
        rows.append(json.dumps({"source": word, "target": "x", **counts, "examples": [example]}))
    (tmp_path / "l.jsonl").write_text("\n".join(rows))
    report, notes = lexicon_report(str(tmp_path / "l.jsonl"))
    assert [(entry.source, list(entry.pairs)) for entry in report.lexicon or ()] == [("b", [0]), ("c", [])]
    assert report.pairs == [Pair(1, ("b",), ("x",))]
    assert notes == [
        "the 2 most frequent of 3 entries",
        "the first 1 of 2 example sentences, most frequent entries first",
    ]
