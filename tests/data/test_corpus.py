"""Corpora of many files: JSONL, Parquet, TMX and text, numbered through."""

from __future__ import annotations

import contextlib
import gzip
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.bitext import Pair
from data.corpus import Corpus, read_jsonl, read_parquet, read_tmx
from data.errors import DataError, UsageError

WORDS = st.lists(st.text(st.characters(exclude_characters=" \t\n", exclude_categories=["Cs"]), min_size=1), max_size=4)


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_many_files_are_numbered_through(tmp_path: Path) -> None:
    source = (write(tmp_path / "s1", "das Haus\n\n"), write(tmp_path / "s2", "ja\n"))
    target = (write(tmp_path / "t1", "the house\n\n"), write(tmp_path / "t2", "yes\n"))
    joint = (write(tmp_path / "joint", "alt ||| old\n"),)
    tsv = (write(tmp_path / "tsv", "0\tneu\tnew\n"),)
    (tmp_path / "more.jsonl.gz").write_bytes(gzip.compress(b'{"src": ["weit"], "tgt": "far away"}\n'))
    corpus = Corpus(source, target, joint, tsv, (2, 3), (str(tmp_path / "more.jsonl.gz"),))
    assert list(corpus.pairs()) == [
        Pair(0, ("das", "Haus"), ("the", "house")),
        Pair(1, (), ()),
        Pair(2, ("ja",), ("yes",)),
        Pair(3, ("alt",), ("old",)),
        Pair(4, ("neu",), ("new",)),
        Pair(5, ("weit",), ("far", "away")),
    ]
    assert [*corpus.paths] == ["source 1", "source 2", "target 1", "target 2", "joint 1", "tsv 1", "files 1"]
    assert [*corpus.paths.values()] == [*source, *target, *joint, *tsv, *corpus.files]


def test_raw_text_is_tokenised_without_escapes(tmp_path: Path) -> None:
    pytest.importorskip("sacremoses", reason="needs the extra hf")
    joint = (write(tmp_path / "joint", "Das ist's & gut. ||| That's [good] & |so|.\n |||\n"),)
    assert list(Corpus(joint=joint, tokenize=("de", "en")).pairs()) == [
        Pair(0, ("Das", "ist", "'", "s", "&", "gut", "."), ("That", "'s", "[", "good", "]", "&", "|", "so", "|", ".")),
        Pair(1, (), ()),
    ]


