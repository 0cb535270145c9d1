"""The command as a whole: start-up, help, errors, exit codes, neighbours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from align import cli

ROOT = Path(__file__).resolve().parents[1]


def python(code, *, cwd=ROOT, **env):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=cwd, env=env or None)


def command(*arguments, cwd=ROOT, **more):
    code = "from align.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, **more
    )


@pytest.mark.parametrize(
    "arguments", [["--help"], ["score", "--help"], ["symmetrize", "--help"], ["convert", "--help"], ["run", "--help"]]
)
def test_help_needs_no_model_library(arguments):
    code = (
        "import sys; sys.argv[1:] = %r\nfrom align.cli import cli\ncli.main(standalone_mode=False)\n"
        "heavy = {'torch', 'fairseq', 'transformers', 'sacrebleu', 'numpy'} & set(sys.modules)\nassert not heavy, heavy"
    )
    done = python(code % arguments)
    assert done.returncode == 0, done.stderr
    assert "Usage:" in done.stdout


def test_every_command_can_be_loaded():
    for name in cli.COMMANDS:
        done = command(name, "--help")
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("Usage:")


def test_unknown_commands_get_a_suggestion():
    done = command("scroe")
    assert done.returncode == 2
    assert "score" in done.stderr


def test_errors_are_one_line_and_exit_one(tmp_path):
    (tmp_path / "gold").write_text("0:0\n")
    done = command("score", "gold", "gold", cwd=tmp_path, env={"PYTHONPATH": str(ROOT)})
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "gold:1:1" in done.stderr


def test_a_closed_pipe_is_quiet(tmp_path):
    (tmp_path / "links").write_text("0-0\n" * 200_000)
    code = "from align.cli import main; main()"
    arguments = [sys.executable, "-c", code, "convert", str(tmp_path / "links"), "--from", "pharaoh", "--to", "gold"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) as process:
        process.stdout.read(10)
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()


@pytest.mark.parametrize("name", ["data", "eval"])
def test_another_package_of_that_name_is_named(tmp_path, name):
    (tmp_path / f"{name}.py").write_text("")
    done = python(f"import sys; sys.path[:0] = [{str(tmp_path)!r}]; sys.path.append({str(ROOT)!r}); import align")
    assert done.returncode == 1
    assert "ImportError" in done.stderr
    assert str(tmp_path) in done.stderr
    assert str(ROOT / name) in done.stderr


def test_import_is_light():
    done = python("import align, sys; assert not {'torch', 'numpy', 'click', 'data', 'eval'} & set(sys.modules)")
    assert done.returncode == 0, done.stderr


def test_layers_do_not_import_upward():
    import ast

    allowed = {"data": {"data"}, "align": {"data", "align"}, "eval": {"data", "align", "eval"}}
    for package, below in allowed.items():
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                names = []
                if isinstance(node, ast.Import):
                    names = [alias.name for alias in node.names]
                elif isinstance(node, ast.ImportFrom) and node.level == 0:
                    names = [node.module]
                tops = {name.partition(".")[0] for name in names} & set(allowed)
                assert tops <= below, f"{path} imports {tops - below}"
