"""Words to pieces and back in every family: against transformers, by hand, and against naive twins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("transformers")

from hf_tiny import FAMILIES, PROMPT, SPECIAL, train_sentencepiece, write_json
from transformers.models.m2m_100 import modeling_m2m_100

from align.models.cutters import SentencePieceCutter, word_cutter
from align.models.hf_loading import load_huggingface
from align.models.hf_tokenizers import JsonCutter, MosesBpeCutter, Side
from align.models.huggingface import HuggingFaceModel
from align.models.subwords import NO_WORD
from align.models.text import joined, restore, spaced
from data.bitext import Pair

Load = Callable[[str], HuggingFaceModel]
SENTENCE = ("the", "small", "houses", "walked", "2024", "unheard")


@pytest.fixture(scope="session")
def load(tmp_path_factory: pytest.TempPathFactory) -> Load:
    made: dict[str, HuggingFaceModel] = {}

    def make(family: str) -> HuggingFaceModel:
        if family not in made:
            folder = tmp_path_factory.mktemp(family)
            made[family] = load_huggingface(folder, **FAMILIES[family](folder))
        return made[family]

    return make


# Against transformers


@pytest.mark.parametrize("family", [name for name in FAMILIES if name != "madlad"])  # whose bytes transformers loses
def test_ids_are_those_of_the_library(load: Load, family: str) -> None:
    model = load(family)
    tokenizer, module = model.tokenizer, model.module
    prompts = {"marian_multi": ">>fra<< ", "t5": PROMPT}
    text = " ".join(SENTENCE)
    encoded = model.encode_pair(Pair(0, SENTENCE, SENTENCE))
    tokenizer.tgt_lang = {"m2m_100": "de", "mbart": "ro_RO", "mbart_50": "ro_RO"}.get(family, "deu_Latn")
    assert list(encoded.source) == tokenizer(prompts.get(family, "") + text).input_ids
    if family in ("fsmt", "nllb_legacy"):  # which transformers gives source ids, or a tag after the words
        return
    labels = tokenizer(text_target=text, return_tensors="pt").input_ids
    if family in ("m2m_100", "nllb"):
        prefix = modeling_m2m_100.shift_tokens_right(labels, 1, 2)[0].tolist()
    else:
        prefix = module.prepare_decoder_input_ids_from_labels(labels)[0].tolist()
    if family == "mbart":  # the library also predicts the tag after </s>
        labels, prefix = labels[:, :-1], prefix[:-1]
    assert encoded.target == tuple(labels[0].tolist())
    assert encoded.prefix == tuple(prefix)


@pytest.mark.parametrize(
    ("family", "source", "target", "prefix"),
    [
        ("marian", "X </s>", "Y </s>", "<pad> Y"),
        ("marian_multi", ">>fra<< X </s>", "Y </s>", "<pad> Y"),
        ("marian_separate", "X </s>", "Y </s>", "<pad> Y"),
        ("m2m_100", "__en__ X </s>", "__de__ Y </s>", "</s> __de__ Y"),
        ("nllb", "eng_Latn X </s>", "deu_Latn Y </s>", "</s> deu_Latn Y"),
        ("nllb_legacy", "X </s> eng_Latn", "deu_Latn Y </s>", "</s> deu_Latn Y"),
        ("mbart", "X </s> en_XX", "Y </s>", "ro_RO Y"),
        ("mbart_50", "en_XX X </s>", "ro_RO Y </s>", "</s> ro_RO Y"),
        ("t5", "X </s>", "Y </s>", "<pad> Y"),
        ("mt5", "X </s>", "Y </s>", "<pad> Y"),
        ("madlad", "<2de> X </s>", "Y </s>", "<pad> Y"),
    ],
)
def test_what_stands_around_the_words(load: Load, family: str, source: str, target: str, prefix: str) -> None:
    model = load(family)
    encoded = model.encode_pair(Pair(0, ("the", "house"), ("big", "house")))
    name = model.tokenizer.convert_ids_to_tokens

    def shown(ids: tuple[int, ...], word: str, inside: list[bool]) -> str:
        pieces = [word if inside[i] else name(id_) for i, id_ in enumerate(ids)]
        return " ".join(piece for i, piece in enumerate(pieces) if piece != word or word not in pieces[:i])

    in_source = [word != NO_WORD for word in encoded.source_word_of]
    in_target = [word != NO_WORD for word in encoded.target_word_of]
    if family == "t5":
        prompt = in_source.index(True)
        assert model.tokenizer.decode(encoded.source[:prompt]) == PROMPT.strip()
        in_source[:prompt] = [True] * prompt
    assert shown(encoded.source, "X", in_source) == source
    assert shown(encoded.target, "Y", in_target) == target
    start = name(encoded.prefix[0]).replace("<unk>", "<pad>")  # madlad starts with id 0
    assert shown(encoded.prefix[1:], "Y", in_target[:-1]) == prefix.partition(" ")[2]
    assert start == prefix.partition(" ")[0]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_decoder_reads_what_it_predicted(load: Load, family: str) -> None:
    encoded = load(family).encode_pair(Pair(0, SENTENCE, SENTENCE))
    assert encoded.prefix[1:] == encoded.target[:-1]
    assert len(encoded.prefix) == len(encoded.target) == len(encoded.target_word_of)


# Conventions, by hand


def words_of(model: HuggingFaceModel, *words: str) -> list[tuple[str, int]]:
    """Target pieces and their words, without </s> and tags."""
    text = model.tokens.target.write(words)
    pieces = model.tokens.target.cut(text.characters)
    around = len(model.tokens.target.before), len(model.tokens.target.after)
    word_of = model.tokens.target.encode(words)[1]
    return list(zip(pieces.spelling, word_of[around[0] : len(word_of) - around[1]], strict=True))


def test_normalisation_that_changes_lengths(load: Load) -> None:
    model = load("marian")
    assert words_of(model, "１２", "the", "x㌔y", "ﬁsh") == [
        ("▁12", 0),
        ("▁the", 1),
        ("▁", NO_WORD),
        ("x", 2),
        ("キ", 2),
        ("ロ", 2),
        ("y", 2),
        ("▁fish", 3),
    ]


def test_lone_marks_belong_to_no_word_in_json_too(load: Load) -> None:
    model = load("mt5")
    assert isinstance(model.tokens.target.cut, JsonCutter)
    assert words_of(model, "x㌔y", "the", "😀") == [
        ("▁", NO_WORD),
        ("x", 0),
        ("キ", 0),
        ("ロ", 0),
        ("y", 0),
        ("▁the", 1),
        ("▁", NO_WORD),
        ("😀", 2),
    ]


def test_bytes_of_a_character_belong_to_its_word(load: Load) -> None:
    assert words_of(load("madlad"), "the", "é😀é", "house") == [
        ("▁the", 0),
        ("▁", NO_WORD),
        ("é", 1),
        ("<0xF0>", 1),
        ("<0x9F>", 1),
        ("<0x98>", 1),
        ("<0x80>", 1),
        ("é", 1),
        ("▁house", 2),
    ]


@pytest.mark.parametrize("family", ["marian", "m2m_100", "nllb", "mbart", "t5", "mt5"])
def test_unknown_pieces_keep_their_word(load: Load, family: str) -> None:
    model = load(family)
    encoded = model.encode_pair(Pair(0, ("house",), ("the", "😀", "house")))
    unknown = [
        word
        for id_, word in zip(encoded.target, encoded.target_word_of, strict=True)
        if id_ == model.tokens.target.unknown
    ]
    assert unknown == [1]
    assert encoded.unknown == 1 + encoded.source.count(model.tokens.source.unknown)


@pytest.mark.parametrize("family", ["marian", "m2m_100", "nllb", "mbart_50", "madlad"])
def test_special_tokens_in_the_text_are_text(load: Load, family: str) -> None:
    encoded = load(family).encode_pair(Pair(0, ("house",), ("a", "</s>", "b")))
    assert encoded.target.count(encoded.target[-1]) == 1
    assert 1 in encoded.target_word_of


def test_treebank_words_reach_the_model_as_text(load: Load) -> None:
    model = load("marian")
    text = model.tokens.target.write(("-LRB-", "the", "house", "-RRB-", ","))
    assert text.characters == "(the house),"
    assert text.word_of == (0, 1, 1, 1, -1, 2, 2, 2, 2, 2, 3, 4)


def test_unspaced_sides(tmp_path: Path) -> None:
    FAMILIES["marian"](tmp_path)
    source, target = ("我", "昨天", "北京"), ("the", "house")

    def texts(unspaced: str, **languages: str) -> tuple[str, str]:
        tokens = load_huggingface(tmp_path, unspaced=unspaced, **languages).tokens
        return tokens.source.write(source).characters, tokens.target.write(target).characters

    assert texts("auto") == ("我昨天北京", "the house")  # zh and en by tokenizer_config.json
    assert texts("auto", source_lang="en", target_lang="th") == ("我 昨天 北京".replace(" ", ""), "the house")
    assert texts("none") == ("我 昨天 北京", "the house")
    assert texts("source", source_lang="de") == ("我昨天北京", "the house")
    assert texts("both") == ("我昨天北京", "the house")


def test_a_piece_over_two_words_goes_with_most_of_its_characters(tmp_path: Path) -> None:
    train_sentencepiece(tmp_path / "m", user_defined_symbols=["昨天北", "京我"])
    side = Side(joined, SentencePieceCutter(tmp_path / "m", len), unknown=0)
    assert side.encode(("昨天", "北", "京", "我"))[1] == (NO_WORD, 0, 2)
    bound = replace(side, ends=word_cutter(side.cut, True, "word"))
    assert bound.encode(("昨天", "北", "京", "我"))[1] in ((0, 1, 2, 3), (NO_WORD, 0, 1, 2, 3))


# FSMT


@pytest.fixture(scope="session")
def moses(load: Load) -> MosesBpeCutter:
    cut = load("fsmt").tokens.source.cut
    assert isinstance(cut, MosesBpeCutter)
    return cut


def moses_words(moses: MosesBpeCutter, *words: str) -> list[tuple[str, int]]:
    """Moses' tokens, joined again from their pieces, with the word of each."""
    text = spaced(words)
    pieces = moses(text.characters)
    word_of = Side(spaced, moses, 0).encode(words)[1]
    tokens: list[tuple[str, int]] = []
    current = ""
    for piece, word in zip(pieces.spelling, word_of, strict=True):
        current += piece
        if piece.endswith("</w>"):
            tokens.append((current.removesuffix("</w>"), word))
            current = ""
    return tokens


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["semi-colon", "it's"], [("semi", 0), ("@-@", 0), ("colon", 0), ("it", 1), ("&apos;s", 1)]),
        (["R&D", "[sic]"], [("R", 0), ("&amp;", 0), ("D", 0), ("&#91;", 1), ("sic", 1), ("&#93;", 1)]),
        (["&apos;s", "@-@", "&amp;"], [("&apos;s", 0), ("-", 1), ("&amp;", 2)]),
        (["so…", "no"], [("so", 0), ("...", 0), ("no", 1)]),
        (
            ["„Haus“", ",", "»ja«"],
            [("&quot;", 0), ("Haus", 0), ("&quot;", 0), (",", 1), ("&quot;", 2), ("ja", 2), ("&quot;", 2)],
        ),
        (["１２", "％"], [("12", 0), ("%", 1)]),
        (["Mr.", "Mai", "left."], [("Mr.", 0), ("Mai", 1), ("left", 2), (".", 2)]),
        (["a\u200bb", "\u200b", "c"], [("ab", 0), ("c", 2)]),
    ],
)
def test_moses_tokens_keep_their_words(
    moses: MosesBpeCutter, words: list[str], expected: list[tuple[str, int]]
) -> None:
    assert moses_words(moses, *words) == expected


