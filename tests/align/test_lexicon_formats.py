"""Lexicon files: what is written is what the readers of each format expect."""

from __future__ import annotations

import csv
import json
import re
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from align.lexicon import NULL, Entry, Lexicon, MemoryTable, count, linked_words
from align.lexicon_eflomal import Priors
from align.lexicon_examples import examples_on_disk
from align.lexicon_formats import FORMATS, SIGNATURE, TEXT_FORMATS, Style, format_of, output_paths, write_lexicon
from align.lexicon_input import UNIT, LinkedPair
from align.lexicon_readers import read_entries, read_examples, read_moses, read_muse, read_translations
from data.bitext import Pair
from data.errors import DataError, UsageError
from tests.align.linked import linked_pairs

F = r"-?(?:0|[1-9][0-9]{0,8})(?:\.[0-9]{1,17})?(?:[eE][-+]?[0-9]{1,3})?"
MOSES_ROW = re.compile(rf"([^ \t]+) ([^ \t]+) ({F})")
EFLOMAL_ROW = re.compile(rf"LEX\t[^\t]+\t[^\t]+\t{F}|FER[FR]\t[^\t]+\t[0-9]{{1,4}}\t{F}|HMM[FR]\t-?[0-9]{{1,5}}\t{F}")

ODD = [
    "|",
    "=cmd()",
    "-1",
    "\u2028",
    "\x85",
    "a\u00a0b",
    "\r",
    "x\ry",
    "\x0b",
    "\x00",
    '"',
    ",",
    "NULL",
    "<NULL>",
    "\ufeffx",
]
WORDS = st.sampled_from(ODD) | st.text(
    st.characters(exclude_characters=" \t\n", exclude_categories=["Cs"]), min_size=1, max_size=4
)


@st.composite
def lexicons(draw: st.DrawFn) -> list[Entry]:
    """Entries counted from random links, so that their counts agree."""
    table = MemoryTable()
    key = st.tuples(WORDS | st.just(NULL), WORDS | st.just(NULL)).filter(lambda key: key != (NULL, NULL))
    weight = st.integers(1, 5).map(lambda n: n * UNIT) | st.integers(1, 10 * UNIT)
    table.add(draw(st.dictionaries(key, weight, max_size=12)))
    return list(table.lexicon().entries)


def written(entries: list[Entry], form: str, folder: Path, style: Style | None = None) -> list[Path]:
    total = sum(entry.count for entry in entries)
    measures = ("llr", "llr_p_value", "dice", "pmi") if form in ("tsv", "jsonl", "parquet", "csv") else ()
    path = folder / "lexicon"
    write_lexicon(Lexicon(entries, total, measures), str(path), form, style)
    return [Path(name) for name in output_paths(str(path), form)]


def rows(path: Path) -> list[str]:
    """The lines of a file, cut at \\n only."""
    text = path.read_bytes().decode()
    assert text.endswith("\n") or not text
    return text.split("\n")[:-1]


@pytest.mark.parametrize("form", ["tsv", "jsonl", "parquet"])
def test_what_is_written_is_read_back(form: str) -> None:
    if form == "parquet":
        pytest.importorskip("pyarrow", reason="the extra parquet is not installed")

    @given(lexicons())
    @settings(deadline=None, max_examples=20 if form == "parquet" else 40)
    def round_trip(entries: list[Entry]) -> None:
        with TemporaryDirectory() as folder:
            (path,) = written(entries, form, Path(folder))
            assert list(read_entries(str(path), form)) == entries

    round_trip()


