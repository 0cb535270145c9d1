"""What lies beside a checkpoint, and load options of the other direction."""

from __future__ import annotations

import io
import logging
import subprocess
import sys

import pytest
import torch

from align.models.load import LoadOptions, Side, load_model
from data.errors import ModelError
from tests.tiny import SOURCE, dictionary, tiny_module, tiny_settings


@pytest.mark.parametrize(
    ("unspaced", "other"), [("source", "target"), ("target", "source"), ("both", "both"), ("auto", "auto")]
)
def test_swapping_sides_swaps_all_of_them(unspaced, other):
    options = LoadOptions(Side("zh"), Side("en"), unspaced=unspaced)
    assert options.swapped() == LoadOptions(Side("en"), Side("zh"), unspaced=other)
    assert options.swapped().swapped() == options


def test_dictionary_of_all_languages_beside_the_model(tmp_path):
    both = dictionary(SOURCE)
    module, *_ = tiny_module(source=both, target=both)
    torch.save({"cfg": {"model": tiny_settings()}, "model": module.state_dict()}, tmp_path / "model.pt")
    options = LoadOptions(Side("de"), Side("en"))
    with pytest.raises(ModelError, match=r"dict\.de\.txt is not there"):
        load_model(tmp_path / "model.pt", options)
    both.save(str(tmp_path / "dict.txt"))
    assert load_model(tmp_path / "model.pt", options).target_dictionary.symbols == both.symbols
    dictionary([*SOURCE, *(f"x{n}" for n in range(9))]).save(str(tmp_path / "dict.de.txt"))
    with pytest.raises(ModelError, match=r"dict\.de\.txt"):
        load_model(tmp_path / "model.pt", options)


@pytest.fixture
def chinese(tmp_path):
    """A model whose SentencePiece model lies beside it and has pieces over two words."""
    from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(["我昨天到北京", "你到北京 it 's"] * 50),
        model_writer=model,
        vocab_size=24,
        hard_vocab_limit=False,
        user_defined_symbols=["天到"],
        minloglevel=2,
    )
    (tmp_path / "spm.model").write_bytes(model.getvalue())
    cut = SentencePieceProcessor(model_proto=model.getvalue())
    pieces = dictionary([cut.id_to_piece(i) for i in range(3, cut.vocab_size())])
    pieces.save(str(tmp_path / "dict.txt"))
    module, *_ = tiny_module(source=pieces, target=pieces)
    torch.save({"cfg": {"model": tiny_settings()}, "model": module.state_dict()}, tmp_path / "model.pt")
    return tmp_path / "model.pt"


@pytest.mark.parametrize(
    ("options", "crossing", "written"),
    [
        ({}, False, ",unspaced=source,ends=word"),
        ({"piece_ends": "text"}, True, ",unspaced=source,ends=text"),
        ({"unspaced": "none"}, False, ""),
        ({"unspaced": "target"}, False, ",unspaced=target,ends=word"),
    ],
)
def test_fairseq_models_with_sentencepiece_of_unspaced_text(chinese, options, crossing, written):
    model = load_model(chinese, LoadOptions(Side("zh"), Side("en"), **options))
    assert model.identity == f"model.pt@{model.fingerprint[:8]}{written}"
    words = ("我", "昨天", "到", "北京")
    source = model.segment_source(words)
    assert ("天到" in source.pieces) == crossing
    spaces = options.get("unspaced") in ("none", "target")
    assert "".join(source.pieces).replace("▁", " ").strip() == (" " if spaces else "").join(words)
    # Tokens of text that is spaced stay as they are.
    joined = options.get("unspaced") == "target"
    assert "".join(model.segment_target(("it", "'s")).pieces) == ("▁it's" if joined else "▁it▁'s")


def test_words_of_a_translation_into_unspaced_text(chinese, monkeypatch):
    texts = ["我昨天到北京", "你到 it 's"]
    for language, expected in (("en", [text.split() for text in texts]), ("zh", None)):
        model = load_model(chinese, LoadOptions(Side("zh"), Side(language)))
        pieces = [model.segment_target((text,)).pieces for text in texts]
        found = [[model.target_dictionary.index(piece) for piece in row] for row in pieces]
        monkeypatch.setattr(model, "_search", lambda sources, beam, found=found: found)
        words = [list(row) for row in model.translate([("我",), ("北京",)])]
        if expected:
            assert words == expected
        else:
            assert ["".join(row) for row in words] == [text.replace(" ", "") for text in texts]
            assert len(words[0]) > 2
            assert words[0] == [piece.strip("▁") for piece in pieces[0] if piece != "▁"]
            assert words[1][-3:] == ["it", "'", "s"]  # Latin letters stay together


def test_importing_fairseq_leaves_logging_alone() -> None:
    """Some of its modules set the root logger to DEBUG and give it a handler."""
    code = (
        "import logging; from align.models.fairseq_loading import _import_fairseq; _import_fairseq(); "
        "root = logging.getLogger(); print(root.level, root.handlers)"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"{logging.WARNING} []\n"
