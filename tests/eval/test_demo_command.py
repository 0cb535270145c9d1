"""The demo: the shipped models translate, and the command compares, prints and writes its page."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest
from click.testing import CliRunner

from align.cli import cli
from align.models.load import LoadOptions, load_model
from data.bitext import Pair
from data.demo import handmade, held_out
from data.errors import DataError
from eval.quality import translation_quality

MODEL = Path(str(files("data.demo") / "model"))


@pytest.fixture(scope="module", params=["de-en", "en-de"])
def direction(request):
    return request.param


def pairs_of(demo_pairs, direction):
    sides = [(p.source, p.target) if direction == "de-en" else (p.target, p.source) for p in demo_pairs]
    return [Pair(number, *side) for number, side in enumerate(sides)]


def test_shipped_models_translate(direction):
    model = load_model(MODEL / f"{direction}.pt", LoadOptions())
    generated = translation_quality(model, pairs_of(held_out(40), direction), beam=2)
    assert generated.bleu > 60
    assert generated.chrf > 75
    natural = translation_quality(model, pairs_of(handmade()[:30], direction), beam=2)
    assert natural.bleu > 30
    assert natural.chrf > 55


def test_quality_needs_text():
    model = load_model(MODEL / "de-en.pt", LoadOptions())
    with pytest.raises(DataError, match="at least one pair"):
        translation_quality(model, [])


def test_shipped_files_are_small():
    assert sum(path.stat().st_size for path in MODEL.iterdir()) < 6_000_000


def test_demo_prints_tables_and_writes_a_page(tmp_path, monkeypatch):
    import eval.demo_command

    monkeypatch.setattr(eval.demo_command, "METHODS", ("attention", "gradient-x-input"))
    monkeypatch.setattr("data.demo.handmade", lambda real=handmade: real()[:4])
    page = tmp_path / "demo.html"
    result = CliRunner().invoke(
        cli, ["demo", "--pairs", "4", "--top", "3", "--report", str(page)], catch_exceptions=False
    )
    assert result.exit_code == 0
    assert "BLEU" in result.stdout
    assert "4 pairs from the grammar" in result.stdout
    assert "4 pairs written and aligned by hand" in result.stdout
    assert result.stdout.count("attention") >= 1
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