@given(lexicons())
@settings(deadline=None, max_examples=40)
def test_moses_rows_and_their_sums(entries: list[Entry]) -> None:
    """Both tables have the rows of the format, and the probabilities of a condition sum to 1 unless rows went."""
    with TemporaryDirectory() as folder:
        f2e, e2f = written(entries, "moses", Path(folder))
        expected = {
            entry.key: entry for entry in entries if not any(re.search("[\r\v\f]|^NULL$|^\ufeff", w) for w in entry.key)
        }
        for path, turned in ((f2e, True), (e2f, False)):
            sums: defaultdict[str, float] = defaultdict(float)
            found = {}
            for row in rows(path):
                match = MOSES_ROW.fullmatch(row)
                assert match
                assert "|" not in row
                sums[match[2]] += float(match[3])
            if len(expected) == len(entries):
                assert all(abs(total - 1) < 1e-4 for total in sums.values())
            for first, second, p in read_moses(str(path)):
                found[(second, first) if turned else (first, second)] = p
            assert found == {
                key: pytest.approx(e.p_target_given_source if turned else e.p_source_given_target, abs=1e-7)
                for key, e in expected.items()
            }


@given(lexicons())
@settings(deadline=None, max_examples=40)
def test_marian_rows_are_those_of_f2e_without_null(entries: list[Entry]) -> None:
    with TemporaryDirectory() as folder:
        (path,) = written(entries, "marian", Path(folder))
        f2e = written(entries, "moses", Path(folder))[0]
        unescaped = [row.replace("&#124;", "|") for row in rows(f2e)]
        assert rows(path) == [row for row in unescaped if "NULL" not in row.split(" ")[:2]]


@given(lexicons())
@settings(deadline=None, max_examples=40)
def test_muse_pairs(entries: list[Entry]) -> None:
    with TemporaryDirectory() as folder:
        (path,) = written(entries, "muse", Path(folder))
        lines = path.read_bytes().decode().split("\n")[:-1]
        assert all(len(line.split()) == 2 for line in lines)  # as MUSE's reader splits
        unfit = re.compile(r"\s|^\ufeff|^$")
        kept = [entry.key for entry in entries if not any(unfit.search(word) for word in entry.key)]
        assert list(read_muse(str(path))) == kept


@given(lexicons())
@settings(deadline=None, max_examples=40)
def test_eflomal_rows(entries: list[Entry]) -> None:
    with TemporaryDirectory() as folder:
        (path,) = written(entries, "eflomal", Path(folder), Style(priors=["HMMF\t-2\t3\n"]))
        with open(path, encoding="utf-8") as file:  # as eflomal opens it: \r ends a line too
            lines = [line.rstrip("\n") for line in file]
        assert lines[-1] == "HMMF\t-2\t3"
        assert all(EFLOMAL_ROW.fullmatch(line) for line in lines)
        kept = [e for e in entries if NULL not in e.key and not any("\r" in w or w == "<NULL>" for w in e.key)]
        fields = [line.split("\t") for line in lines[:-1]]
        assert [(f[1], f[2], float(f[3])) for f in fields] == [(*e.key, e.count) for e in kept]


@given(lexicons(), st.booleans())
@settings(deadline=None, max_examples=40)
def test_csv_is_read_by_the_csv_module(entries: list[Entry], quote: bool) -> None:
    with TemporaryDirectory() as folder:
        (path,) = written(entries, "csv", Path(folder), Style(quote_formulas=quote))
        with open(path, encoding="utf-8", newline="") as file:
            names, *cells = csv.reader(file)
        assert names[:3] == ["source", "target", "count"]
        kept = [entry for entry in entries if NULL not in entry.key]
        for row, entry in zip(cells, kept, strict=True):
            for cell, word in zip(row[:2], entry.key, strict=True):
                quoted = quote and word[0] in "=+-@\r" and not re.fullmatch(F, word)
                assert cell == ("'" + word if quoted else word)
            assert float(row[2]) == entry.count


