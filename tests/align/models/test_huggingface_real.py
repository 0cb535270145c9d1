"""A real model, OPUS-MT Chinese-English, against hand-made links. It is built once, outside the repository."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("transformers")

from align.extract import Extraction
from align.methods import make_method
from align.models.hf_loading import load_huggingface
from align.models.huggingface import HuggingFaceModel
from align.pipeline import align_pairs
from data.bitext import read_bitext, tokenize
from data.links import read_gold
from eval.aer import corpus_stats, scores, total

SHARED = Path(os.environ.get("NMT_ALIGN_SHARED", Path(__file__).resolve().parents[4] / "shared"))
BUILD = SHARED / "models" / "opus-mt-zh-en" / "build.py"
GOLD = SHARED / "gold" / "nist02-zh-en"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "nmt-align-tests"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not BUILD.is_file() or not GOLD.is_dir(), reason=f"{SHARED} has no model and gold links"),
]


@pytest.fixture(scope="module")
def folder() -> Path:
    folder = CACHE / "opus-mt-zh-en"
    built = subprocess.run([sys.executable, BUILD, folder], capture_output=True, text=True)
    if built.returncode:
        pytest.skip(f"the model cannot be built: {built.stderr.strip()[-200:]}")
    return folder


@pytest.fixture(scope="module")
def model(folder: Path) -> HuggingFaceModel:
    return load_huggingface(folder)


def error_rate(model: HuggingFaceModel, method: str, pooling: str) -> float:
    pairs = read_bitext(GOLD / "src", GOLD / "tgt")
    results = list(align_pairs(model, pairs, make_method(method), Extraction(pooling=pooling)))
    assert {result.status for result in results} == {"ok"}
    found = scores(total(corpus_stats([result.links for result in results], list(read_gold(GOLD / "gold")))))
    assert found.aer is not None
    return found.aer


@pytest.mark.parametrize(
    ("layer", "position", "pooling", "expected"),
    [(2, "awi", "piece", 0.228), (2, "awi", "word", 0.240), (4, "awo", "piece", 0.360)],
)
def test_attention(model: HuggingFaceModel, layer: int, position: str, pooling: str, expected: float) -> None:
    found = error_rate(model, f"attention:layer={layer}:position={position}", pooling)
    assert found == pytest.approx(expected, abs=0.003)


@pytest.mark.parametrize(("options", "expected"), [({"unspaced": "none"}, 0.210), ({"piece_ends": "text"}, 0.272)])
def test_chinese_with_spaces_and_with_free_pieces(folder: Path, options: dict[str, str], expected: float) -> None:
    model = load_huggingface(folder, **options)
    assert error_rate(model, "attention:layer=2:position=awi", "piece") == pytest.approx(expected, abs=0.003)


def test_translation(model: HuggingFaceModel) -> None:
    (words,) = model.translate([tokenize("我 昨天 在 北京 见到 了 我 的 老 朋友 。")])
    assert {"Beijing", "friend"} & {word.strip(".") for word in words}
