"""The README's commands run as printed, on the demo's models and text under the README's names."""

from __future__ import annotations

import re
import shlex
import shutil
from importlib.resources import files
from pathlib import Path

import pytest
from click.testing import CliRunner

from align.cli import cli
from data.demo import handmade
from data.links import GoldAlignment, format_gold

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The demo's English-German model as en-fr, its reverse, and five hand-made pairs."""
    model = Path(str(files("data.demo") / "model"))
    for path in model.iterdir():
        shutil.copy(path, tmp_path)
    shutil.move(tmp_path / "en-de.pt", tmp_path / "en-fr.pt")
    shutil.move(tmp_path / "de-en.pt", tmp_path / "fr-en.pt")
    pairs = sorted(handmade(), key=lambda pair: len(pair.source))[:5]
    for name in ("test", "corpus"):
        (tmp_path / f"{name}.en").write_text("".join(" ".join(pair.target) + "\n" for pair in pairs), encoding="utf-8")
        (tmp_path / f"{name}.fr").write_text("".join(" ".join(pair.source) + "\n" for pair in pairs), encoding="utf-8")
    turned = [
        GoldAlignment(*(frozenset((j, i) for i, j in links) for links in (pair.gold.sure, pair.gold.possible)))
        for pair in pairs
    ]
    (tmp_path / "test.gold").write_text("".join(format_gold(gold) + "\n" for gold in turned), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_worked_uses_run_as_printed(folder):
    commands = re.findall(r"^    nmt-align (.+)$", README[: README.index("## Results")], re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["compare", "run", "score", "choose", "lexicon"]
    for command in commands:
        result = CliRunner().invoke(cli, shlex.split(command), catch_exceptions=False)
        assert result.exit_code == 0, result.output
    assert (folder / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert len((folder / "links").read_text().splitlines()) == 5
    assert (folder / "lexicon.tsv").read_text(encoding="utf-8").count("\n") > 5


def test_there_are_two_set_up_commands():
    commands = re.findall(r"^    (\./install\.sh.+)$", README, re.MULTILINE)
    assert commands == ["./install.sh && .venv/bin/nmt-align demo", "./install.sh test && .venv/bin/pytest"]
    assert (ROOT / "install.sh").stat().st_mode & 0o111


def test_commands_and_pages_that_are_named_exist():
    table = README[README.index("| command |") : README.index("## Methods")]
    named = {
        name for row in re.findall(r"^\| (`.+?) \|", table, re.MULTILINE) for name in re.findall(r"`([a-z-]+)`", row)
    }
    assert named <= set(cli.list_commands(None))
    for target in re.findall(r"\]\(((?!http|#)[^)]+)\)", README):
        assert (ROOT / target).exists(), target