@given(lexicons())
@settings(deadline=None, max_examples=40)
def test_tbx_terms(entries: list[Entry]) -> None:
    with TemporaryDirectory() as folder:
        (path,) = written(entries, "tbx", Path(folder), Style("a&b", ("de", "en")))
        root = ET.parse(path).getroot()  # noqa: S314
    ns = "{urn:iso:std:iso:30042:ed-2}"
    assert (root.tag, root.attrib["type"], root.attrib["style"]) == (f"{ns}tbx", "TBX-Core", "dca")
    assert root.findtext(f".//{ns}sourceDesc/{ns}p") == "a&b"
    terms = []
    for concept in root.iter(f"{ns}conceptEntry"):
        sections = concept.findall(f"{ns}langSec")
        assert [section.attrib["{http://www.w3.org/XML/1998/namespace}lang"] for section in sections] == ["de", "en"]
        terms.append(tuple(section.findtext(f"{ns}termSec/{ns}term") for section in sections))
    unfit = re.compile("[\x00-\x1f\ufffe\uffff]")
    assert terms == [e.key for e in entries if NULL not in e.key and not any(unfit.search(w) for w in e.key)]
    ids = [concept.attrib["id"] for concept in root.iter(f"{ns}conceptEntry")]
    assert len(set(ids)) == len(ids)


ENTRIES = [
    Entry(NULL, "the", 1, 1, 3),
    Entry("Haus", NULL, 0.5, 3.5, 0.5),
    Entry("Haus", "house", 2, 3.5, 2),
    Entry("Haus", "the", 1, 3.5, 3),
    Entry("das", "the", 1, 1, 3),
]
PAIR = LinkedPair(Pair(6, ("das", "Haus"), ("the", "house")), {(1, 1): UNIT, (0, 0): UNIT})


@contextmanager
def with_examples(number: dict[int, int]) -> Iterator[Lexicon]:
    """`ENTRIES`, some of them with as many copies of `PAIR`."""
    with examples_on_disk(2) as examples:
        entries = []
        for k, entry in enumerate(ENTRIES):
            places: list[int] = []
            for _ in examples.watch([PAIR] * number.get(k, 0)):
                examples.note(places)
            entries.append(replace(entry, places=tuple(places)))
        yield Lexicon(entries, 6, ("dice",), examples)


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (
            "tsv",
            "source\ttarget\tcount\tsource_count\ttarget_count\tp_target_given_source\tp_source_given_target\n"
            "\tthe\t1\t1\t3\t1.0\t0.3333333\nHaus\t\t0.5\t3.5\t0.5\t0.1428571\t1.0\nHaus\thouse\t2\t3.5\t2\t0.5714286\t1.0\n"
            "Haus\tthe\t1\t3.5\t3\t0.2857143\t0.3333333\ndas\tthe\t1\t1\t3\t1.0\t0.3333333\n",
        ),
        ("marian", "house Haus 0.5714286\nthe Haus 0.2857143\nthe das 1.0000000\n"),
        ("muse", "Haus house\nHaus the\ndas the\n"),
        ("eflomal", "LEX\tHaus\thouse\t2\nLEX\tHaus\tthe\t1\nLEX\tdas\tthe\t1\n"),
    ],
)
def test_example_files(tmp_path: Path, form: str, expected: str) -> None:
    path = tmp_path / "out"
    write_lexicon(Lexicon(ENTRIES, 6), str(path), form)
    assert path.read_text() == expected


def test_moses_files(tmp_path: Path) -> None:
    f2e, e2f = written(ENTRIES, "moses", tmp_path)
    assert (f2e.name, e2f.name) == ("lexicon.f2e", "lexicon.e2f")
    assert rows(f2e)[:3] == ["the NULL 1.0000000", "NULL Haus 0.1428571", "house Haus 0.5714286"]
    assert rows(e2f)[:3] == ["NULL the 0.3333333", "Haus NULL 1.0000000", "Haus house 1.0000000"]


