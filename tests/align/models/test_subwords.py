"""Pieces and the words they belong to, in every convention."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from align.models.cutters import SentencePiece
from align.models.subwords import (
    SubwordNmt,
    detect_input,
    joined_bpe,
    joined_spm,
    presegmented,
    whole_words,
    words_of_spans,
)
from align.models.text import joined, plain
from data.errors import ModelError, UsageError


@pytest.mark.parametrize(
    ("tokens", "words", "word_of"),
    [
        ("un@@ believ@@ able", ("unbelievable",), (0, 0, 0)),
        ("a b@@ c d", ("a", "bc", "d"), (0, 1, 1, 2)),
        ("a b@@", ("a", "b"), (0, 1)),
        ("@@", ("",), (0,)),
        ("", (), ()),
    ],
)
def test_bpe(tokens, words, word_of):
    result = joined_bpe(tokens.split())
    assert (result.words, result.word_of) == (words, word_of)


@pytest.mark.parametrize(
    ("tokens", "words", "word_of"),
    [
        ("▁the ▁hou se", ("the", "house"), (0, 1, 1)),
        ("the ▁hou se", ("the", "house"), (0, 1, 1)),
        ("▁ the ▁house", ("the", "house"), (0, 0, 1)),
        ("▁the ▁ ▁house", ("the", "house"), (0, -1, 1)),
        ("▁the ▁", ("the",), (0, -1)),
        ("▁ ▁", (), (-1, -1)),
        ("▁a ▁ 日 本", ("a", "日本"), (0, 1, 1, 1)),
        ("", (), ()),
    ],
)
def test_spm(tokens, words, word_of):
    result = joined_spm(tokens.split())
    assert (result.words, result.word_of) == (words, word_of)


def in_order(word_of, words):
    seen = [word for word in word_of if word != -1]
    return seen == sorted(seen) and set(seen) <= set(range(words))


@settings(deadline=None)
@given(st.lists(st.sampled_from(["a", "b@@", "▁", "▁c", "d▁", "@@"]), max_size=12))
def test_every_piece_has_one_word_or_none_in_order(tokens):
    for segment in (joined_bpe, joined_spm, whole_words):
        result = segment(tokens)
        assert result.pieces == tuple(tokens)
        assert len(result.word_of) == len(tokens)
        assert in_order(result.word_of, len(result.words))


@pytest.fixture(scope="module")
def spm(tmp_path_factory):
    from sentencepiece import SentencePieceTrainer

    folder = tmp_path_factory.mktemp("spm")
    (folder / "text").write_text("\n".join(f"the house is old and new 日本 {n}" for n in range(300)), encoding="utf-8")
    SentencePieceTrainer.train(
        input=str(folder / "text"), model_prefix=str(folder / "m"), vocab_size=60, model_type="bpe", minloglevel=2
    )
    return folder / "m.model"


def test_sentencepiece_by_characters(spm):
    # 1-, 2-, 3- and 4-byte characters, and digits that normalisation changes: spans count characters of the input.
    words = ("the", "é", "日本", "😀", "house１２", "old")
    result = SentencePiece(spm, plain)(words)
    by_word = [
        "".join(p for p, w in zip(result.pieces, result.word_of, strict=True) if w == n) for n in range(len(words))
    ]
    assert [text.replace("▁", "") for text in by_word] == ["the", "é", "日本", "😀", "house12", "old"]


def test_sentencepiece_without_spaces(spm):
    words = ("日", "本", "old")
    free = SentencePiece(spm, joined, unspaced=True, ends="text")(words)
    assert (free.pieces, free.word_of) == (("▁日本", "o", "ld"), (0, 2, 2))
    bound = SentencePiece(spm, joined, unspaced=True)(words)
    assert (bound.pieces, bound.word_of) == (("▁日", "本", "o", "ld"), (0, 1, 2, 2))
    with pytest.raises(UsageError, match="unknown value of piece ends"):
        SentencePiece(spm, joined, unspaced=True, ends="words")


@settings(deadline=None, max_examples=50)
@given(words=st.lists(st.text(st.characters(exclude_characters=" \t\n\r", codec="utf-8"), min_size=1), max_size=6))
def test_sentencepiece_pieces_stay_in_order(spm, words):
    result = SentencePiece(spm, plain)(words)
    assert len(result.word_of) == len(result.pieces)
    assert in_order(result.word_of, len(words))


def test_spans_go_to_the_word_with_most_characters():
    owner = [0, 0, -1, 1, 1, 1]
    spans = [(0, 2), (1, 4), (0, 6), (2, 3), (3, 3)]
    assert words_of_spans(spans, owner) == [0, 0, 1, -1, -1]


@pytest.fixture
def codes(tmp_path):
    (tmp_path / "codes").write_text("#version: 0.2\nl o\nlo w</w>\nn e\nne w</w>\n", encoding="utf-8")
    (tmp_path / "vocab").write_text("low 30\nnew 2\nn@@ 9\ne@@ 9\nw 9\n", encoding="utf-8")
    return tmp_path


def test_subword_nmt(codes):
    plain = SubwordNmt(codes / "codes", None, None, ())(("low", "new", "now"))
    assert plain.pieces == ("low", "new", "n@@", "o@@", "w")
    assert plain.word_of == (0, 1, 2, 2, 2)
    thresholded = SubwordNmt(codes / "codes", codes / "vocab", 5, ())(("low", "new"))
    assert thresholded.pieces[0] == "low"
    assert thresholded.pieces[1:] != ("new",)
    known = SubwordNmt(codes / "codes", codes / "vocab", None, {"low", "w"})(("low", "new"))
    assert known.pieces[0] == "low"
    assert "new" not in known.pieces


def test_subword_nmt_mistakes(codes):
    with pytest.raises(UsageError, match="needs a BPE vocabulary"):
        SubwordNmt(codes / "codes", None, 5, ())
    (codes / "broken").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ModelError, match="codes"):
        SubwordNmt(codes / "broken", None, None, ())


def test_sentencepiece_mistakes(tmp_path):
    (tmp_path / "broken").write_text("no model")
    with pytest.raises(ModelError, match="not a SentencePiece model"):
        SentencePiece(tmp_path / "broken", plain)


@pytest.mark.parametrize(
    ("sides", "kind"),
    [
        ([("a", "b@@", "c")], "@@"),
        ([("a",), ("b@@", "c")], "@@"),
        ([("a", "b@@")], "words"),
        ([("@@", "c")], "words"),
        ([("▁a", "b")], "▁"),
        ([("a", "▁")], "words"),
        ([(), ("a", "b")], "words"),
        ([], "words"),
    ],
)
def test_detection(sides, kind):
    assert detect_input(sides) == kind


def test_presegmented_names():
    assert presegmented("@@") is joined_bpe
    with pytest.raises(UsageError, match="unknown input kind"):
        presegmented("##")
