"""Whatever stops a batch, going on gives the bytes of a run that was not stopped."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from align.batch import shard
from align.batch.engines import local
from align.batch.journal import outcomes
from align.batch.merge import Outputs, merge
from align.batch.plan import load_plan
from align.batch.processes import Processes
from align.batch.ray_engine import RayActors
from align.batch.run import run_batch
from data.errors import AlignError, DataError, UsageError
from tests.align.batch import stub

ROOT = Path(__file__).resolve().parents[3]
POINTS = 30
RAY = [pytest.mark.slow, pytest.mark.skipif(not find_spec("ray"), reason="needs the extra ray")]


def run(plan, numbers=None, engine=local, tries=2, load=stub.load):
    return run_batch(plan, numbers or range(1, len(plan.shards) + 1), engine, tries, load)


def merged(plan, name="merged"):
    """The bytes of all merged files."""
    paths = [plan.folder.parent / f"{name}.{kind}" for kind in ("links", "scores", "statuses", "jsonl")]
    merge(plan, Outputs(*map(str, paths[:3]), jsonl=str(paths[3])))
    return b"".join(path.read_bytes() for path in paths)


def leftovers(plan):
    return list(plan.folder.rglob("*.tmp"))


def child(*arguments):
    command = [sys.executable, "-m", "tests.align.batch.dying", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


@pytest.fixture
def plan(tmp_path):
    return stub.plan(tmp_path)


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    plan = stub.plan(tmp_path_factory.mktemp("unbroken"))
    assert run(plan).statuses == {"ok": 18, "empty": 5}
    return merged(plan)


def test_killed_at_every_kind_of_point(tmp_path, unbroken):
    plan = stub.plan(tmp_path)
    fresh = tmp_path / "fresh"
    shutil.copytree(plan.folder, fresh)
    steps = int(child(plan.folder, 0).stdout)
    assert steps > POINTS
    half_written = half_logged = 0
    for point in {round(1 + n * (steps - 1) / (POINTS - 1)) for n in range(POINTS)}:
        shutil.rmtree(plan.folder)
        shutil.copytree(fresh, plan.folder)
        assert child(plan.folder, point).returncode == -signal.SIGKILL
        half_written += any(path.stat().st_size for path in leftovers(plan))
        half_logged += any(not log.read_bytes().endswith(b"\n") for log in plan.folder.rglob("runs/*.jsonl"))
        run(plan)
        assert not leftovers(plan)
        assert merged(plan) == unbroken
    assert half_written
    assert half_logged


def test_a_full_disk_stops_the_run_and_leaves_nothing_partial(plan, unbroken, monkeypatch):
    real = os.fsync
    for point in range(1, 16):
        calls = iter(range(1, 1000))

        def full(handle, point=point, calls=calls):
            if next(calls) == point:
                raise OSError(errno.ENOSPC, "No space left on device")
            real(handle)

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(AlignError, match="No space left"):
                run(plan)
        assert not leftovers(plan)
        for path in plan.folder.rglob("links/*.gz"):
            assert list(shard.read_records(path))
        for kind in ("links", "runs"):
            shutil.rmtree(plan.folder / kind)
            (plan.folder / kind).mkdir()
    run(plan)
    assert merged(plan) == unbroken


def test_a_limit_on_file_size_stops_a_worker_cleanly(tmp_path):
    text = stub.pairs(400, *(f"{n * 7919:x}" for n in range(400)))
    plan = stub.plan(tmp_path, text, shard_size=200)
    code = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))\n"
        "from tests.align.batch import stub; from tests.align.batch.test_resume import *\n"
        f"run(load_plan(Path({str(plan.folder)!r})))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert "AlignError" in done.stderr.splitlines()[-1]
    assert "cannot be written: File too large" in done.stderr
    assert not leftovers(plan)
    assert not list(plan.folder.rglob("links/*.gz"))
    run(plan)
    assert merged(plan)


def test_of_two_runs_the_second_refuses(tmp_path):
    go = tmp_path / "go"
    words = (f"touch:{tmp_path / 'begun'}", f"wait-for:{go}")
    plan = stub.plan(tmp_path, stub.pairs(23, *words))
    code = f"from tests.align.batch.test_resume import *; run(load_plan(Path({str(plan.folder)!r})), range(1, 4))"
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT) as first:
        try:
            while not (tmp_path / "begun").exists():
                assert first.poll() is None
                time.sleep(0.02)
            for numbers in (range(1, 4), range(3, 6), range(1, 6)):
                with pytest.raises(AlignError, match=f"process {first.pid}, since 20"):
                    run(plan, numbers)
            run(plan, range(4, 6))
        finally:
            go.touch()
        assert first.wait() == 0
    run(plan)
    assert merged(plan)


@pytest.mark.parametrize("engine", [Processes(1), Processes(3), pytest.param(RayActors(2, None), marks=RAY)])
def test_engines_give_the_same_bytes(plan, unbroken, engine):
    assert run(plan, engine=engine).statuses == {"ok": 18, "empty": 5}
    assert merged(plan) == unbroken


def test_ranges_in_any_order_give_the_same_bytes(plan, unbroken):
    for numbers in (range(4, 6), range(2, 4), range(1, 2)):
        run(plan, numbers)
    assert merged(plan) == unbroken


@pytest.mark.parametrize("engine", [Processes(2), pytest.param(RayActors(2, None), marks=RAY)])
def test_a_worker_that_dies_is_replaced(tmp_path, engine):
    plan = stub.plan(tmp_path, stub.pairs(23, *[""] * 7, f"kill-once:{tmp_path / 'flag'}"))
    assert not run(plan, engine=engine).failed
    assert (tmp_path / "flag").exists()
    assert merged(plan)


@pytest.mark.parametrize(
    ("engine", "word", "error"),
    [
        (local, "raise", "ValueError: a poisoned pair"),
        (Processes(2), "raise", "ValueError: a poisoned pair"),
        (Processes(2), "kill", "signal SIGKILL, 2 times"),
        pytest.param(RayActors(2, None), "kill", ", 2 times", marks=RAY),
    ],
)
def test_a_poisoned_shard_fails_alone(tmp_path, engine, word, error):
    plan = stub.plan(tmp_path, stub.pairs(23, *["x"] * 7, word))
    progress = run(plan, engine=engine)
    assert list(progress.failed) == [2]
    assert error in progress.failed[2]
    assert error in outcomes(plan)[2].error
    assert progress.done == 18
    with pytest.raises(AlignError, match=r"1 of 5 shards are not finished \(2\)"):
        merged(plan)


@pytest.mark.parametrize("engine", [Processes(2), pytest.param(RayActors(2, None), marks=RAY)])
def test_a_model_that_cannot_be_loaded_stops_the_run(plan, engine):
    with pytest.raises(AlignError, match="no such model"):
        run(plan, engine=engine, load=stub.broken_load)
    with pytest.raises(AlignError, match="before it was ready"):
        run(plan, engine=engine, load=stub.deadly_load)


@pytest.mark.slow
def test_a_ray_cluster_that_is_shut_down_is_resumed_from(tmp_path, unbroken):
    ray = pytest.importorskip("ray", reason="needs the extra ray")
    plan = stub.plan(tmp_path)
    run(plan, range(1, 3), RayActors(2, None))
    assert not ray.is_initialized()
    run(plan, engine=RayActors(1, None))
    assert merged(plan) == unbroken


def test_a_remote_ray_without_login_is_refused(plan, monkeypatch):
    pytest.importorskip("ray", reason="needs the extra ray")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with pytest.raises(UsageError, match="whoever reaches ray"):
        run(plan, engine=RayActors(2, "ray://10.0.0.1:10001"))


def test_a_shard_whose_file_changed_is_made_again(plan, unbroken):
    run(plan)
    path = plan.part(3)
    path.write_bytes(plan.part(2).read_bytes())
    with pytest.raises(AlignError, match=r"shards 3 are not as they were written"):
        merged(plan)
    run(plan)
    assert merged(plan) == unbroken


def test_merge_refuses_records_out_of_place(plan):
    run(plan)
    plan.part(3).write_bytes(plan.part(2).read_bytes())
    log = next(plan.folder.rglob("runs/*.jsonl"))
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    lines[2]["sha256"] = lines[1]["sha256"]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(DataError, match="pair 6 is out of its place"):
        merged(plan)
    assert not list(plan.folder.parent.glob("merged.*"))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda folder: (folder / "text").write_text("other\ttext\n"), "tsv 1"),
        (lambda folder: (folder / "model.pt").write_bytes(b"other weights"), "model"),
        (lambda folder: (folder / "dict.de.txt").write_text("das 1\n"), "model"),
    ],
)
def test_a_changed_input_or_model_is_refused_by_name(tmp_path, plan, change, named):
    run(plan, range(1, 3))
    change(tmp_path)
    for action in (run, merged):
        with pytest.raises(AlignError, match=f"planned differently.*\n  {named}: "):
            action(plan)


def test_an_edited_shard_text_is_refused(plan):
    shutil.copy(plan.text(1), plan.text(2))
    assert "not as it was planned" in run(plan).failed[2]


def test_planning_again(tmp_path, plan):
    assert stub.plan(tmp_path) == plan
    with pytest.raises(AlignError, match=r"(?s)method: attention, now smoothgrad\n  threshold: 0.0, now 0.5$"):
        stub.plan(tmp_path, method="smoothgrad", threshold=0.5)
    with pytest.raises(AlignError, match="shard_size: 5, now 6"):
        stub.plan(tmp_path, shard_size=6)
    assert load_plan(plan.folder) == plan


def test_a_manifest_must_be_whole(plan):
    path = plan.folder / "manifest.json"
    found = json.loads(path.read_text())
    for text in ("", "{}", "[]", json.dumps({**found, "schema": 2}), json.dumps({**found, "fingerprint": "0"})):
        path.write_text(text)
        with pytest.raises(DataError):
            load_plan(plan.folder)
    path.unlink()
    with pytest.raises(UsageError, match="batch plan"):
        load_plan(plan.folder)


def test_filters_mark_and_never_drop(tmp_path):
    plan = stub.plan(tmp_path, max_tokens=3, max_ratio=2)
    plan = replace(plan, job=replace(plan.job))
    assert run(plan).statuses == {"ok": 14, "empty": 5, "too_long": 4}
    merged(plan)
    assert (tmp_path / "merged.statuses").read_text().split()[:5] == ["empty", "ok", "ok", "ok", "too_long"]
    assert (tmp_path / "merged.links").read_text().splitlines()[3:5] == ["0-0 1-1 2-2", ""]


class Interleaved(RuleBasedStateMachine):
    """Runs that are stopped anywhere, parts that are lost or damaged, logs that are cut: the bytes stay the same."""

    def __init__(self):
        super().__init__()
        self.place = TemporaryDirectory()
        self.plan = stub.plan(Path(self.place.name))

    @rule(first=st.integers(1, 5), count=st.integers(1, 5), after=st.integers(0, 30))
    def run_and_stop(self, first, count, after):
        seen = iter(range(after))

        def load(job):
            def align(text):
                for record in stub.align(text):
                    if next(seen, None) is None:
                        raise KeyboardInterrupt
                    yield record

            return align

        try:
            run(self.plan, range(first, min(first + count, 6)), load=load)
        except KeyboardInterrupt:
            assert not leftovers(self.plan)

    @rule(number=st.integers(1, 5), keep=st.integers(0, 200))
    def damage(self, number, keep):
        if self.plan.part(number).exists():
            self.plan.part(number).write_bytes(self.plan.part(number).read_bytes()[:keep])

    @rule(cut=st.integers(1, 300))
    def cut_log(self, cut):
        for log in self.plan.folder.rglob("runs/*.jsonl"):
            log.write_bytes(log.read_bytes()[:-cut])

    @rule()
    def finish(self):
        run(self.plan)
        text = merged(self.plan)
        assert text == self.expected

    @invariant()
    def merges_all_or_nothing(self):
        try:
            text = merged(self.plan, "now")
        except AlignError:
            return
        assert text == self.expected

    def teardown(self):
        self.finish()
        self.place.cleanup()


def test_any_order_of_stops_damage_and_resumption(unbroken):
    Interleaved.expected = unbroken
    Interleaved.TestCase.settings = settings(max_examples=15, stateful_step_count=8, deadline=None)
    Interleaved.TestCase().runTest()