def test_lower_casing_that_changes_lengths(moses: MosesBpeCutter, load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load("fsmt").tokenizer, "do_lower_case", True)
    assert len("İİ".lower()) == 4
    assert [word for _, word in moses_words(moses, "İİ", "House")] == [0, 0, 0, 0, 1]


def test_both_vocabularies_of_fsmt(load: Load) -> None:
    model = load("fsmt")
    source, target = model.tokenizer.encoder, {piece: id_ for id_, piece in model.tokenizer.decoder.items()}
    encoded = model.encode_pair(Pair(0, ("the",), ("the",)))
    assert encoded.source == (source["the</w>"], source["</s>"])
    assert encoded.target == (target["the</w>"], target["</s>"])
    assert encoded.source != encoded.target


# Properties

ALPHABETS = ["abcdehostu", "我昨天北京", "１２é①㌔ﬁ", "😀𝒳", "'-&[…„", "▁ \u00a0\u200b\u3000"]
some_words = st.lists(
    st.sampled_from(
        ["the", "house", "walking", "12", "キロ", "semi-colon", "&apos;s", "-LRB-", "</s>", "<2de>", "</w>"]
    )
    | st.text(st.sampled_from("".join(ALPHABETS)), min_size=1, max_size=5),
    min_size=1,
    max_size=6,
)


