"""`nmt-align lexicon`."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from align.lexicon_commands import lexicon
from align.lexicon_readers import read_entries, read_moses
from data.errors import DataError, UsageError

SOURCE = "das Haus\nHaus , das\n\nja\n"
TARGET = "the house\nhouse\n\nyes sir\n"
LINKS = "0-0 1-1\n0-0\n\n0-0 0-1\n"


@pytest.fixture
def corpus(tmp_path: Path) -> list[str]:
    arguments = []
    for option, name, text in (("-s", "source", SOURCE), ("-t", "target", TARGET), ("-a", "links", LINKS)):
        (tmp_path / name).write_text(text)
        arguments += [option, str(tmp_path / name)]
    return arguments


def invoke(*arguments: object, stdin: str | None = None) -> Result:
    return CliRunner().invoke(lexicon, list(map(str, arguments)), input=stdin)


def cells(result: Result) -> list[list[str]]:
    """The rows of a TSV on standard output, without the names and the probabilities."""
    assert result.exit_code == 0, result.exception
    return [line.split("\t")[:5] for line in result.stdout.splitlines()[1:]]


def test_words_with_their_counts(corpus: list[str]) -> None:
    result = invoke(*corpus)
    assert cells(result) == [
        [",", "", "1", "1", "2"],
        ["Haus", "house", "2", "2", "2"],
        ["das", "", "1", "2", "2"],
        ["das", "the", "1", "2", "1"],
        ["ja", "sir", "1", "2", "1"],
        ["ja", "yes", "1", "2", "1"],
    ]
    assert result.stderr.startswith("links:pharaoh|possible:1|scores:no|case:kept|null:yes|")


def test_other_ways_to_give_the_text(corpus: list[str], tmp_path: Path) -> None:
    pairs = list(zip(SOURCE.splitlines(), TARGET.splitlines(), strict=True))
    joint = "".join(f"{s} ||| {t}\n" if s else "\n" for s, t in pairs)
    tsv = tmp_path / "text.tsv"
    tsv.write_text("".join(f"x\t{t}\t{s}\n" for s, t in pairs))
    expected = invoke(*corpus).stdout
    assert invoke("-i", "-", *corpus[4:], stdin=joint).stdout == expected
    assert invoke("--tsv", tsv, "--columns", "3,2", *corpus[4:]).stdout == expected


def test_without_null_and_in_lower_case(corpus: list[str]) -> None:
    assert cells(invoke(*corpus, "--no-null", "--lowercase")) == [
        ["das", "the", "1", "1", "1"],
        ["haus", "house", "2", "2", "2"],
        ["ja", "sir", "1", "2", "1"],
        ["ja", "yes", "1", "2", "1"],
    ]


def test_what_is_kept(corpus: list[str], tmp_path: Path) -> None:
    stop = tmp_path / "stop"
    stop.write_text("HAUS xyz\n")
    kept = cells(invoke(*corpus, "--min-count", 1, "--top", 1, "--source-stop", stop, "--lowercase"))
    assert [row[:2] for row in kept] == [[",", ""], ["das", ""], ["das", "the"], ["ja", "sir"]]


def test_measures_and_examples(corpus: list[str]) -> None:
    result = invoke(*corpus, "--measure", "llr", "--measure", "dice", "--context", 1)
    names, *rows = [line.split("\t") for line in result.stdout.split("\n")[:-1]]
    assert names[7:] == ["llr", "dice", "example_1"]
    assert rows[1][8:] == ["1.0", "das Haus ||| the house"]
    assert rows[2][9] == "Haus , das ||| house"


def test_examples_of_text_from_a_pipe(corpus: list[str]) -> None:
    pairs = list(zip(SOURCE.splitlines(), TARGET.splitlines(), strict=True))
    joint = "".join(f"{s} ||| {t}\n" if s else "\n" for s, t in pairs)
    expected = invoke(*corpus, "--context", 2)
    assert expected.stdout.splitlines()[2].endswith("\tdas Haus ||| the house\tHaus , das ||| house")
    assert invoke("-i", "-", *corpus[4:], "--context", 2, stdin=joint).stdout == expected.stdout


def test_phrases(corpus: list[str]) -> None:
    rows = cells(invoke(*corpus, "--max-phrase", 2))
    assert [row[:3] for row in rows] == [
        ["Haus", "house", "2"],
        ["Haus ,", "house", "1"],
        ["das", "the", "1"],
        ["das Haus", "the house", "1"],
        ["ja", "yes sir", "1"],
    ]


def test_gold_links_and_scores(corpus: list[str], tmp_path: Path) -> None:
    gold = tmp_path / "gold"
    gold.write_text("0-0 1p1\n0-0\n\n0p0 0p1\n")
    rows = cells(invoke(*corpus[:4], "-a", gold, "--links-format", "gold", "--possible-weight", 0.5))
    assert rows[1][:3] == ["Haus", "house", "1.5"]
    scores = tmp_path / "scores"
    scores.write_text("0.25 1\n0.5\n\n0 0.125\n")
    rows = cells(invoke(*corpus, "--scores", scores))
    assert [row[:3] for row in rows if row[0] in ("Haus", "ja")] == [["Haus", "house", "1.5"], ["ja", "sir", "0.125"]]


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_lexicons_of_parts_are_merged(corpus: list[str], tmp_path: Path, engine: str) -> None:
    if engine == "duckdb":
        pytest.importorskip("duckdb", reason="the extra duckdb is not installed")
    whole = invoke(*corpus).stdout
    parts = []
    for number, (start, end) in enumerate(((0, 1), (1, 4))):
        arguments = []
        for option, name, text in (("-s", "s", SOURCE), ("-t", "t", TARGET), ("-a", "a", LINKS)):
            (tmp_path / name).write_text("".join(text.splitlines(keepends=True)[start:end]))
            arguments += [option, tmp_path / name]
        out = tmp_path / f"part{number}{('.tsv', '.jsonl.gz')[number]}"
        assert invoke(*arguments, "-o", out).exit_code == 0
        parts += ["--merge", out]
    assert invoke(*parts, "--engine", engine).stdout == whole
    assert invoke(*corpus, "--engine", engine).stdout == whole
    twice = invoke(*corpus, *parts, "--engine", engine)
    assert [float(row[2]) for row in cells(twice)] == [2 * float(row[2]) for row in cells(invoke(*corpus))]


def test_filtered_parts_are_refused(corpus: list[str], tmp_path: Path) -> None:
    part = tmp_path / "part.tsv"
    invoke(*corpus, "--top", 1, "-o", part)
    result = invoke("--merge", part)
    assert isinstance(result.exception, DataError)
    assert "without --min-count" in str(result.exception)


def test_format_by_name_and_moses_prefix(corpus: list[str], tmp_path: Path) -> None:
    assert invoke(*corpus, "-o", tmp_path / "lex.jsonl").exit_code == 0
    assert json.loads((tmp_path / "lex.jsonl").read_text().splitlines()[1])["target"] == "house"
    assert len(list(read_entries(str(tmp_path / "lex.jsonl"), "jsonl"))) == 6
    assert invoke(*corpus, "--format", "moses", "-o", tmp_path / "lex").exit_code == 0
    assert ("", ",", 1.0) in read_moses(str(tmp_path / "lex.f2e"))
    refused = invoke(*corpus, "--format", "moses", "-o", tmp_path / "lex")
    assert "lex.f2e: exists already" in str(refused.exception)


def test_eflomal_has_all_five_kinds_of_rows(corpus: list[str]) -> None:
    lines = invoke(*corpus, "--format", "eflomal").stdout.splitlines()
    assert list(dict.fromkeys(line.split("\t")[0] for line in lines)) == ["LEX", "FERF", "FERR", "HMMF", "HMMR"]
    assert "FERF\tja\t2\t1" in lines


def test_glossaries(corpus: list[str], tmp_path: Path) -> None:
    (tmp_path / "source").write_text(SOURCE.replace("das", "=das"))
    assert invoke(*corpus, "--quote-formulas", "-o", tmp_path / "lex.csv").exit_code == 0
    with open(tmp_path / "lex.csv", encoding="utf-8", newline="") as file:
        assert [row[0] for row in csv.reader(file)] == ["source", "'=das", "Haus", "ja", "ja"]
    tbx = invoke(*corpus, "--format", "tbx", "--source-lang", "de", "--target-lang", "en").stdout
    assert tbx.count("<conceptEntry") == 4


def test_reports(corpus: list[str], tmp_path: Path) -> None:
    unaligned = invoke(*corpus, "--report", "unaligned", "--min-count", 1).stdout.splitlines()
    assert unaligned[:3] == ["side\tword\tcount\tunaligned\trate", "source\t,\t1\t1\t1", "source\tdas\t2\t1\t0.5"]
    other = tmp_path / "other"
    other.write_text("0-0 1-1\n1-0\n\n0-1\n")
    punctuation = invoke(*corpus[:4], "-a", other, "--report", "punctuation").stdout
    assert punctuation == "side\tword\tcount\tpartners\n"
    assert invoke(*corpus, "--report", "disagreement", "--other", other).stdout.splitlines() == [
        "source\tcount\tfirst\tfirst_p\tsecond\tsecond_p",
        "Haus\t2\thouse\t1\t\t0.5",
        ",\t1\t\t1\thouse\t1",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give the text and its --links, or lexicons to --merge"),
        (["-s", "source"], "--links is missing"),
        (["-s", "source", "-a", "links"], "give the text in one way"),
        (["-i", "-", "-a", "links", "--report", "disagreement", "--other", "z"], "read once"),
        (["--merge", "x", "--context", "1"], "need a text"),
        (["--merge", "x", "--report", "unaligned"], "need a text"),
        (["-i", "x", "-a", "y", "--report", "disagreement"], "--other belong together"),
        (["-i", "x", "-a", "y", "--other", "z"], "--other belong together"),
        (["-i", "x", "-a", "y", "--report", "unaligned", "--format", "tsv"], "writes no lexicon"),
        (["-i", "x", "-a", "y", "--max-phrase", "2", "--format", "marian"], "marian cannot hold phrases"),
        (["-i", "x", "-a", "y", "--measure", "pmi", "--format", "muse"], "muse has no place"),
        (["-i", "x", "-a", "y", "--format", "tbx"], "--source-lang and --target-lang"),
        (["-i", "x", "-a", "y", "--quote-formulas"], "--quote-formulas is for csv"),
        (["-i", "x", "-a", "y", "--format", "moses"], "give -o PREFIX"),
    ],
)
def test_options_that_do_not_go_together(arguments: list[str], message: str) -> None:
    result = invoke(*arguments)
    assert isinstance(result.exception, UsageError)
    assert message in str(result.exception)


def test_links_and_text_must_fit_and_no_file_is_left(corpus: list[str], tmp_path: Path) -> None:
    out = tmp_path / "out.tsv"
    for text, message in ((LINKS[:-1] + " 7-0", "links:4:9: link 7-0"), (LINKS + "\n", "links for 5 sentence pairs")):
        (tmp_path / "links").write_text(text)
        result = invoke(*corpus, "-o", out)
        assert isinstance(result.exception, DataError)
        assert message in str(result.exception)
    (tmp_path / "links").write_text(LINKS)
    (tmp_path / "target").write_text(TARGET + "more\n")
    assert "target:5: no partner for this line" in str(invoke(*corpus, "-o", out).exception)
    assert not out.exists()


def test_it_does_not_import_torch() -> None:
    code = "import sys, align.lexicon_commands, eval.lexicon_commands; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
