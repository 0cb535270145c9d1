"""Words as running text: spaces as people write them, and the word of every character."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("sacremoses")

from align.models.subwords import NO_WORD
from align.models.text import (
    Text,
    base_language,
    detokenized,
    joined,
    matching_spans,
    restore,
    spaced,
    text_writer,
    unescaped,
)

ODD = [
    "house",
    ",",
    ".",
    "(",
    ")",
    "-LRB-",
    "``",
    "''",
    '"',
    "'s",
    "n't",
    "$",
    "%",
    "&apos;",
    "@-@",
    "北京",
    "我",
    "３",
    "l'",
]
words = st.lists(st.sampled_from(ODD) | st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4))


def words_of(text: Text, count: int) -> list[str]:
    """The characters of each word, in order."""
    found = [""] * count
    for character, word in zip(text.characters, text.word_of, strict=True):
        if word != NO_WORD:
            found[word] += character
    return found


@pytest.mark.parametrize("write", [spaced, joined, lambda w: detokenized(w, "en"), lambda w: detokenized(w, "fr")])
@given(words=words)
@settings(deadline=None)
def test_every_character_of_a_word_stays_with_it(write, words: list[str]) -> None:
    text = write(words)
    kept = ["".join(word.split()) for word in words_of(text, len(words))]
    assert kept == ["".join(restore(word).split()) for word in words]
    order = [word for word in text.word_of if word != NO_WORD]
    assert order == sorted(order)
    between = [c for c, word in zip(text.characters, text.word_of, strict=True) if word == NO_WORD]
    assert all(c.isspace() for c in between)


@pytest.mark.parametrize(
    ("tokens", "language", "expected"),
    [
        ("The reporter , Mr. Mai -LRB- 32 -RRB- , said : `` no '' .", "en", 'The reporter, Mr. Mai (32), said: "no".'),
        ("Indonesia 's $ 5 , 30 % of it", "en", "Indonesia's $5, 30% of it"),
        ("qu' il a dit &quot; oui &quot;", "fr", 'qu\'il a dit "oui"'),
        ("semi @-@ colon &amp; more &#91; sic &#93;", "en", "semi-colon & more [sic]"),
        ("我 昨天 came", "", "我昨天 came"),
    ],
)
def test_detokenized(tokens: str, language: str, expected: str) -> None:
    assert detokenized(tokens.split(" "), language).characters == expected


def test_the_words_of_detokenized_characters() -> None:
    text = detokenized(["(", "we", "'ll", ")", "."], "en")
    assert text == Text("(we'll).", (0, 1, 1, 2, 2, 2, 3, 4))


def test_unspaced_text_keeps_latin_words_apart() -> None:
    words = ["我", "用", "Windows", "10", "，", "USA", "Today", "。"]
    text = joined(words)
    assert text.characters == "我用Windows 10，USA Today。"
    assert words_of(text, len(words)) == words


def test_a_prompt_belongs_to_no_word() -> None:
    assert spaced(["a", "b"]).after("to: ") == Text("to: a b", (-1, -1, -1, -1, 0, -1, 1))


def test_writers_by_language() -> None:
    words = ["我", "昨天", "来"]
    assert text_writer("zh_CN", unspaced=True)(words).characters == "我昨天来"
    assert text_writer("zh_CN", unspaced=False)(words).characters == "我 昨天 来"
    assert text_writer("eng_Latn", unspaced=False)(["it", "'s", "!"]).characters == "it's!"
    assert text_writer(None, unspaced=False)(["it", "'s", "!"]).characters == "it 's!"


@pytest.mark.parametrize(
    ("code", "language"),
    [("pt_BR", "pt"), ("eng_Latn", "en"), ("zho_Hans", "zho"), ("cmn-Hant", "cmn"), ("EN", "en"), (None, "")],
)
def test_base_language(code: str | None, language: str) -> None:
    assert base_language(code) == language


@pytest.mark.parametrize(
    ("token", "plain", "index"),
    [
        ("&apos;s", "'s", [0, 0, 0, 0, 0, 0, 1]),
        ("@-@", "-", [0, 0, 0]),
        ("&amp;amp;", "&amp;", [0, 0, 0, 0, 0, 1, 2, 3, 4]),
        ("a&b;", "a&b;", [0, 1, 2, 3]),
        ("", "", []),
    ],
)
def test_unescaped(token: str, plain: str, index: list[int]) -> None:
    assert unescaped(token) == (plain, index)


@pytest.mark.parametrize(
    ("text", "changed", "expected"),
    [
        ("a b", "ab", [(0, 1), (2, 3)]),
        ("so… no", "so...no", [(0, 1), (1, 2), (2, 3), (2, 3), (2, 3), (4, 5), (5, 6)]),
        ("„a“ b", '"a"b', [(0, 1), (1, 2), (2, 3), (4, 5)]),
        ("a\u200bb", "ab", [(0, 1), (2, 3)]),
        ("a b", "a-b", [(0, 1), (2, 2), (2, 3)]),
        ("12 ％… no", "12%...no", [(0, 1), (1, 2), (3, 4), (3, 4), (4, 5), (4, 5), (6, 7), (7, 8)]),
        ("１２ ％", "12%", [(0, 1), (1, 2), (3, 4)]),
        ("ab c abc", "abcabc", [(0, 1), (1, 2), (3, 4), (5, 6), (6, 7), (7, 8)]),
    ],
)
def test_matching_spans(text: str, changed: str, expected: list[tuple[int, int]]) -> None:
    assert matching_spans(text, changed) == expected


@given(st.text("ab -\u00a0", max_size=12), st.text("abx-", max_size=12))
@settings(deadline=None)
def test_matching_spans_are_in_order(text: str, changed: str) -> None:
    spans = matching_spans(text, changed)
    assert len(spans) == len(changed)
    flat = [end for span in spans for end in span]
    assert all(0 <= begin <= end <= len(text) for begin, end in spans)
    assert all(first <= second for first, second in zip(flat[::2], flat[2::2], strict=False))
    assert all(first <= second for first, second in zip(flat[1::2], flat[3::2], strict=False))
