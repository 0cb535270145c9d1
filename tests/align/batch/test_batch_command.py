"""`nmt-align batch` on tiny models: the same bytes whatever the engine, links as of `run`; and signals."""

from __future__ import annotations

import gzip
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from align.cli import cli
from align.extract import Extraction
from align.methods import make_method
from align.pipeline import align_pairs
from data.errors import AlignError, UsageError
from tests.align.batch import stub
from tests.tiny import tiny_model, tiny_module, tiny_pairs, tiny_settings

ROOT = Path(__file__).resolve().parents[3]
PAIRS = 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Checkpoints of both directions with dictionaries, and text in which pair 5 is empty on one side."""
    folder = tmp_path_factory.mktemp("tiny")
    _, source, target = tiny_module()
    for name, sides, languages in (("st", (source, target), "src tgt"), ("ts", (target, source), "tgt src")):
        module, *_ = tiny_module(len(name), *sides)
        named = dict(zip(("source_lang", "target_lang"), languages.split(), strict=True))
        torch.save({"cfg": {"model": tiny_settings(**named)}, "model": module.state_dict()}, folder / f"{name}.pt")
    source.save(str(folder / "dict.src.txt"))
    target.save(str(folder / "dict.tgt.txt"))
    lines = [(" ".join(pair.source), " ".join(pair.target)) for pair in tiny_pairs(PAIRS)]
    lines[5] = ("", "t1 t2")
    (folder / "src").write_text("".join(f"{source}\n" for source, _ in lines))
    (folder / "tgt").write_text("".join(f"{target}\n" for _, target in lines))
    (folder / "tgt.gz").write_bytes(gzip.compress((folder / "tgt").read_bytes()))
    return folder


def invoke(*arguments):
    """The result; its `return_value` is what the command would exit with."""
    return CliRunner().invoke(cli, [str(a) for a in arguments], catch_exceptions=False, standalone_mode=False)


def both(folder):
    return ["-m", folder / "st.pt", "--reverse-model", folder / "ts.pt", "-s", folder / "src", "-t", folder / "tgt.gz"]


def everything(folder, out, *more):
    names = ("links", "scores", "statuses", "jsonl", "source-words", "target-words")
    files = [part for name in names for part in (f"--{name}", out / name)]
    arguments = ["batch", "all", out / "batch", *both(folder), "--shard-size", 13, *files, *more]
    return invoke(*arguments), [(out / name).read_bytes() for name in names if (out / name).exists()]


@pytest.mark.slow
def test_engines_agree_with_each_other_and_with_run(folder, tmp_path):
    outputs = []
    for name, options in (("local", ()), ("two", ("--workers", 2))):
        (tmp_path / name).mkdir()
        result, files = everything(folder, tmp_path / name, *options)
        assert result.return_value == 0
        assert "60 of 60 pairs" in result.stderr
        outputs.append(files)
    assert outputs[0] == outputs[1]
    links, scores, statuses, jsonl, source, target = (file.decode().splitlines() for file in outputs[0])
    plain = invoke("run", *both(folder), "--threads", 1, "--scores", tmp_path / "scores")
    assert links == plain.stdout.splitlines()
    for ours, theirs in zip(scores, (tmp_path / "scores").read_text().splitlines(), strict=True):
        assert [float(x) for x in ours.split()] == pytest.approx([float(x) for x in theirs.split()], abs=1e-4)
    assert statuses == ["empty" if n == 5 else "ok" for n in range(PAIRS)]
    records = [json.loads(line) for line in jsonl]
    assert [record["id"] for record in records] == list(range(PAIRS))
    assert [" ".join(record["src"]) for record in records] == source
    assert [" ".join(record["tgt"]) for record in records] == target
    assert [" ".join(f"{i}-{j}" for i, j, _ in record["links"]) for record in records] == links
    assert all("method:attention" in record["method"] for record in records)


def test_a_lexicon_of_the_text_is_not_one_of_a_shard(folder, tmp_path):
    with pytest.raises(UsageError, match="reads the whole text"):
        invoke("batch", "plan", tmp_path / "batch", *both(folder), "--symmetrize", "agreement:lexicon=0.2")
    assert not (tmp_path / "batch").exists()


def test_plan_run_status_merge(folder, tmp_path):
    batch = tmp_path / "batch"
    assert invoke("batch", "plan", batch, *both(folder), "--shard-size", 13, "--matrices").exit_code == 0
    assert invoke("batch", "run", batch, "--shards", "2-3").return_value == 0
    with pytest.raises(AlignError, match=r"3 of 5 shards are not finished \(1, 4-5\)"):
        invoke("batch", "merge", batch, "-o", tmp_path / "links")
    assert not (tmp_path / "links").exists()
    state = json.loads(invoke("batch", "status", batch, "--json").stdout)
    assert (state["shards"], state["pairs"]) == ({"total": 5, "done": 2}, {"total": PAIRS, "done": 26})
    assert (state["statuses"], state["open"], state["failed"]) == ({"ok": 26}, "1, 4-5", {})
    assert "26 of 60 pairs, 2 of 5 shards" in invoke("batch", "status", batch).stdout
    assert invoke("batch", "run", batch, "--fail-on", "empty").return_value == 1
    merged = invoke("batch", "merge", batch, "--jsonl", tmp_path / "jsonl")
    assert merged.stdout == invoke("run", *both(folder), "--threads", 1).stdout
    record = json.loads((tmp_path / "jsonl").read_text().splitlines()[0])
    assert [len(row) for row in record["matrix"]] == [len(record["src"])] * len(record["tgt"])


def test_another_method_in_the_same_folder_is_refused(folder, tmp_path):
    assert everything(folder, tmp_path)[0].return_value == 0
    with pytest.raises(AlignError, match="method: attention-x-gradient, now gradient-norm"):
        everything(folder, tmp_path, "--method", "gradient-norm", "--overwrite")
    before = (tmp_path / "links").read_bytes()
    result, files = everything(folder, tmp_path, "--overwrite", "--fail-on", "empty")
    assert (result.return_value, files[0]) == (1, before)


def test_parquet(folder, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs the extra parquet")
    _, files = everything(folder, tmp_path, "--parquet", tmp_path / "parquet")
    table = parquet.read_table(tmp_path / "parquet")
    assert b"method:attention" in table.schema.metadata[b"method"]
    links = [" ".join(f"{link['i']}-{link['j']}" for link in row) for row in table["links"].to_pylist()]
    assert links == files[0].decode().splitlines()
    assert table["id"].to_pylist() == list(range(PAIRS))


@pytest.mark.slow
def test_ray_gives_the_same_bytes(folder, tmp_path):
    pytest.importorskip("ray", reason="needs the extra ray")
    outputs = []
    for name, options in (("local", ()), ("ray", ("--engine", "ray", "--workers", 2))):
        (tmp_path / name).mkdir()
        result, files = everything(folder, tmp_path / name, *options)
        assert result.return_value == 0
        outputs.append(files)
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--engine", "local", "--workers", 2), "one worker"),
        (("--address", "host:1"), "--engine ray"),
        (("--columns", "1"), "two numbers"),
        (("--fields", "a,b,c"), "two names"),
        (("--scores", "same", "--statuses", "same"), "same place"),
        (("-s", "more"), "2 source files, but 1 target"),
    ],
)
def test_options_that_make_no_sense(folder, tmp_path, options, message):
    with pytest.raises(UsageError, match=message):
        invoke("batch", "all", tmp_path / "batch", *both(folder), "-o", tmp_path / "links", *options)


@pytest.mark.parametrize("shards", ["0", "2-1", "1-9", "x", "-1"])
def test_ranges_that_are_not_there(tmp_path, shards):
    stub.plan(tmp_path)
    with pytest.raises(UsageError, match="within 1-5"):
        invoke("batch", "run", tmp_path / "batch", f"--shards={shards}")


def test_an_empty_corpus(folder, tmp_path):
    (tmp_path / "none").touch()
    text = ["-m", folder / "st.pt", "-i", tmp_path / "none"]
    result = invoke("batch", "all", tmp_path / "batch", *text, "-o", tmp_path / "links")
    assert (result.return_value, (tmp_path / "links").read_bytes()) == (0, b"")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("workers", [1, 2])
def test_signals_drop_the_shard_at_work(tmp_path, number, code, workers):
    plan = stub.plan(tmp_path, stub.pairs(23, *["x"] * 6, f"touch:{tmp_path / 'begun'}", f"wait-for:{tmp_path / 'go'}"))
    program = (
        "import signal, align.batch.run, align.cli; from tests.align.batch import stub\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell's background jobs start with it ignored
        "align.batch.run.run_batch.__defaults__ = (2, stub.load, lambda progress: None)\n"
        "align.cli.main()"
    )
    arguments = [sys.executable, "-c", program, "batch", "run", str(plan.folder), "--workers", str(workers)]
    with subprocess.Popen(arguments, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        while not (tmp_path / "begun").exists():
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(number)
        assert process.wait() == code
        assert "Traceback" not in process.stderr.read()
    assert not list(plan.folder.rglob("*.tmp"))
    assert not plan.part(2).exists()
    state = json.loads(invoke("batch", "status", plan.folder, "--json").stdout)
    assert state["running"] == []


class Scarce:
    """A method for which memory is short in batches of more than `most` pairs, and for pairs of many words."""

    def __init__(self, most, longest, error):
        self.most, self.longest, self.error, self.sizes = most, longest, error, []
        self.method = make_method("attention")
        self.evidence = self.method.evidence

    def scores(self, model, batch):
        self.sizes.append(len(batch))
        if len(batch) > self.most or max(len(pair.target_words) for pair in batch.pairs) > self.longest:
            raise self.error
        return self.method.scores(model, batch)


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory"),
        MemoryError(),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
    ],
)
def test_short_memory_halves_batches_and_marks_single_pairs(error):
    model, pairs, how = tiny_model(), tiny_pairs(24), Extraction()
    scarce = Scarce(3, 6, error)
    expected = list(align_pairs(model, pairs, scarce.method, how))
    found = list(align_pairs(model, pairs, scarce, how))
    assert len({result.status for result in found}) == 2
    for pair, ours, theirs in zip(pairs, found, expected, strict=True):
        assert ours.encoded.pair == pair
        too_long = len(ours.encoded.target_words) > 6
        assert ours.status == ("oom" if too_long else "ok")
        assert ours.links == (frozenset() if too_long else theirs.links)
    assert max(scarce.sizes) > 3


def test_other_errors_are_not_taken_for_short_memory():
    with pytest.raises(RuntimeError, match="shapes"):
        list(align_pairs(tiny_model(), tiny_pairs(4), Scarce(0, 9, RuntimeError("shapes differ")), Extraction()))
