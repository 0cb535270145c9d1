"""Sentence pairs in."""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.bitext import Pair, read_bitext, read_joint, read_lengths, read_sentences, read_tsv, tokenize
from data.errors import DataError, UsageError

Write: TypeAlias = Callable[[str | bytes], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """A function that writes a text to a new file and gives its path."""
    names = map(str, itertools.count())

    def write(text: str | bytes) -> Path:
        path = tmp_path / next(names)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        (" \t ", []),
        ("das Haus", ["das", "Haus"]),
        ("  das\t\tHaus ", ["das", "Haus"]),
        ("10\u00a0000 a\u3000b \u200b", ["10\u00a0000", "a\u3000b", "\u200b"]),
        (
            "a\u2028b c\u0085d e\x0bf g\x0ch i\rj k\x1cl",
            ["a\u2028b", "c\u0085d", "e\x0bf", "g\x0ch", "i\rj", "k\x1cl"],
        ),
        ("我昨天在北京", ["我昨天在北京"]),
        ("&apos;s @-@ \ufe0f", ["&apos;s", "@-@", "\ufe0f"]),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert tokenize(text) == tuple(words)


@given(st.text())
def test_words_are_runs_without_space_and_tab(text: str) -> None:
    assert list(tokenize(text)) == re.findall(r"[^ \t]+", text)


def test_two_files(write: Write) -> None:
    source, target = write("das Haus\n\nja\n"), write("the house\nempty\n\n")
    assert list(read_bitext(source, target)) == [
        Pair(0, ("das", "Haus"), ("the", "house")),
        Pair(1, (), ("empty",)),
        Pair(2, ("ja",), ()),
    ]


def test_files_without_lines_have_no_pairs(write: Write) -> None:
    assert list(read_bitext(write(""), write(""))) == []
    assert list(read_joint(write(""))) == []
    assert list(read_tsv(write(""))) == []


@pytest.mark.parametrize("swap", [False, True])
def test_unequal_files(write: Write, swap: bool) -> None:
    longer, shorter = write("a\n" * 7), write("a\n" * 2)
    pairs = read_bitext(shorter, longer) if swap else read_bitext(longer, shorter)
    # Streaming: the error comes when it is met.
    assert [pair.id for pair in itertools.islice(pairs, 2)] == [0, 1]
    with pytest.raises(DataError, match=r"has 7 lines, .* has 2") as caught:
        next(pairs)
    assert (caught.value.path, caught.value.line) == (longer, 3)


def test_pairs_are_made_as_lines_come(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, encoding="ascii") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        pairs = read_joint("-")
        os.write(writing, b"das Haus ||| the house\n")
        assert next(pairs).target == ("the", "house")
        os.close(writing)
        assert list(pairs) == []


def test_standard_input_serves_one_side(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="more than one"):
        next(read_bitext("-", "-"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"das Haus\n")))
    assert list(read_bitext("-", write("the house\n"))) == [Pair(0, ("das", "Haus"), ("the", "house"))]


def test_windows_files_count_the_same_words(write: Write) -> None:
    windows = write("\ufeffdas Haus\r\n\r\n".encode()), write(b"the house\r\n\r\n")
    unix = write("das Haus\n\n"), write("the house\n\n")
    assert list(read_bitext(*windows)) == list(read_bitext(*unix))


def test_joint(write: Write) -> None:
    path = write("das Haus ||| the house\n\n ||| \n|||\tx\na||b ||| c\n")
    assert list(read_joint(path)) == [
        Pair(0, ("das", "Haus"), ("the", "house")),
        Pair(1, (), ()),
        Pair(2, (), ()),
        Pair(3, (), ("x",)),
        Pair(4, ("a||b",), ("c",)),
    ]


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("das Haus the house", 19, "no |||"),
        ("das Haus||| the house", 5, "glued"),
        ("das Haus |||the house", 10, "glued"),
        ("das|||the", 1, "glued"),
        ("a ||| b ||| c", 9, "second |||"),
        ("||| |||", 5, "second |||"),
        ("a || b", 7, "no |||"),
        ("a\u00a0|||\u00a0b", 1, "glued"),
    ],
)
def test_joint_refused(write: Write, text: str, column: int, message: str) -> None:
    path = write(f"a ||| b\n{text}\n")
    with pytest.raises(DataError, match=re.escape(message)) as caught:
        list(read_joint(path))
    assert (caught.value.path, caught.value.line, caught.value.column) == (path, 2, column)


def test_tsv(write: Write) -> None:
    path = write("das  Haus\tthe house\t0-0 1-1\n\nx\u00a0y\t\n")
    assert list(read_tsv(path)) == [
        Pair(0, ("das", "Haus"), ("the", "house")),
        Pair(1, (), ()),
        Pair(2, ("x\u00a0y",), ()),
    ]
    assert next(read_tsv(path, columns=(3, 1))) == Pair(0, ("0-0", "1-1"), ("das", "Haus"))


def test_tsv_refused(write: Write) -> None:
    with pytest.raises(DataError, match="1 column where column 2") as caught:
        list(read_tsv(write("a\tb\nonly\n")))
    assert (caught.value.line, caught.value.column) == (2, 5)
    with pytest.raises(UsageError, match="from 1"):
        next(read_tsv("-", columns=(0, 1)))


@given(st.binary().filter(lambda raw: not raw.startswith(b"\xef\xbb\xbf")))
@settings(deadline=None)
def test_any_bytes_are_pairs_or_a_data_error(raw: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "text")
        path.write_bytes(raw)
        for read in (read_joint, read_tsv, lambda path: read_bitext(path, path), read_sentences):
            with contextlib.suppress(DataError):
                assert len(list(read(path))) == raw.count(b"\n") + (not raw.endswith(b"\n") and raw != b"")


def test_marked_sentences(write: Write) -> None:
    marked = write("<s snum=0018> they  had gone . </s>\n<s snum=3></s>\n")
    assert list(read_sentences(marked)) == [(18, ("they", "had", "gone", ".")), (3, ())]
    plain = write("they had\n\n<s snum=18> gone </s>\n")
    assert list(read_sentences(plain)) == [
        (1, ("they", "had")),
        (2, ()),
        (3, ("<s", "snum=18>", "gone", "</s>")),
    ]
    with pytest.raises(DataError, match="first line") as caught:
        list(read_sentences(write("<s snum=1> a </s>\nb\n")))
    assert caught.value.line == 2


def test_lengths(write: Write) -> None:
    source, target = write("<s snum=7> a b </s>\n"), write("<s snum=7> c </s>\n")
    assert list(read_lengths(source, target)) == [(7, (2, 1))]
    with pytest.raises(DataError, match=r"sentence id 7, in .* it is 1"):
        list(read_lengths(source, write("c\n")))
    with pytest.raises(DataError, match=r"has 1 lines, .* has 0"):
        list(read_lengths(source, write("")))