@pytest.mark.parametrize("family", ["marian", "m2m_100", "nllb", "mt5", "madlad", "fsmt"])
@pytest.mark.parametrize("unspaced", [False, True])
@given(words=some_words)
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_piece_belongs_to_one_word_or_none_in_order(
    load: Load, family: str, unspaced: bool, words: list[str]
) -> None:
    target = load(family).tokens.target
    side = Side(joined if unspaced else target.write, target.cut, target.unknown, target.before, target.after)
    ids, word_of = side.encode(words)
    assert len(ids) == len(word_of)
    inner = word_of[len(target.before) : len(word_of) - len(target.after)]
    assert set(word_of) - set(inner) <= {NO_WORD}
    found = [word for word in inner if word != NO_WORD]
    assert found == sorted(found)
    assert set(found) <= set(range(len(words)))
    if side.write(words).characters == " ".join(map(restore, words)):
        # No piece is cut across a space, so a word that can be read has a piece.
        readable = {i for i, word in enumerate(map(restore, words)) if any(c.isascii() and c.isalnum() for c in word)}
        assert readable <= set(found)


@pytest.mark.parametrize("family", ["marian", "nllb", "mt5", "madlad"])
@given(words=st.lists(st.text("abcdehostu我昨天北京é😀㌔", min_size=1, max_size=6), min_size=1, max_size=6))
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_spaced_words_are_cut_as_if_alone(load: Load, family: str, words: list[str]) -> None:
    """The naive twin: SentencePiece never cuts across spaces, so words can be cut one by one."""
    target = load(family).tokens.target
    ids, word_of = Side(spaced, target.cut, target.unknown).encode(words)
    pieces = [
        (id_, piece, i)
        for i, word in enumerate(words)
        for id_, piece in zip(target.cut(word).ids, target.cut(word).spelling, strict=True)
    ]
    assert list(ids) == [id_ for id_, _, _ in pieces]
    assert list(word_of) == [NO_WORD if piece == "▁" else i for _, piece, i in pieces]


