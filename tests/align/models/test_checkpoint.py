"""Checkpoints: what is read from good ones, and which content is refused."""

from __future__ import annotations

import argparse
import collections
import hashlib
import importlib.util
import os
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from checkpoint_files import args, refusal, save, weights
from omegaconf import OmegaConf

from align.models.checkpoint import check_embedding, check_finite, check_shapes, read_checkpoint
from data.errors import CheckpointError

SHARED = Path(os.environ.get("NMT_ALIGN_SHARED", Path(__file__).resolve().parents[4] / "shared"))


# What is read


@pytest.mark.parametrize("legacy", [False, True])
def test_old_style_args(tmp_path: Path, legacy: bool) -> None:
    path = save(tmp_path / "a.pt", {"args": args(odd=object, nested=[[1]]), "model": weights()}, legacy)
    with pytest.raises(CheckpointError, match=r"builtins\.object"):
        read_checkpoint(path)
    save(path, {"args": args(nested=[[1]], betas=(0.9, 0.98)), "model": weights(), "optimizer": {}}, legacy)
    read = read_checkpoint(path)
    assert read.config == {
        "arch": "transformer",
        "task": "translation",
        "encoder_layers": 2,
        "lr": [0.1, 1],
        "betas": [0.9, 0.98],
    }
    assert read.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert read.path == path


@pytest.mark.parametrize("legacy", [False, True])
def test_weights_are_widened_and_stay_tied(tmp_path: Path, legacy: bool) -> None:
    read = read_checkpoint(save(tmp_path / "a.pt", {"args": args(), "model": weights()}, legacy)).weights
    assert list(read) == list(weights())
    for name, tensor in weights().items():
        wanted = torch.float32 if tensor.dtype == torch.float16 else tensor.dtype
        torch.testing.assert_close(read[name], tensor.to(wanted), rtol=0, atol=0)
    assert read["encoder.embed_tokens.weight"] is read["decoder.embed_tokens.weight"]


def test_bfloat16_and_parameters(tmp_path: Path) -> None:
    model = {"a": torch.nn.Parameter(torch.tensor([1.5]).bfloat16()), "b": torch.tensor([[1.0, 2], [3, 4]]).T}
    read = read_checkpoint(save(tmp_path / "a.pt", {"args": args(), "model": model})).weights
    assert type(read["a"]) is torch.Tensor
    assert not read["a"].requires_grad
    assert (read["a"].dtype, read["a"].tolist()) == (torch.float32, [1.5])
    assert read["b"].tolist() == [[1, 3], [2, 4]]


def config_groups() -> dict[str, Any]:
    """As fairseq saves a model with nested settings; `???` is missing, `${}` refers to another group."""
    return {
        "_name": None,
        "common": {"user_dir": "/evil", "seed": 7},
        "task": {"_name": "translation", "data": "???", "max_source_positions": 1024},
        "model": {
            "_name": "transformer",
            "encoder": {"_name": None, "embed_dim": 8, "layers_to_keep": None},
            "quant_noise": {"pq": 0.5},
            "dropout": 0.1,
            "adaptive_softmax_cutoff": [1, 2],
            "share_all_embeddings": True,
            "max_source_positions": "${task.max_source_positions}",
            "other": {"ignored": 1},
        },
    }


FLAT = {
    "arch": "transformer",
    "task": "translation",
    "max_source_positions": 1024,
    "encoder_embed_dim": 8,
    "encoder_layers_to_keep": None,
    "quant_noise_pq": 0.5,
    "dropout": 0.1,
    "adaptive_softmax_cutoff": [1, 2],
    "share_all_embeddings": True,
}


def with_dict() -> Any:
    return config_groups()


def with_dict_config() -> Any:
    config = OmegaConf.create(config_groups())
    OmegaConf.set_struct(config, True)
    return config


def with_interpolation_used() -> Any:
    config = with_dict_config()
    assert config.model.max_source_positions == 1024  # fills omegaconf's caches, which are saved too
    return config


@pytest.mark.parametrize("make", [with_dict, with_dict_config, with_interpolation_used])
def test_new_style_cfg(tmp_path: Path, make: Any) -> None:
    content = {"args": None, "cfg": make(), "model": weights(), "extra_state": {"epoch": 3}}
    assert read_checkpoint(save(tmp_path / "a.pt", content)).config == FLAT


def test_new_style_cfg_with_a_namespace(tmp_path: Path) -> None:
    model = args(_name="transformer", max_source_positions=512)
    content = {"args": None, "cfg": {**config_groups(), "model": model}, "model": weights()}
    config = read_checkpoint(save(tmp_path / "a.pt", content)).config
    assert (config["arch"], config["task"], config["max_source_positions"]) == (
        "transformer",
        "translation",
        512,
    )
    assert not config.keys() & {"user_dir", "data", "_name"}