@pytest.mark.parametrize(
    ("corpus", "message"),
    [
        (Corpus(), "no text"),
        (Corpus(("a", "b"), ("c",)), "2 source files, but 1 target"),
        (Corpus(files=("x.docx",)), "what is it"),
        (Corpus(files=("x.tmx",)), "--languages"),
        (Corpus(joint=("-",), tsv=("-",)), "more than one"),
    ],
)
def test_corpora_that_make_no_sense(corpus: Corpus, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        list(corpus.pairs())


@given(st.lists(st.tuples(WORDS, WORDS)))
@settings(deadline=None)
def test_jsonl_comes_back_as_written(pairs: list[tuple[list[str], list[str]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        text = "".join(json.dumps({"a": {"de": s}, "en": t}) + "\n" for s, t in pairs)
        path = write(Path(folder, "x.jsonl"), text)
        found = list(read_jsonl(path, ("a.de", "en")))
    assert found == [Pair(n, tuple(s), tuple(t)) for n, (s, t) in enumerate(pairs)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "no field 'src'"),
        ('{"src": "a"}', "no field 'tgt'"),
        ('{"src": "a", "src": "b", "tgt": "c"}', "twice"),
        ('{"src": NaN, "tgt": "c"}', "NaN is not"),
        ('{"src": 1, "tgt": "c"}', "neither a list of words nor a string"),
        ('{"src": ["a", 1], "tgt": "c"}', "neither a list of words nor a string"),
        ('{"src": ["a b"], "tgt": "c"}', "'a b' in field 'src' is not a word"),
        ('{"src": ["a"], "tgt": [""]}', "'' in field 'tgt' is not a word"),
        ('{"src": ["\\ud800"], "tgt": "c"}', "is not a word"),
        ('{"src": "\\ud800", "tgt": "c"}', "is not a word"),
    ],
)
def test_malformed_jsonl_is_located(tmp_path: Path, line: str, message: str) -> None:
    path = write(tmp_path / "x.jsonl", '{"src": "a", "tgt": "b"}\n' + line + "\n")
    with pytest.raises(DataError, match=message) as caught:
        list(read_jsonl(path))
    assert (caught.value.path, caught.value.line) == (path, 2)


@given(st.text())
@settings(deadline=None)
def test_any_text_is_jsonl_or_a_data_error(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.jsonl")
        path.write_text(text, encoding="utf-8", errors="surrogatepass", newline="\n")
        with contextlib.suppress(DataError):
            assert len(list(read_jsonl(str(path)))) <= text.count("\n") + 1


def test_parquet(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs the extra parquet")
    import pyarrow

    rows = [{"id": n, "src": ["das", "Haus"] if n else [], "pair": {"en": "the house"}} for n in range(2500)]
    path = str(tmp_path / "x.parquet")
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    found = list(read_parquet(path, ("src", "pair.en")))
    assert [pair.id for pair in found] == list(range(2500))
    assert found[0] == Pair(0, (), ("the", "house"))
    assert found[2499] == Pair(2499, ("das", "Haus"), ("the", "house"))
    with pytest.raises(DataError, match="no field 'tgt'"):
        list(read_parquet(path))
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        list(read_parquet(write(tmp_path / "y.parquet", "text")))


UNIT = '<tu><tuv xml:lang="{}"><seg>{}</seg></tuv><tuv xml:lang="{}"><seg>{}</seg></tuv></tu>'


def tmx(tmp_path: Path, *units: str, head: str = "") -> list[Pair]:
    text = f'<?xml version="1.0"?>{head}<tmx version="1.4"><header/><body>{"".join(units)}</body></tmx>'
    return list(read_tmx(write(tmp_path / "x.tmx", text), ("de", "en")))


def test_tmx(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("lxml", reason="needs the extra tmx")
    found = tmx(
        tmp_path,
        UNIT.format("en-GB", "the &lt;house&gt;", "de", "das\nHaus"),
        UNIT.format("fr", "la maison", "de", "das Haus"),
        UNIT.format("DE", '<bpt i="1">{\\b </bpt>alt<ept i="1">}</ept>', "en", "<hi>old</hi>&#160;one<!-- no -->"),
        '<tu><tuv lang="de"><seg/></tuv><tuv lang="en"><seg>x</seg></tuv></tu>',
    )
    assert found == [
        Pair(0, ("das", "Haus"), ("the", "<house>")),
        Pair(1, ("alt",), ("old\u00a0one",)),
        Pair(2, (), ("x",)),
    ]
    assert "1 units without de or en" in caplog.text


def test_hostile_tmx_reads_nothing_else(tmp_path: Path) -> None:
    pytest.importorskip("lxml", reason="needs the extra tmx")
    secret = write(tmp_path / "secret", "canary")
    unit = UNIT.format("de", "&x;", "en", "x")
    for entity in (f'SYSTEM "file://{secret}"', '"canary"'):
        with pytest.raises(DataError, match=r"entity '&x;'|not well-formed"):
            tmx(tmp_path, unit, head=f"<!DOCTYPE tmx [<!ENTITY x {entity}>]>")
    with pytest.raises(DataError, match="not well-formed"):
        tmx(tmp_path, UNIT.format("de", "a" * 11_000_000, "en", "x"))
    with pytest.raises(DataError, match="not well-formed"):
        tmx(tmp_path, "<tu>")
    with pytest.raises(DataError, match="not well-formed"):
        list(read_tmx(write(tmp_path / "y.tmx", ""), ("de", "en")))


def test_tmx_in_constant_memory(tmp_path: Path) -> None:
    pytest.importorskip("lxml", reason="needs the extra tmx")
    import resource

    tmx(tmp_path, UNIT.format("de", "a", "en", "b"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    path = tmp_path / "x.tmx"
    unit = UNIT.format("de", "das Haus " * 90, "en", "the house " * 90)
    with open(path, "w") as out:
        out.write("<tmx><body>")
        out.writelines(unit for _ in range(15_000))
        out.write("</body></tmx>")
    count = sum(1 for _ in read_tmx(str(path), ("de", "en")))
    assert count == 15_000
    assert path.stat().st_size > 25_000_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000  # KiB
