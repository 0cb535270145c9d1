"""The command `convert`, as users call it."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

from align.cli import main

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-c", "from align.cli import main; main()", "convert"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run `nmt-align convert` in this process; the exit code."""
    monkeypatch.setattr(sys, "argv", ["nmt-align", "convert", *arguments])
    with pytest.raises(SystemExit) as caught:
        main()
    return int(caught.value.code or 0)


def test_through_pipes() -> None:
    arguments = ["-", "--from", "gold", "--to", "pharaoh", "--all-sure"]
    stdin = b"2p1 0-0\r\n\r\n1-1 1-1"
    done = subprocess.run([*COMMAND, *arguments], input=stdin, capture_output=True, check=False, env=ENVIRONMENT)
    assert (done.returncode, done.stdout) == (0, b"0-0 2-1\n\n1-1\n")
    assert done.stderr.decode().splitlines() == [
        "Note: -: Windows line ends (CR LF) read as LF",
        "Note: -: 1 links given more than once",
    ]


def test_a_reader_that_goes_away_is_no_error_message() -> None:
    Path("in").write_text("0-0 1-1\n" * 50_000)
    arguments = [*COMMAND, "in", "--from", "pharaoh", "--to", "gold"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        assert child.stdout.readline() == b"0-0 1-1\n"
        child.stdout.close()
        assert child.stderr.read() == b""
    assert child.returncode == 1


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--from", "gold", "--to", "gold"], "0-2 1p0\n\n"),
        (["--from", "gold", "--to", "gold", "--swap"], "0p1 2-0\n\n"),
        (["--from", "gold", "--to", "gold", "--to-one-based"], "1-3 2p1\n\n"),
        (["--from", "gold", "--to", "pharaoh", "--ignore-possible"], "0-2\n\n"),
        (["--from", "gold", "--to", "pharaoh", "--all-sure"], "0-2 1-0\n\n"),
        (["--from", "gold", "--to", "numbered"], "0\t0-2 1p0\n1\t\n"),
        (["--from", "gold", "--to", "naacl"], "1 1 3 S\n1 2 1 P\n"),
        (["--from", "gold", "--to", "naacl", "--to-zero-based"], "1 0 2 S\n1 1 0 P\n"),
        (["--from", "gold", "--to", "talp"], "1s3 2p1\n\n"),
    ],
)
def test_options(
    options: list[str],
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    Path("in").write_text("1p0 0-2\n\n")
    assert run(monkeypatch, "in", *options) == 0
    assert capsysbinary.readouterr().out == expected.encode()


def test_one_based_input(monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    Path("in").write_text("# header\n1-3\n")
    options = ["--from", "gold", "--to", "pharaoh", "--one-based", "--comment-prefix", "#"]
    assert run(monkeypatch, "in", *options) == 0
    assert capsysbinary.readouterr().out == b"0-2\n"


def test_naacl_there_and_back_with_the_ids_of_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("gold").write_text("0-0 1p1\n\n0-1\n")
    Path("src").write_text("".join(f"<s snum={n}> a b </s>\n" for n in (30, 10, 20)))
    Path("tgt").write_text("".join(f"<s snum={n}> c d </s>\n" for n in (30, 10, 20)))
    text = ["-s", "src", "-t", "tgt"]
    assert run(monkeypatch, "gold", "--from", "gold", "--to", "naacl", "-o", "wa", *text) == 0
    assert Path("wa").read_text() == "30 1 1 S\n30 2 2 P\n20 1 2 S\n"
    assert run(monkeypatch, "wa", "--from", "naacl", "--to", "gold", "-o", "back.gz", *text) == 0
    assert gzip.decompress(Path("back.gz").read_bytes()) == Path("gold").read_bytes()


def test_text_checks_ranges(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    Path("in").write_text("0-0\n1-3\n")
    Path("src").write_text("a\na b c d\n")
    Path("tgt").write_text("x\nx y\n")
    options = ["in", "--from", "pharaoh", "--to", "pharaoh", "-s", "src", "-t", "tgt"]
    assert run(monkeypatch, *options, "-o", "out") == 1
    error = capsys.readouterr().err
    assert error.startswith("Error: in:2:1: link 1-3")
    assert error.endswith("fits when read with --swap\n")
    assert not Path("out").exists()
    assert run(monkeypatch, *options, "--swap", "-o", "out") == 0
    assert Path("out").read_text() == "0-0\n3-1\n"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["in", "--from", "nacl", "--to", "gold"], 2, "did you mean 'naacl'?"),
        (["in", "--from", "gold", "--to", "gould"], 2, "did you mean 'gold'?"),
        (["in", "--to", "gold"], 2, "--from"),
        (["in", "--from", "gold", "--to", "gold", "-s", "in"], 2, "belong together"),
        (["in", "--from", "gold", "--to", "gold", "--all-sure", "--ignore-possible"], 2, "exclude"),
        (["-", "--from", "gold", "--to", "gold", "-s", "-", "-t", "in"], 2, "more than one input"),
        (["in", "--from", "gold", "--to", "gold", "-o", "old"], 2, "--overwrite"),
        (["in", "--from", "gold", "--to", "gold", "-o", "in", "--overwrite"], 2, "is an input"),
        (["absent", "--from", "gold", "--to", "gold"], 1, "absent: cannot be read: No such file"),
        (["in", "--from", "gold", "--to", "pharaoh"], 1, "sentence pair 2 has possible links"),
        (["in", "--from", "pharaoh", "--to", "gold"], 1, "in:2:1: '1p1' found"),
    ],
)
def test_refused(
    arguments: list[str],
    code: int,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("in").write_text("0-0\n1p1\n")
    Path("old").write_text("old")
    assert run(monkeypatch, *arguments) == code
    assert message in capsys.readouterr().err
    assert Path("old").read_text() == "old"
    assert sorted(os.listdir()) == ["in", "old"]


def test_existing_output_is_replaced_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("in").write_text("0-0\n")
    Path("out").write_text("old")
    assert run(monkeypatch, "in", "--from", "gold", "--to", "gold", "-o", "out", "--overwrite") == 0
    assert Path("out").read_text() == "0-0\n"
