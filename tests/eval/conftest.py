"""A tiny model and pairs for it; a tiny checkpoint with text beside it, for the commands."""

from __future__ import annotations

import pytest
import torch

from tests.tiny import tiny_model, tiny_module, tiny_pairs, tiny_settings


@pytest.fixture(scope="module")
def model():
    return tiny_model()


@pytest.fixture(scope="module")
def encoded(model):
    return [model.encode_pair(pair) for pair in tiny_pairs(5)]


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory):
    """A folder with `st.pt`, its dictionaries, and 8 pairs in `joint`, one of them empty."""
    folder = tmp_path_factory.mktemp("checkpoint")
    module, source, target = tiny_module(0)
    languages = {"source_lang": "src", "target_lang": "tgt"}
    cfg = {"model": tiny_settings(**languages), "task": languages}
    torch.save({"cfg": cfg, "model": module.state_dict()}, folder / "st.pt")
    source.save(str(folder / "dict.src.txt"))
    target.save(str(folder / "dict.tgt.txt"))
    lines = [f"{' '.join(p.source)} ||| {' '.join(p.target)}\n" for p in tiny_pairs(8)]
    lines[5] = " ||| t1 t2\n"
    (folder / "joint").write_text("".join(lines))
    (folder / "gold").write_text("".join("\n" if n == 5 else "0-0\n" for n in range(8)))
    return folder
