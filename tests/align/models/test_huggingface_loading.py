"""Folders of Hugging Face models: what is read from good ones, and what is refused."""

from __future__ import annotations

import hashlib
import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

pytest.importorskip("transformers")

from hf_tiny import FAMILIES, write_json
from hostile import Call, touch

from align.models.hf_loading import is_huggingface, load_huggingface
from data.bitext import Pair
from data.errors import CheckpointError, ModelError, UsageError


@pytest.fixture(scope="session")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folders = {name: tmp_path_factory.mktemp(name) for name in ("marian", "marian_multi", "nllb", "m2m_100", "t5")}
    for name, folder in folders.items():
        FAMILIES[name](folder)
    return folders


@pytest.fixture
def folder(originals: dict[str, Path], tmp_path: Path) -> Path:
    """A Marian model to damage."""
    return Path(shutil.copytree(originals["marian"], tmp_path / "opus-mt-xx-yy"))


def change_json(path: Path, **changes: Any) -> None:
    write_json(path, json.loads(path.read_text("utf-8")) | changes)


def to_bin(folder: Path, **more: Any) -> None:
    """Keep the weights in a pickle instead of safetensors."""
    torch.save({**load_file(folder / "model.safetensors"), **more}, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def refusal(folder: Path, error: type[ModelError] = CheckpointError, **options: Any) -> str:
    with pytest.raises(error) as caught:
        load_huggingface(folder, **options)
    message = str(caught.value)
    assert str(folder) in message
    assert "trust_remote_code=True" not in message
    return message


# Good folders


def test_what_signatures_call_it(folder: Path) -> None:
    model = load_huggingface(folder)
    assert model.name == "opus-mt-xx-yy"
    assert model.fingerprint == hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    assert (model.layers, model.heads, model.width) == (2, 2, 8)
    assert (model.dtype, model.device) == (torch.float32, torch.device("cpu"))
    assert not model.module.training
    assert load_huggingface(folder, dtype=torch.float64).dtype == torch.float64


def test_bin_holds_the_same_model(folder: Path) -> None:
    first = load_huggingface(folder)
    to_bin(folder)
    second = load_huggingface(folder)
    assert second.fingerprint == hashlib.sha256((folder / "pytorch_model.bin").read_bytes()).hexdigest()
    batch = first.batch([first.encode_pair(Pair(0, ("the", "house"), ("fish",)))])
    assert torch.equal(first.log_probs(batch, first.embed(batch)), second.log_probs(batch, second.embed(batch)))


def test_safetensors_come_first(folder: Path) -> None:
    (folder / "pytorch_model.bin").write_bytes(b"not read")
    assert load_huggingface(folder).layers == 2


def test_shards(folder: Path) -> None:
    whole = load_huggingface(folder)
    whole.module.save_pretrained(folder, max_shard_size="2KB")
    (folder / "model.safetensors").unlink()
    shards = sorted(folder.glob("model-*.safetensors"))
    assert len(shards) > 2
    model = load_huggingface(folder)
    assert model.fingerprint == hashlib.sha256(b"".join(shard.read_bytes() for shard in shards)).hexdigest()
    assert all(torch.equal(a, b) for a, b in zip(model.module.parameters(), whole.module.parameters(), strict=True))


def test_is_huggingface(folder: Path) -> None:
    assert is_huggingface(folder)
    assert not is_huggingface(folder / "model.safetensors")
    assert not is_huggingface(folder.parent)


def test_the_library_is_left_as_it_was(folder: Path) -> None:
    from transformers.utils import logging

    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    load_huggingface(folder)
    (folder / "vocab.json").unlink()
    refusal(folder)
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before


def test_nothing_is_printed(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    load_huggingface(folder)
    assert capfd.readouterr() == ("", "")


# Code and pickles


def test_code_in_the_folder_is_never_run(folder: Path, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    for name in ("modeling_evil", "tokenization_evil", "configuration_evil"):
        (folder / f"{name}.py").write_text(f"open({str(canary)!r}, 'w').close()\nclass Evil: pass\n")
    change_json(
        folder / "config.json",
        auto_map={"AutoConfig": "configuration_evil.Evil", "AutoModelForSeq2SeqLM": "modeling_evil.Evil"},
    )
    assert load_huggingface(folder).layers == 2
    auto = {"AutoTokenizer": ["tokenization_evil.Evil", None]}
    change_json(folder / "tokenizer_config.json", auto_map=auto)
    assert load_huggingface(folder).layers == 2
    change_json(folder / "tokenizer_config.json", tokenizer_class="Evil")
    refusal(folder)
    assert not canary.exists()


@pytest.mark.parametrize("legacy", [False, True])
def test_a_malicious_bin_is_refused(folder: Path, tmp_path: Path, legacy: bool) -> None:
    canary = tmp_path / "canary"
    evil = {"evil": Call(touch, str(canary))}
    weights = load_file(folder / "model.safetensors")
    torch.save({**weights, **evil}, folder / "pytorch_model.bin", _use_new_zipfile_serialization=not legacy)
    (folder / "model.safetensors").unlink()
    message = refusal(folder)
    assert "hostile.touch" in message
    assert "weights_only" not in message
    assert not canary.exists()


def test_a_bare_pickle_is_refused(folder: Path, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Call(touch, str(canary))))
    refusal(folder)
    assert not canary.exists()


# Weights that do not fit


def change_weights(folder: Path, change: Any) -> None:
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda w: w.pop("model.encoder.layers.1.fc1.weight"), "missing: 'model.encoder.layers.1.fc1.weight'"),
        (lambda w: w.update({"model.encoder.layers.2.fc1.bias": torch.zeros(12)}), "unexpected: 'model.encoder.layers"),
        (
            lambda w: w.update({"model.decoder.layers.0.fc1.bias": torch.zeros(13)}),
            "mismatched: 'model.decoder.layers.0.fc1.bias",
        ),
        (
            lambda w: w["model.decoder.layers.0.fc1.bias"].fill_(torch.nan),
            "NaN or infinity in 'model.decoder.layers.0.fc1.bias'",
        ),
    ],
)
def test_tensors_that_do_not_fit_are_named(folder: Path, change: Any, expected: str) -> None:
    change_weights(folder, change)
    assert expected in refusal(folder)


