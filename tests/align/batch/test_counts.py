"""Lexicon counts of a batch: those of its merged links, whatever happened on the way."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from align.batch.engines import local
from align.batch.merge import Outputs, merge
from align.batch.plan import load_plan
from align.batch.run import run_batch
from align.lexicon_commands import lexicon
from data.errors import AlignError, UsageError
from tests.align.batch import stub

ROOT = Path(__file__).resolve().parents[3]
SHARDS = range(1, 6)


def run(plan):
    return run_batch(plan, SHARDS, local, 2, stub.load)


def counted(*arguments):
    return CliRunner().invoke(lexicon, list(map(str, arguments)), catch_exceptions=False).stdout


def of_merged_files(plan, weights):
    """The lexicon of the merged links, counted by the command."""
    files = {name: str(plan.folder.parent / name) for name in ("links", "scores", "source_words", "target_words")}
    merge(plan, Outputs(**files))
    more = ("--scores", files["scores"]) if weights == "scores" else ()
    return counted("-s", files["source_words"], "-t", files["target_words"], "-a", files["links"], *more)


@pytest.mark.parametrize("weights", ["links", "scores"])
def test_they_are_those_of_the_merged_links(tmp_path, weights):
    plan = stub.plan(tmp_path, lexicon=weights)
    run(plan)
    ours = counted("--merge", plan.folder)
    assert ours == of_merged_files(plan, weights)
    assert "das\tthe1\t" in ours
    assert f"ist\tis\t{2.6664 if weights == 'scores' else 8}\t" in ours


def test_they_survive_a_kill_at_any_point(tmp_path):
    plan = stub.plan(tmp_path, lexicon="links")
    fresh = tmp_path / "fresh"
    shutil.copytree(plan.folder, fresh)
    command = [sys.executable, "-m", "tests.align.batch.dying", str(plan.folder)]
    steps = int(subprocess.run([*command, "0"], cwd=ROOT, capture_output=True, check=True, text=True).stdout)
    expected = counted("--merge", plan.folder)
    half_written = 0
    for point in range(2, steps, steps // 7):
        shutil.rmtree(plan.folder)
        shutil.copytree(fresh, plan.folder)
        assert subprocess.run([*command, str(point)], cwd=ROOT, check=False).returncode == -signal.SIGKILL
        half_written += bool(list(plan.folder.rglob("lexicon/.*.tmp")))
        run(plan)
        assert not list(plan.folder.rglob("*.tmp"))
        assert counted("--merge", plan.folder) == expected
    assert half_written


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_bytes(b"")])
def test_damaged_counts_are_made_again(tmp_path, damage):
    plan = stub.plan(tmp_path, lexicon="links")
    with pytest.raises(AlignError, match="5 of 5 shards are not finished"):
        counted("--merge", plan.folder)
    run(plan)
    expected = counted("--merge", plan.folder)
    damage(plan.counts(2))
    for command in (lambda: counted("--merge", plan.folder), lambda: merge(plan, Outputs())):
        with pytest.raises(AlignError, match="files of shards 2 are not as they were written"):
            command()
    run(load_plan(plan.folder))
    assert counted("--merge", plan.folder) == expected


def test_a_batch_without_them(tmp_path):
    plan = stub.plan(tmp_path)
    run(plan)
    assert not list(plan.folder.glob("lexicon/*"))
    with pytest.raises(UsageError, match="planned without --lexicon"):
        counted("--merge", plan.folder)
    with pytest.raises(UsageError, match=r"holds no manifest\.json"):
        counted("--merge", tmp_path)