def test_examples_in_tsv_and_jsonl(tmp_path: Path) -> None:
    with with_examples({2: 2, 4: 1}) as lexicon:
        write_lexicon(lexicon, str(tmp_path / "tsv"), "tsv")
        write_lexicon(lexicon, str(tmp_path / "jsonl"), "jsonl")
    cells = [row.split("\t")[8:] for row in rows(tmp_path / "tsv")]
    text = "das Haus ||| the house"
    assert cells == [["example_1", "example_2"], ["", ""], ["", ""], [text, text], ["", ""], [text, ""]]
    assert list(read_entries(str(tmp_path / "tsv"), "tsv")) == ENTRIES
    objects = [json.loads(row) for row in rows(tmp_path / "jsonl")]
    assert objects[2]["examples"][0] == {
        "line": 7, "source": ["das", "Haus"], "target": ["the", "house"], "links": [[0, 0], [1, 1]]
    }  # fmt: skip
    assert (objects[0]["source"], objects[0]["examples"], objects[2]["count"]) == (None, [], 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"links": [[0, 2]]}, "link outside its sentence pair"),
        ({"links": [[0]]}, "an example needs line"),
        ({"links": [[0, "0"]]}, "no numbers"),
        ({"line": -1}, "no numbers"),
        ({"source": [1, "b"]}, "no text"),
        ({"target": None}, "an example needs line"),
    ],
)
def test_examples_are_read_back_or_refused(tmp_path: Path, change: dict[str, object], message: str) -> None:
    path = str(tmp_path / "jsonl")
    with with_examples({2: 2, 4: 1}) as lexicon:
        write_lexicon(lexicon, path, "jsonl")
        expected = [(entry.key, lexicon.examples_of(entry)) for entry in lexicon.entries]
    assert [(entry.key, found) for entry, found in read_examples(path)] == expected
    objects = [json.loads(row) for row in rows(tmp_path / "jsonl")]
    objects[2]["examples"][1].update(change)
    (tmp_path / "jsonl").write_text("\n".join(map(json.dumps, objects)))
    with pytest.raises(DataError, match=f"jsonl:3: .*{message}"):
        list(read_examples(path))


