"""`nmt-align symmetrize`."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from align.cli import cli
from data.errors import DataError, UsageError


def invoke(*arguments: object, stdin: str | None = None) -> Result:
    return CliRunner().invoke(cli, ["symmetrize", *map(str, arguments)], input=stdin)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    forward, reverse = tmp_path / "forward", tmp_path / "reverse"
    forward.write_text("0-0 2-3\n\n0-0 1-1\n")
    reverse.write_text("2-4 0-0\n\n0-1 1-1\n")
    return forward, reverse


def test_default_method_line_by_line(files: tuple[Path, Path]) -> None:
    result = invoke("-f", files[0], "-r", files[1])
    assert result.exit_code == 0
    assert result.stdout == "0-0 2-3\n\n0-0 0-1 1-1\n"


def test_method_by_name_and_output_file(files: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = invoke("-f", files[0], "-r", files[1], "-m", "i", "-o", out)
    assert (result.exit_code, result.stdout) == (0, "")
    assert out.read_text() == "0-0\n\n1-1\n"


def test_reverse_file_as_target_source(files: tuple[Path, Path], tmp_path: Path) -> None:
    turned = tmp_path / "turned"
    turned.write_text("4-2 0-0\n\n1-0 1-1\n")
    result = invoke("-f", files[0], "-r", turned, "--reverse-is-target-source")
    assert result.stdout == invoke("-f", files[0], "-r", files[1]).stdout


def test_standard_input_and_gzip(files: tuple[Path, Path], tmp_path: Path) -> None:
    packed = tmp_path / "reverse.gz"
    packed.write_bytes(gzip.compress(files[1].read_bytes()))
    result = invoke("-f", "-", "-r", packed, "-m", "union", stdin=files[0].read_text())
    assert result.stdout == "0-0 2-3 2-4\n\n0-0 0-1 1-1\n"


@pytest.mark.parametrize("shorter", [0, 1])
def test_unequal_files_are_an_error_with_both_counts(files: tuple[Path, Path], tmp_path: Path, shorter: int) -> None:
    files[shorter].write_text("0-0\n")
    out = tmp_path / "out"
    result = invoke("-f", files[0], "-r", files[1], "-o", out)
    assert isinstance(result.exception, DataError)
    assert str(result.exception).startswith(f"{files[shorter]}: ends after 1 lines")
    assert f"{files[1 - shorter]} has 3" in str(result.exception)
    assert sorted(tmp_path.iterdir()) == sorted(files)


def test_malformed_link_leaves_no_output(files: tuple[Path, Path], tmp_path: Path) -> None:
    files[1].write_text("0-0\n\n0-0 0p1\n")
    result = invoke("-f", files[0], "-r", files[1], "-o", tmp_path / "out")
    assert isinstance(result.exception, DataError)
    assert str(result.exception).startswith(f"{files[1]}:3:5: ")
    assert sorted(tmp_path.iterdir()) == sorted(files)


def test_existing_output_needs_overwrite(files: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.write_text("mine\n")
    result = invoke("-f", files[0], "-r", files[1], "-o", out)
    assert isinstance(result.exception, UsageError)
    assert out.read_text() == "mine\n"
    assert invoke("-f", files[0], "-r", files[1], "-o", out, "--overwrite").exit_code == 0
    assert out.read_text() == "0-0 2-3\n\n0-0 0-1 1-1\n"


def test_misuse(files: tuple[Path, Path]) -> None:
    result = invoke("-f", files[0], "-r", files[1], "-m", "grow-dig")
    assert isinstance(result.exception, UsageError)
    assert "did you mean 'grow-diag'" in str(result.exception)
    assert isinstance(invoke("-f", "-", "-r", "-").exception, UsageError)
    assert isinstance(invoke("-f", files[0], "-r", files[1], "-o", files[0]).exception, UsageError)
    assert invoke("-f", files[0]).exit_code == 2


def test_starts_without_torch_and_numpy(files: tuple[Path, Path]) -> None:
    program = (
        "import sys; from align.cli import cli; "
        f"cli.main(['symmetrize', '-f', {str(files[0])!r}, '-r', {str(files[1])!r}], standalone_mode=False); "
        "sys.exit(bool({'torch', 'numpy', 'fairseq'} & set(sys.modules)))"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, b"0-0 2-3\n\n0-0 0-1 1-1\n")