@pytest.mark.parametrize("family", ["marian", "mt5"])
@given(words=st.lists(st.text("abcdehostu我昨天北京é", min_size=1, max_size=4), min_size=1, max_size=6))
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_unspaced_words_are_found_by_counting_characters(load: Load, family: str, words: list[str]) -> None:
    """The naive twin: where normalisation changes nothing, pieces spell the text."""
    target = load(family).tokens.target
    _, word_of = Side(joined, target.cut, target.unknown).encode(words)
    text = joined(words)
    expected, position = [], 0
    for piece in target.cut(text.characters).spelling:
        votes: dict[int, int] = {}
        for character in piece:
            if character == "▁":
                position += text.characters[position : position + 1] == " "
            else:
                assert text.characters[position] == character
                votes[text.word_of[position]] = votes.get(text.word_of[position], 0) + 1
                position += 1
        expected.append(min(votes, key=lambda word: (-votes[word], word)) if votes else NO_WORD)
    assert list(word_of) == expected


@pytest.mark.parametrize("family", ["marian", "nllb", "mt5", "madlad"])
@given(words=st.lists(st.text("abc我昨天北京キロé😀㌔", min_size=1, max_size=4), min_size=1, max_size=6))
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_pieces_that_end_at_words(load: Load, family: str, words: list[str]) -> None:
    """The naive twin: each word as if alone, but with the mark of a beginning on the first and after Latin words."""
    target = load(family).tokens.target
    cut = target.cut
    others = cut.continued()
    expected: list[tuple[int, int]] = []
    for i, word in enumerate(words):
        spaced_off = i > 0 and words[i - 1][-1] in "abc" and word[0] in "abc"
        pieces = (cut if i == 0 or spaced_off else others)(word)
        expected += [
            (id_, NO_WORD if piece == "▁" else i) for id_, piece in zip(pieces.ids, pieces.spelling, strict=True)
        ]
    side = replace(target, write=joined, unspaced=True, ends=word_cutter(cut, True, "word"), before=(), after=())
    assert list(zip(*side.encode(words), strict=True)) == expected


@pytest.mark.parametrize("family", ["marian", "mt5", "madlad"])
def test_words_of_a_translation(load: Load, family: str) -> None:
    target = load(family).tokens.target
    assert target.words("the house 12") == ("the", "house", "12")
    unspaced = replace(target, write=joined, unspaced=True)
    text = "我昨天the house12 北京 é😀。"
    words = unspaced.words(text)
    assert "".join(words) == text.replace(" ", "")
    assert {"the", "house12"} <= set(words)
    assert len(words) > 5
    assert unspaced.words("") == ()
    pieces = unspaced.cut(text)
    for begin, end in pieces.spans:  # no piece lies across words, save those of Latin words
        assert any(text[begin:end].strip() in word for word in words)


def test_json_and_sentencepiece_agree(load: Load) -> None:
    words = ("the", "walking", "x㌔y", "ﬁsh", "我", "１２", "naïve")
    first, second = load("t5").tokens.target, load("mt5").tokens.target
    assert first.encode(words) == second.encode(words)
    bound = [
        replace(side, write=joined, unspaced=True, ends=word_cutter(side.cut, True, "word")) for side in (first, second)
    ]
    assert bound[0].encode(words) == bound[1].encode(words)


def test_pieces_that_the_model_lacks_are_unknown(tmp_path: Path) -> None:
    FAMILIES["m2m_100"](tmp_path)
    vocabulary = [*SPECIAL, "▁the"]
    write_json(tmp_path / "vocab.json", {piece: i for i, piece in enumerate(vocabulary)})
    model = load_huggingface(tmp_path, "en", "de")
    assert model.encode_pair(Pair(0, ("the", "house"), ("the",))).source[1:-1] == (4, 3)