def test_parquet_columns_and_signature(tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet", reason="the extra parquet is not installed")
    path = tmp_path / "out.parquet"
    with with_examples({4: 1}) as lexicon:
        write_lexicon(lexicon, str(path), "parquet", Style("links:gold"))
    table = pq.read_table(path)
    assert table.schema.metadata[SIGNATURE.encode()] == b"links:gold"
    assert table.column("source").to_pylist() == [None, "Haus", "Haus", "Haus", "das"]
    assert table.column("examples").to_pylist()[4][0]["links"] == [[0, 0], [1, 1]]
    assert table.column("dice").to_pylist()[2] == pytest.approx(2 * 2 / 5.5)


def test_entries_that_a_format_cannot_hold_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    entries = [Entry("NULL", "x", 1, 2, 1), Entry("NULL", "y\r", 1, 2, 1), Entry("a b", "z", 1, 1, 1)]
    write_lexicon(Lexicon(entries, 3), str(tmp_path / "out"), "marian")
    assert (tmp_path / "out").read_text() == ""
    assert [record.getMessage() for record in caplog.records] == [
        "note: 3 entries left out: marian cannot hold a word such as 'a b'"
    ]


def test_nothing_counted_is_an_empty_lexicon(tmp_path: Path) -> None:
    for form in sorted(TEXT_FORMATS):
        paths = written([], form, tmp_path, Style(languages=("de", "en")))
        assert all(path.is_file() for path in paths)
    assert (tmp_path / "lexicon.f2e").read_text() == ""


def test_no_file_is_partial(tmp_path: Path) -> None:
    class BrokenError(Exception):
        pass

    def entries() -> chain[Entry]:
        def stop() -> Entry:
            raise BrokenError

        return chain(ENTRIES, iter(stop, None))

    for form in sorted(TEXT_FORMATS):
        with pytest.raises(BrokenError):
            write_lexicon(Lexicon(entries(), 6), str(tmp_path / "out"), form, Style(languages=("de", "en")))
    assert list(tmp_path.iterdir()) == []


def test_formats_by_name() -> None:
    assert [format_of(name) for name in ("a.tsv", "a.jsonl.gz", "a.PARQUET", "a.csv", "-", "lex")] == [
        "tsv", "jsonl", "parquet", "csv", "tsv", "tsv"
    ]  # fmt: skip
    assert set(FORMATS) == {*TEXT_FORMATS, "parquet"}
    with pytest.raises(UsageError, match="did you mean 'moses'"):
        output_paths("x", "mosess")
    with pytest.raises(UsageError, match="give -o PREFIX"):
        output_paths("-", "moses")


HEADER = "source\ttarget\tcount\tsource_count\ttarget_count\n"
OBJECT = {"source": "a", "target": "b", "count": 1, "source_count": 1, "target_count": 1}


@pytest.mark.parametrize(
    ("form", "text", "message"),
    [
        ("tsv", "a\tb\t1\t1\t1\n", ":1:1: .* expected the column names source, target, count"),
        ("tsv", HEADER + "a\tb\t1\t1\n", ":2: 4 columns, the first line has 5"),
        ("tsv", HEADER + "a\tb\tx\t1\t1\n", ":2: count 'x' is not a number"),
        ("tsv", HEADER + "a\tb\t2\t1\t2\n", ":2: counts 2, 1, 2"),
        ("tsv", HEADER + "a\tb\t0\t1\t2\n", ":2: counts 0, 1, 2"),
        ("tsv", HEADER + "\t\t1\t1\t1\n", ":2: neither a source nor a target word"),
        ("jsonl", "{\n", ":1: not the JSON of a lexicon entry"),
        ("jsonl", "[" * 100_000, ":1: not the JSON of a lexicon entry"),
        ("jsonl", "[]\n", ":1: expected an object with source, target"),
        ("jsonl", json.dumps({**OBJECT, "count": True}), "must be numbers"),
        ("jsonl", json.dumps({**OBJECT, "count": "1"}), "must be numbers"),
        ("jsonl", json.dumps({**OBJECT, "count": float("nan")}), "NaN is not a number"),
        ("jsonl", json.dumps({**OBJECT, "source_count": 10**400}), "must be numbers"),
        ("jsonl", json.dumps({**OBJECT, "source": 1}), "source and target must be words"),
        ("jsonl", json.dumps({**OBJECT, "source": ""}), "source and target must be words"),
        ("jsonl", json.dumps({**OBJECT, "source": "a\tb"}), "source and target must be words"),
        ("jsonl", json.dumps({**OBJECT, "source": "\ud800"}), "source and target must be words"),
        ("jsonl", json.dumps({**OBJECT, "source": "a\n"}), "source and target must be words"),
        ("jsonl", '{"source": "a", "source": "b"}', "a key is given twice"),
        ("jsonl", json.dumps({**OBJECT, "source": None, "target": None}), "neither"),
        ("moses", "a b 0.5 \n", ":1: .* expected `word word probability`"),
        ("moses", "a b 1.5\n", ":1: .* expected `word word probability`"),
        ("moses", "a b nan\n", ":1: .* expected `word word probability`"),
        ("moses", "a b 0.6\nc b 0.5\n", ":2: the probabilities given 'b' sum to more than 1"),
        ("muse", "a b\na\n", ":2: 1 words, expected `source target`"),
        ("muse", "a b c\n", ":1: 3 words, expected `source target`"),
    ],
)
def test_malformed_files(tmp_path: Path, form: str, text: str, message: str) -> None:
    path = tmp_path / "in"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        read_translations(str(path), form)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"not parquet at all"])
def test_malformed_parquet(tmp_path: Path, content: bytes) -> None:
    pytest.importorskip("pyarrow", reason="the extra parquet is not installed")
    path = tmp_path / "in.parquet"
    path.write_bytes(content)
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        list(read_entries(str(path), "parquet"))


