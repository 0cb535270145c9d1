"""`nmt-align score`."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from align import __version__
from align.cli import cli
from data.errors import DataError, UsageError

GOLD = "0-0 1-1 1p2\n2-2 0p0\n\n"
HYP = "0-0 1-2\n2-2 0-1\n\n"
# |A| 4, |S| 3, |A & S| 2, |A & P| 3


def invoke(*arguments: object, stdin: str | None = None, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(cli, ["score", *map(str, arguments)], input=stdin, env=env)


def rows(*arguments: object, **options: Any) -> list[dict[str, Any]]:
    result = invoke(*arguments, "--format", "json", **options)
    assert result.exit_code == 0, result.exception
    parsed = json.loads(result.stdout)
    assert isinstance(parsed, list)
    return parsed


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    gold, hyp = tmp_path / "gold", tmp_path / "hyp"
    gold.write_text(GOLD)
    hyp.write_text(HYP)
    return gold, hyp


def test_json_row(files: tuple[Path, Path]) -> None:
    (row,) = rows(*files)
    low, high = row.pop("aer_low"), row.pop("aer_high")
    assert 0 <= low <= row["aer"] <= high <= 1
    assert row == {
        "file": str(files[1]),
        "sentences": 3,
        "aer": pytest.approx(1 - 5 / 7),
        "p_value": None,
        "precision": 0.75,
        "recall": pytest.approx(2 / 3),
        "f1": pytest.approx(12 / 17),
        "f_alpha": pytest.approx(12 / 17),
        "links": 4,
        "sure_hits": 2,
        "possible_hits": 3,
        "sure": 3,
        "signature": "gold:gold|gold-base:0|gold-swap:no|possible:kept|hyp:pharaoh|hyp-base:0|hyp-swap:no"
        f"|alpha:0.5|bootstrap:1000|seed:12345|version:{__version__}",
    }


def test_table(files: tuple[Path, Path]) -> None:
    result = invoke(*files, "--bootstrap", "0")
    head, line, signature = result.stdout.splitlines()
    assert head.split() == ["file", "AER", "%", "precision", "%", "recall", "%", "F1", "%", "links", "sure"]
    assert line.split() == [str(files[1]), "28.6", "75.0", "66.7", "70.6", "4", "3"]
    assert signature.startswith("signature: gold:gold|")
    assert "bootstrap:0|version" in signature


def test_several_systems_in_the_order_given(files: tuple[Path, Path], tmp_path: Path) -> None:
    many_gold, many_hyp, good = tmp_path / "many_gold", tmp_path / "many_hyp", tmp_path / "good"
    many_gold.write_text(GOLD * 20)
    many_hyp.write_text(HYP * 20)
    good.write_text("0-0 1-1\n2-2\n\n" * 20)
    result = rows(many_gold, many_hyp, good, many_hyp)
    assert [row["file"] for row in result] == [str(many_hyp), str(good), str(many_hyp)]
    assert [row["aer"] for row in result] == [pytest.approx(2 / 7), 0, pytest.approx(2 / 7)]
    assert result[0]["p_value"] is None
    assert result[1]["p_value"] < 0.05
    assert result[2]["p_value"] == 1
    table = invoke(many_gold, many_hyp, good).stdout.splitlines()
    assert table[0].split()[:7] == ["file", "AER", "%", "95%", "low", "95%", "high"]
    assert "*" not in table[1]
    assert "0.001*" in table[2]


def test_tsv_and_output_file(files: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "out.tsv"
    assert invoke(*files, "--format", "tsv", "-o", out).stdout == ""
    head, line = out.read_text().splitlines()
    row = dict(zip(head.split("\t"), line.split("\t"), strict=True))
    assert float(row["aer"]) == pytest.approx(2 / 7)
    assert row["p_value"] == ""
    again = invoke(*files, "-o", out)
    assert isinstance(again.exception, UsageError)
    assert invoke(*files, "-o", out, "--overwrite").exit_code == 0
    assert out.read_text().startswith("file")


def test_possible_links(files: tuple[Path, Path]) -> None:
    (ignored,) = rows(*files, "--ignore-possible")
    (all_sure,) = rows(*files, "--all-sure")
    assert ignored["aer"] == pytest.approx(1 - 4 / 7)
    assert all_sure["aer"] == pytest.approx(1 - 6 / 9)
    assert "|possible:ignored|" in ignored["signature"]
    assert "|possible:sure|" in all_sure["signature"]


def test_base_and_direction_per_file(files: tuple[Path, Path], tmp_path: Path) -> None:
    (plain,) = rows(*files)
    gold, hyp = tmp_path / "gold1", tmp_path / "hyp1"
    gold.write_text("1-1 2-2 3p2\n3-3 1p1\n\n")  # one-based, target first
    hyp.write_text("1-1 3-2\n3-3 2-1\n\n")
    (turned,) = rows(gold, hyp, "--gold-one-based", "--gold-swap", "--hyp-one-based", "--hyp-swap")
    assert turned["signature"] == plain["signature"].replace("base:0", "base:1").replace("swap:no", "swap:yes")
    numbers = [key for key in plain if key not in ("file", "signature")]
    assert [turned[key] for key in numbers] == [plain[key] for key in numbers]
    (naacl,) = rows(_written(tmp_path, "1 1 1\n1 2 2 S\n1 2 3 P\n2 3 3\n2 1 1 P\n3 0 1\n"), files[1], *NAACL)
    assert [naacl[key] for key in numbers] == [plain[key] for key in numbers]
    assert naacl["signature"].startswith("gold:naacl|gold-base:1|")


NAACL = ("--gold-format", "naacl")


def _written(folder: Path, text: str) -> Path:
    path = folder / "written"
    path.write_text(text)
    return path


def test_alpha_shows_a_column(files: tuple[Path, Path]) -> None:
    (row,) = rows(*files, "--alpha", "0.25")
    assert row["f_alpha"] == pytest.approx(1 / (0.25 / 0.75 + 0.75 / (2 / 3)))
    assert "F-alpha %" in invoke(*files, "--alpha", "0.25").stdout
    assert invoke(*files, "--alpha", "1").exit_code == 2


def test_seed_from_option_or_environment(files: tuple[Path, Path]) -> None:
    assert "|seed:7|" in rows(*files, "--seed", "7")[0]["signature"]
    assert rows(*files, env={"NMT_ALIGN_SEED": "7"}) == rows(*files, "--seed", "7")
    assert "seed" not in rows(*files, "--bootstrap", "0")[0]["signature"]


def test_standard_input_and_gzip(files: tuple[Path, Path], tmp_path: Path) -> None:
    packed = tmp_path / "gold.gz"
    packed.write_bytes(gzip.compress(GOLD.encode()))
    (row,) = rows(packed, "-", stdin=HYP)
    assert (row["file"], row["aer"]) == ("-", pytest.approx(2 / 7))
    assert isinstance(invoke("-", "-", stdin=HYP).exception, UsageError)


@pytest.mark.parametrize("hyp", ["0-0\n", HYP + "\n"])
def test_line_counts_must_match(files: tuple[Path, Path], hyp: str) -> None:
    files[1].write_text(hyp)
    error = invoke(*files).exception
    assert isinstance(error, DataError)
    assert str(error).startswith(f"{files[1]}: {hyp.count(chr(10))} sentence pairs, but {files[0]} has 3")


def test_undefined_is_shown_as_such(files: tuple[Path, Path]) -> None:
    files[1].write_text("\n\n\n")
    (row,) = rows(*files)
    assert (row["aer"], row["precision"], row["recall"], row["f1"]) == (1, None, 0, None)
    files[0].write_text("\n0p0\n\n")
    result = invoke(*files)
    assert result.stdout.splitlines()[1].split()[1:] == ["–", "–", "–", "–", "–", "–", "0", "0"]
    (row,) = rows(*files)
    undefined = ("aer", "aer_low", "aer_high", "precision", "recall", "f1", "f_alpha")
    assert [row[key] for key in undefined] == [None] * len(undefined)


def test_files_without_lines(tmp_path: Path) -> None:
    (row,) = rows(_written(tmp_path, ""), _written(tmp_path, ""))
    assert (row["sentences"], row["aer"], row["aer_low"]) == (0, None, None)


@pytest.mark.parametrize(("hyp", "column"), [("0-0\n2-2 1:1\n\n", 5), ("0-0\n0p0\n\n", 1), ("0-0\n0-0:0.9\n\n", 1)])
def test_malformed_links_name_their_place(files: tuple[Path, Path], hyp: str, column: int) -> None:
    files[1].write_text(hyp)
    error = invoke(*files).exception
    assert isinstance(error, DataError)
    assert str(error).startswith(f"{files[1]}:2:{column}: ")


def test_zero_in_a_one_based_file(files: tuple[Path, Path]) -> None:
    error = invoke(*files, "--hyp-one-based").exception
    assert isinstance(error, DataError)
    assert str(error).startswith(f"{files[1]}:1:1: position 0")
    assert "--hyp-zero-based" in str(error)


def test_advice_names_the_options_of_this_command(
    files: tuple[Path, Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    gold, hyp, text = tmp_path / "gold1", tmp_path / "hyp1", tmp_path / "text"
    text.write_text("a b c\n" * 6)
    gold.write_text("1-1 2-2\n" * 6)
    hyp.write_text("1-1 2-2\n" * 6)
    assert invoke(gold, hyp).exit_code == 0
    assert (
        f"{gold}: no link on a first word in 6 lines; if positions count from 1, read it --gold-one-based"
        in caplog.text
    )
    assert "read it --hyp-one-based" in caplog.text
    hyp.write_text("1-1 3-3\n" * 6)
    error = str(invoke(gold, hyp, "--source", text, "--target", text).exception)
    assert "fits when read as --hyp-one-based, or with --hyp-swap and as --hyp-one-based" in error


def test_links_outside_the_text(files: tuple[Path, Path], tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_text("a b\nc d e\n\n")
    target.write_text("A B C\nD E F\n\n")
    text = ("--source", source, "--target", target)
    assert rows(*files, *text) == rows(*files)
    assert isinstance(invoke(*files, "--source", source).exception, UsageError)
    files[1].write_text("0-0 2-1\n2-2\n\n")
    error = invoke(*files, *text).exception
    assert isinstance(error, DataError)
    assert str(error).startswith(f"{files[1]}:1:5: link 2-1")
    target.write_text("A B C\nD E F\n")
    assert isinstance(invoke(*files, *text).exception, DataError)


def test_naacl_with_numbered_text(files: tuple[Path, Path], tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_text("<s snum=5> a b </s>\n<s snum=7> c d e </s>\n<s snum=8> f </s>\n")
    target.write_text("<s snum=5> A B C </s>\n<s snum=7> D E F </s>\n<s snum=8> G </s>\n")
    gold = _written(tmp_path, "7 3 3\n7 1 1 P\n5 1 1\n5 2 2\n5 2 3 P\n")
    (row,) = rows(gold, files[1], *NAACL, "-s", source, "-t", target)
    assert (row["sentences"], row["aer"]) == (3, pytest.approx(2 / 7))
    target.write_text("<s snum=5> A B C </s>\n<s snum=6> D E F </s>\n<s snum=8> G </s>\n")
    error = invoke(gold, files[1], *NAACL, "-s", source, "-t", target).exception
    assert isinstance(error, DataError)
    assert "sentence id 7" in str(error)


def test_comments_only_by_option(files: tuple[Path, Path]) -> None:
    files[0].write_text("# annotator 2\n" + GOLD)
    error = invoke(*files).exception
    assert isinstance(error, DataError)
    assert "--comment-prefix" in str(error)
    (row,) = rows(*files, "--comment-prefix", "#")
    assert row["aer"] == pytest.approx(2 / 7)


@pytest.mark.parametrize(
    ("change", "words"),
    [(lambda i, j: (i + 1, j + 1), "from 1"), (lambda i, j: (j, i), "opposite directions")],
)
def test_warns_of_a_wrong_base_or_direction(tmp_path: Path, change: Any, words: str) -> None:
    gold_links = [[(i, (3 * i + n) % 9) for i in range(8)] for n in range(10)]

    def write(name: str, links: list[list[tuple[int, int]]]) -> Path:
        path = tmp_path / name
        path.write_text("".join(" ".join(f"{i}-{j}" for i, j in line) + "\n" for line in links))
        return path

    gold, wrong = (
        write("gold", gold_links),
        write("hyp", [[change(i, j) for i, j in line] for line in gold_links]),
    )
    result = invoke(gold, wrong)
    assert result.exit_code == 0
    assert words in result.stderr
    assert "--hyp-one-based, --hyp-swap" in result.stderr
    assert words not in result.stdout
    assert "Warning" not in invoke(gold, gold).stderr


def test_misuse(files: tuple[Path, Path]) -> None:
    assert isinstance(invoke(*files, "--all-sure", "--ignore-possible").exception, UsageError)
    assert invoke(files[0]).exit_code == 2
    assert invoke(*files, "--gold-format", "moses").exit_code == 2
    assert invoke(*files, "--bootstrap", "-1").exit_code == 2
    assert isinstance(invoke(files[0], "absent").exception, DataError)


@pytest.mark.parametrize("arguments", [["--help"], ["--bootstrap", "10"]])
def test_starts_without_torch(files: tuple[Path, Path], arguments: list[str]) -> None:
    command = ["score", str(files[0]), str(files[1]), *arguments]
    program = (
        f"import sys; from align.cli import cli; cli.main({command!r}, standalone_mode=False); "
        "sys.exit(bool({'torch', 'fairseq', 'sacrebleu', 'scipy'} & set(sys.modules)))"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