def test_positions_of_older_files_are_not_needed(folder: Path) -> None:
    change_weights(folder, lambda w: w.update({"model.encoder.embed_positions.weight": torch.zeros(64, 8)}))
    load_huggingface(folder)


@pytest.mark.parametrize("content", [b"", b"<!doctype html>", b"version https://git-lfs.github.com/spec/v1\n", None])
def test_what_is_no_safetensors_file(folder: Path, content: bytes | None) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100] if content is None else content)
    refusal(folder)


def test_no_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    assert "neither model.safetensors nor pytorch_model.bin" in refusal(folder)


def test_an_index_that_points_elsewhere(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    write_json(folder / "model.safetensors.index.json", {"weight_map": {"a": "../elsewhere.safetensors"}})
    assert "'../elsewhere.safetensors'" in refusal(folder)


def test_a_tokenizer_that_knows_more_than_the_model(folder: Path) -> None:
    vocabulary = json.loads((folder / "vocab.json").read_text("utf-8"))
    write_json(folder / "vocab.json", vocabulary | {"▁house": 4000})
    with pytest.raises(ModelError, match="ids beyond its embeddings"):
        load_huggingface(folder).encode_pair(Pair(0, ("house",), ("the",)))


@pytest.mark.parametrize("name", ["vocab.json", "source.spm", "target.spm"])
def test_a_tokenizer_file_that_is_not_there(folder: Path, name: str) -> None:
    (folder / name).unlink()
    refusal(folder)


@pytest.mark.parametrize("name", ["source.spm", "vocab.json", "config.json", "tokenizer_config.json"])
def test_a_file_that_is_damaged(folder: Path, name: str) -> None:
    (folder / name).write_bytes(b"\xff\x00broken")
    refusal(folder, ModelError)


def test_an_unknown_family(folder: Path) -> None:
    change_json(folder / "config.json", model_type="bart")
    message = refusal(folder, ModelError)
    assert "'bart'" in message
    assert "marian" in message


# Names on the hub


def test_a_hub_name_needs_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub, "snapshot_download", None)
    with pytest.raises(ModelError, match=r"Helsinki-NLP/opus-mt-zh-en: no such folder.*--allow-download"):
        load_huggingface("Helsinki-NLP/opus-mt-zh-en")
    for path in ("nowhere", "/nowhere/at/all", "../nowhere/x"):
        with pytest.raises(ModelError, match=r"not a folder with a config\.json"):
            load_huggingface(path, allow_download=True)


@pytest.mark.parametrize("only_bin", [False, True])
def test_a_download(folder: Path, monkeypatch: pytest.MonkeyPatch, only_bin: bool) -> None:
    import huggingface_hub

    if only_bin:
        to_bin(folder)
    asked: list[list[str]] = []

    def snapshot_download(name: str, allow_patterns: list[str]) -> str:
        assert name == "Helsinki-NLP/opus-mt-zh-en"
        asked.append(allow_patterns)
        return str(folder)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    model = load_huggingface("Helsinki-NLP/opus-mt-zh-en", allow_download=True)
    assert model.name == "opus-mt-zh-en"
    assert ["pytorch_model*.bin" in patterns for patterns in asked] == ([False, True] if only_bin else [False])
    assert not any(pattern.endswith((".py", "*")) for patterns in asked for pattern in patterns)


def test_a_download_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    def snapshot_download(*_: object, **__: object) -> str:
        raise OSError("no network")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    with pytest.raises(ModelError, match="a/b cannot be fetched from the hub: 'no network'"):
        load_huggingface("a/b", allow_download=True)


# Languages


@pytest.mark.parametrize(
    ("family", "languages", "expected"),
    [
        ("marian_multi", {}, "give --target-lang, one of deu, fra"),
        ("marian_multi", {"target_lang": "fr"}, "unknown target language 'fr'; did you mean 'fra'"),
        ("nllb", {"source_lang": "eng_Latn"}, "give --target-lang, one of deu_Latn, eng_Latn, zho_Hans"),
        ("nllb", {"source_lang": "eng_Lat", "target_lang": "deu_Latn"}, "'eng_Lat'; did you mean 'eng_Latn'"),
        ("m2m_100", {"source_lang": "xx", "target_lang": "de"}, "unknown source language 'xx'"),
        ("t5", {"target_lang": "de"}, "give --source-lang, one of en"),
        ("t5", {"source_lang": "en", "target_lang": "fr"}, r"unknown target language 'fr' \(known: de\)"),
    ],
)
def test_languages(originals: dict[str, Path], family: str, languages: dict[str, str], expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        load_huggingface(originals[family], **languages)


def test_unspaced_values(folder: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'source'"):
        load_huggingface(folder, unspaced="sorce")


def test_a_tokenizer_without_languages(originals: dict[str, Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(originals["nllb"], tmp_path / "nllb"))
    change_json(folder / "tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast")
    with pytest.raises(ModelError, match="knows no languages"):
        load_huggingface(folder, "eng_Latn", "deu_Latn")