def test_parquet_without_counts(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="the extra parquet is not installed")
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"source": ["a"], "target": ["b"]}), path)
    with pytest.raises(DataError, match="no column count"):
        list(read_entries(str(path), "parquet"))


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("tsv", HEADER + "Haus\thome\t1\t4\t1\nHaus\thouse\t2\t4\t2\nhaus\thome\t2\t4\t3\nHaus\t\t1\t4\t1\n"),
        ("moses", "home Haus 0.2\nhouse Haus 0.4\nhome haus 0.3\nNULL Haus 0.1\n"),
        ("muse", "Haus house\nHaus\thome\n\nhaus home\n"),
    ],
)
def test_translations_from_best_to_worst(tmp_path: Path, form: str, text: str) -> None:
    path = tmp_path / "in"
    path.write_text(text)
    assert read_translations(str(path), form) == {"Haus": ["house", "home"], "haus": ["home"]}
    best = ["house", "home"] if form == "muse" else ["home", "house"]
    assert read_translations(str(path), form, lowercase=True) == {"haus": best}


def test_unknown_formats_to_read() -> None:
    with pytest.raises(UsageError, match="unknown lexicon format to read 'csv'"):
        read_translations("x", "csv")
    with pytest.raises(UsageError, match="unknown lexicon format with counts 'muse'"):
        read_entries("x", "muse")


# What eflomal's priors hold beside the lexicon.


def naive_jumps(links: list[tuple[int, int]], source_length: int, target_length: int) -> list[int]:
    """For each linked target word from left to right: how far its first source word is from the last one's last."""
    jumps, position = [], -1
    for j in range(target_length):
        partners = sorted(i for i, other in links if other == j)
        if partners:
            jumps.append(partners[0] - position)
            position = partners[-1]
    return [*jumps, source_length - position]


@given(st.lists(linked_pairs(), max_size=5))
@settings(deadline=None, max_examples=40)
def test_fertilities_and_jumps(corpus: list[LinkedPair]) -> None:
    priors = Priors()
    assert list(priors.watch(corpus)) == corpus
    fertility: Counter[tuple[str, int]] = Counter()
    forward: Counter[int] = Counter()
    reverse: Counter[int] = Counter()
    for linked in corpus:
        links, pair = list(linked.weights), linked.pair
        for i, word in enumerate(pair.source):
            fertility[word, sum(link[0] == i for link in links)] += 1
        forward.update(naive_jumps(links, len(pair.source), len(pair.target)))
        reverse.update(naive_jumps([(j, i) for i, j in links], len(pair.target), len(pair.source)))
    assert priors.source_fertility == {key: n for key, n in fertility.items() if key[1]}
    assert (priors.source_jumps, priors.target_jumps) == (forward, reverse)
    assert all(EFLOMAL_ROW.fullmatch(line.removesuffix("\n")) for line in priors.lines())


@given(st.lists(linked_pairs(), max_size=5))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_eflomal_reads_what_it_would_write(tmp_path: Path, corpus: list[LinkedPair]) -> None:
    eflomal = pytest.importorskip("eflomal", reason="eflomal is not installed")
    priors, table = Priors(), MemoryTable()
    count(chain.from_iterable(map(linked_words, priors.watch(corpus))), table)
    path = tmp_path / "priors"
    write_lexicon(table.lexicon(), str(path), "eflomal", Style(priors=priors.lines()))
    with open(path, encoding="utf-8") as file:
        read = eflomal.read_priors(file)
    links = [" ".join(f"{i}-{j}" for i, j in sorted(linked.weights)) for linked in corpus]
    texts = [[" ".join(p.pair.source) for p in corpus], [" ".join(p.pair.target) for p in corpus]]
    lexicon, forward, reverse, source, target = eflomal.calculate_priors(*texts, links, links)
    assert {(s, t): n for s, t, n in read[0]} == lexicon
    assert (dict(read[1]), dict(read[2])) == (forward, reverse)
    assert {(w, n): c for w, n, c in read[3]} == source
    assert {(w, n): c for w, n, c in read[4]} == target
