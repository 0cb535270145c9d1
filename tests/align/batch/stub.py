"""Batches without a model: what aligns is a rule that is fast to start and can be made to fail."""

from __future__ import annotations

import os
import signal
import time
from itertools import cycle, islice
from pathlib import Path

from align.batch.job import Job
from align.batch.plan import make_plan
from align.batch.shard import Record
from data.bitext import Pair
from data.corpus import Corpus
from data.errors import ModelError


def job(folder: Path, **changes) -> Job:
    """A job whose model is a file that only gets hashed."""
    model = folder / "model.pt"
    if not model.exists():
        model.write_bytes(b"weights")
    settings = {
        "model": model,
        "reverse_model": None,
        "model_options": {"device": "cpu", "bpe_codes": None},
        "method": "attention",
        "reverse_method": None,
        "pooling": "word",
        "extractor": "argmax",
        "threshold": 0.0,
        "eos": "mask",
        "punctuation": False,
        "symmetrisation": "grow-diag-final-and",
        "batch_pieces": 1000,
        "max_unknown": 0.2,
        "threads": 1,
        "max_tokens": None,
        "max_ratio": None,
        "matrices": False,
    }
    return Job(**{**settings, **changes})


def pairs(count: int = 23, *words: str) -> list[Pair]:
    """Pairs of 0 to 4 words; the source of pair n begins with the n-th of `words`, if it has one."""
    result = []
    for n in range(count):
        source = [*islice(cycle("das Haus ist alt".split()), n % 5)]
        source[:1] = words[n : n + 1] or source[:1]
        result.append(Pair(n, tuple(source), tuple([f"the{n}", "house", "is", "old"][: n % 5])))
    return result


def plan(folder: Path, text: list[Pair] | None = None, shard_size: int = 5, **changes):
    """A plan for `text` in `folder / "batch"`."""
    text = pairs() if text is None else text
    source = folder / "text"
    source.write_text("".join(f"{' '.join(p.source)}\t{' '.join(p.target)}\n" for p in text), encoding="utf-8")
    corpus = Corpus(tsv=(str(source),))
    return make_plan(folder / "batch", text, corpus, job(folder, **changes), "method:stub", shard_size)


def load(job: Job):
    return align


def align(text):
    """One link for each target word; some words do harm."""
    for pair in text:
        first = pair.source[0] if pair.source else ""
        if first == "raise":
            raise ValueError("a poisoned pair")
        if first == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if first.startswith("kill-once:"):
            flag = Path(first.partition(":")[2])
            if not flag.exists():
                flag.touch()
                os.kill(os.getpid(), signal.SIGKILL)
        if first.startswith("wait-for:"):
            while not Path(first.partition(":")[2]).exists():
                time.sleep(0.02)
        if first.startswith("touch:"):
            Path(first.partition(":")[2]).touch()
        links = {(j % len(pair.source), j): 1 / (1 + j) for j in range(len(pair.target))} if pair.source else {}
        yield Record(pair.id, pair.source, pair.target, links, "ok" if links else "empty")


def broken_load(job: Job):
    raise ModelError("no such model")


def deadly_load(job: Job):
    os.kill(os.getpid(), signal.SIGKILL)