@pytest.mark.parametrize("module", ["fairseq.meters", "fairseq.logging.meters"])
def test_meters_and_numpy_in_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    """fairseq's real meters, under both names they have had, without the slow import of fairseq itself."""
    fairseq = importlib.util.find_spec("fairseq")
    assert fairseq is not None
    assert fairseq.origin is not None
    file = Path(fairseq.origin).parent / "logging" / "meters.py"
    spec = importlib.util.spec_from_file_location(module, file)
    assert spec is not None
    assert spec.loader is not None
    meters = importlib.util.module_from_spec(spec)
    for parent in ("fairseq", "fairseq.logging"):
        monkeypatch.setitem(sys.modules, parent, types.ModuleType(parent))
    monkeypatch.setitem(sys.modules, module, meters)
    spec.loader.exec_module(meters)
    average = meters.AverageMeter()
    average.update(np.float64(2.5), 3)
    kinds = [average, meters.TimeMeter(), meters.StopwatchMeter(), meters.SumMeter()]
    extra = {
        "train_meters": collections.OrderedDict(enumerate(kinds)),
        "val_loss": np.float32(3.25),
        "counts": [np.int64(3), np.bool_(True), np.arange(3.0)],
    }
    path = save(tmp_path / "a.pt", {"args": args(score=np.float64(1)), "model": weights(), "extra_state": extra})
    assert "score" not in read_checkpoint(path).config


def test_the_published_model() -> None:
    path = SHARED / "models" / "hansards-en-fr" / "en-fr.pt"
    if not path.exists():
        pytest.skip(f"needs {path} (set NMT_ALIGN_SHARED)")
    read = read_checkpoint(path)
    assert read.config["arch"] == "transformer"
    assert (read.config["encoder_layers"], read.config["decoder_layers"]) == (3, 3)
    assert read.weights["encoder.embed_tokens.weight"].shape == (7704, 256)
    check_finite(read.weights, path)


# What is refused


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"args": args()}, "no weights under 'model' (it has: 'args')"),
        ({"args": args(), "model": {}}, "no weights"),
        ({"args": args(), "model": {"w": 3}}, "'w' is not a plain tensor"),
        ({"args": args(), "model": {7: torch.ones(1)}}, "'7' is not a plain tensor"),
        ({"args": args(), "model": {"w": torch.ones(1, dtype=torch.complex64)}}, "torch.ComplexFloatStorage"),
        ({"args": args(), "model": {"w": torch.eye(2).to_sparse()}}, "_rebuild_sparse_tensor"),
        ({"args": args(), "model": {"w": torch.ones(2, device="meta")}}, "_rebuild_meta_tensor"),
        ({"model": {"w": torch.ones(1)}}, "no settings"),
        ({"args": None, "cfg": None, "model": {"w": torch.ones(1)}}, "no settings"),
        ({"args": argparse.Namespace(), "model": {"w": torch.ones(1)}}, "architecture"),
        ({"cfg": {"model": None}, "model": {"w": torch.ones(1)}}, "architecture"),
        ([1, 2], "no dict"),
        (torch.ones(2), "no dict"),
        (collections.defaultdict(int, model=3), "no weights"),
    ],
)
def test_wrong_content(tmp_path: Path, content: Any, expected: str) -> None:
    assert expected in refusal(save(tmp_path / "a.pt", content))


def test_newer_pickle_protocol(tmp_path: Path) -> None:
    assert "protocol 4" in refusal(save(tmp_path / "a.pt", {"args": args(), "model": weights()}, protocol=4))


def test_settings_that_refer_to_themselves(tmp_path: Path) -> None:
    loop: dict[str, Any] = {"arch": "transformer"}
    loop["encoder"] = loop["itself"] = loop
    loop["list"] = [loop]
    read = read_checkpoint(save(tmp_path / "a.pt", {"args": argparse.Namespace(**loop), "model": weights()}))
    assert read.config == {"encoder_arch": "transformer", "arch": "transformer"}


# Checks against the architecture and the dictionaries


def test_check_finite_names_the_tensor() -> None:
    good = {"a": torch.ones(2), "steps": torch.tensor([1])}
    check_finite(good, Path("m.pt"))
    bad = good | {"b": torch.tensor([1, torch.nan]), "c": torch.tensor([torch.inf])}
    with pytest.raises(CheckpointError, match=r"m\.pt: .*'b', 'c'"):
        check_finite(bad, Path("m.pt"))


def test_check_shapes() -> None:
    weights = {"a": torch.ones(2, 3), "b": torch.ones(4), "scalar": torch.tensor(1.0)}
    check_shapes(weights, {"a": (2, 3), "b": [4], "scalar": torch.Size([])}, Path("m.pt"))
    with pytest.raises(CheckpointError) as caught:
        check_shapes(weights, {"a": (3, 2), "c": (1,), "scalar": ()}, Path("m.pt"))
    told = str(caught.value)
    assert all(part in told for part in ("missing: 'c'", "unexpected: 'b'", "'a (2, 3), not (3, 2)'", "m.pt"))


def test_check_embedding() -> None:
    weights = {"emb": torch.ones(8, 2), "bias": torch.ones(8)}
    place = Path("dict.en.txt"), Path("m.pt")
    check_embedding("emb", weights, 8, *place)
    with pytest.raises(CheckpointError, match=r"m\.pt: tensor emb .*\(8, 2\).*dict\.en\.txt makes 7 entries"):
        check_embedding("emb", weights, 7, *place)
    with pytest.raises(CheckpointError, match="bias"):
        check_embedding("bias", weights, 8, *place)
    with pytest.raises(CheckpointError, match="no tensor other"):
        check_embedding("other", weights, 8, *place)
