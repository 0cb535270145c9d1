"""Links and gold alignments: the grammars, the edge where base and direction are declared, the warnings."""

from __future__ import annotations

import logging
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.errors import DataError, UsageError
from data.links import (
    FORMATS,
    GoldAlignment,
    Links,
    diagnose,
    format_gold,
    format_lines,
    format_links,
    parse_gold,
    parse_links,
    read_gold,
    read_links,
)

positions = st.integers(0, 99_998)
links_st = st.frozensets(st.tuples(positions, positions), max_size=8)
golds_st = st.builds(GoldAlignment, links_st, links_st)


def gold_of(text: str | bytes, form: str = "gold", **options: Any) -> list[GoldAlignment]:
    """What `read_gold` makes of a file with this content."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "links")
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return list(read_gold(path, form, **options))


def links_of(text: str, form: str = "pharaoh", **options: Any) -> list[Links]:
    """What `read_links` makes of a file with this content."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "links")
        path.write_text(text)
        return list(read_links(path, form, **options))


def error_of(call: Callable[[], object]) -> DataError | None:
    """The DataError that `call` ends with; other errors pass."""
    try:
        call()
    except DataError as error:
        return error
    return None


# The types


def test_possible_links_contain_the_sure_ones() -> None:
    sure = frozenset({(0, 0)})
    assert GoldAlignment(sure).possible == sure
    assert GoldAlignment(sure, frozenset({(1, 1)})).possible == {(0, 0), (1, 1)}
    assert GoldAlignment(sure, frozenset({(0, 0), (1, 1)})).possible == {(0, 0), (1, 1)}


def test_reading_links_needs_no_heavy_library() -> None:
    code = "import sys, data.links, data.commands; print(*{'numpy', 'torch'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


# Grammars


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("", set()),
        (" \t ", set()),
        ("0-0", {(0, 0)}),
        ("0-0 1-2 2-1", {(0, 0), (1, 2), (2, 1)}),
        ("  2-1\t\t0-0  ", {(0, 0), (2, 1)}),
        ("007-08", {(7, 8)}),
        ("999999-0", {(999999, 0)}),
        ("0-0 0-0", {(0, 0)}),
    ],
)
def test_pharaoh(text: str, links: set[tuple[int, int]]) -> None:
    assert parse_links(text) == links
    assert parse_gold(text) == GoldAlignment(frozenset(links))
    assert parse_links(text, swap=True) == {(j, i) for i, j in links}


@pytest.mark.parametrize(
    ("text", "column", "hint"),
    [
        ("0-0 1:2", 5, "hyphen"),
        ("1-2-3", 1, "parallel file"),
        ("0-0  -1-2", 6, "sign"),
        ("+1-2", 1, "sign"),
        ("1-+2", 1, "expected"),
        ("1_0-2", 1, "expected"),
        ("1.0-2", 1, "expected"),
        ("٣-٤", 1, "ASCII digits"),
        ("1–2", 1, "dash"),
        ("1−2", 1, "dash"),
        ("0-0:0.9", 1, "parallel file"),
        ("0-0-.913", 1, "parallel file"),
        ("0-0 ||| -12.3", 5, "parallel file"),
        ("0-0 1-1 0?0", 9, "format is gold"),
        ("0p0", 1, "format is gold"),
        ("0-0 1s1", 5, "format is talp"),
        ("3-4-P", 1, "3p4"),
        ("# annotator 2", 1, "--comment-prefix"),
        ("12\t0-0", 1, "format is numbered"),
        ("12\t", 1, "format is numbered"),
        ("18 1 2 S", 1, "format is naacl"),
        ("18\t1\t2", 1, "format is naacl"),
        ("1234567-0", 1, "six digits"),
        ("0-0 1", 5, "expected"),
        ("0 - 0", 1, "expected"),
        ("-", 1, "expected"),
        ("0-", 1, "expected"),
        ("0-0\u00a01-1", 1, "expected"),
        ("0-0\u30001-1", 1, "expected"),
        ("0-0\u20281-1", 1, "expected"),
        ("0-0\x0b1-1", 1, "expected"),
        ("0-0\n", 1, "expected"),
        ("0-0\r", 1, "expected"),
        ("0-0\x00", 1, r"\x00"),
        ("nan-nan", 1, "expected"),
        ("1e2-0", 1, "expected"),
        ("(0, 0)", 1, "expected"),
        ("0,0", 1, "hyphen"),
    ],
)
def test_pharaoh_refused(text: str, column: int, hint: str) -> None:
    with pytest.raises(DataError, match=re.escape(hint)) as caught:
        parse_links(text)
    assert caught.value.column == column
    assert "0-0 1-2" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "sure", "possible"),
    [
        ("0-0 1p2 3?3", {(0, 0)}, {(0, 0), (1, 2), (3, 3)}),
        ("0-0 0p0 0-0", {(0, 0)}, {(0, 0)}),
        ("0p0 0-0", {(0, 0)}, {(0, 0)}),
        ("0p0", set(), {(0, 0)}),
    ],
)
def test_gold(text: str, sure: set[tuple[int, int]], possible: set[tuple[int, int]]) -> None:
    assert parse_gold(text) == GoldAlignment(frozenset(sure), frozenset(possible))


@pytest.mark.parametrize("text", ["0s0", "0P0", "0--0", "0pp0", "p", "0p", "?0", "0-0p", "0~0"])
def test_gold_refused(text: str) -> None:
    with pytest.raises(DataError):
        parse_gold(text)


def naive(text: str, marks: str) -> GoldAlignment | None:
    """The grammar of Pharaoh and gold once more, character by character; None where it is not kept."""
    sure, possible = set(), set()
    for token in text.replace("\t", " ").split(" "):
        if token == "":
            continue
        places = [k for k, character in enumerate(token) if character in marks]
        if len(places) != 1:
            return None
        left, right = token[: places[0]], token[places[0] + 1 :]
        for number in (left, right):
            if not 1 <= len(number) <= 6 or any(character not in "0123456789" for character in number):
                return None
        link = (int(left), int(right))
        possible.add(link)
        if token[places[0]] == "-":
            sure.add(link)
    return GoldAlignment(frozenset(sure), frozenset(possible))


@given(st.text(st.sampled_from("0012-- p?\t7:s٣\n")))
@settings(deadline=None, max_examples=500)
def test_parsers_agree_with_a_naive_one(text: str) -> None:
    for parse, marks in ((parse_gold, "-p?"), (parse_links, "-")):
        expected = naive(text, marks)
        if expected is None:
            with pytest.raises(DataError):
                parse(text)
        else:
            assert parse(text) == (expected if parse is parse_gold else expected.sure)


@given(st.text())
@settings(deadline=None)
def test_any_text_is_links_or_a_data_error(text: str) -> None:
    for parse in (parse_links, parse_gold):
        for one_based in (False, True):
            error = error_of(lambda: parse(text, one_based=one_based))  # noqa: B023 (called at once)
            assert error is None or 1 <= (error.column or 0) <= len(text)


@pytest.mark.parametrize("form", FORMATS)
@given(raw=st.binary() | st.text(st.sampled_from("01 \t-p?sSP.:\n#")).map(str.encode))
@settings(deadline=None)
def test_any_bytes_are_links_or_a_data_error(form: str, raw: bytes) -> None:
    error = error_of(lambda: gold_of(raw, form))
    assert error is None or error.path is not None


def test_a_long_hostile_line_is_refused_at_once() -> None:
    for text in ("1-1 " * 200_000 + "x", "1" * 1_000_000, "1-" * 500_000, " " * 1_000_000 + "x"):
        with pytest.raises(DataError):
            parse_links(text)


@given(links_st)
def test_pharaoh_comes_back(links: Links) -> None:
    assert parse_links(format_links(links)) == links
    assert format_links(links) == " ".join(sorted(format_links(links).split(), key=lambda t: [*map(int, t.split("-"))]))


@given(golds_st)
def test_gold_comes_back(gold: GoldAlignment) -> None:
    assert parse_gold(format_gold(gold)) == gold


@pytest.mark.parametrize("one_based", [None, False, True])
@pytest.mark.parametrize("form", FORMATS)
@given(golds=st.lists(golds_st, max_size=5))
@settings(deadline=None, max_examples=20)
def test_every_format_comes_back(form: str, one_based: bool | None, golds: list[GoldAlignment]) -> None:
    if form == "pharaoh":
        golds = [GoldAlignment(gold.sure) for gold in golds]
    text = "".join(format_lines(golds, form, one_based=one_based))
    ids = list(range(1, len(golds) + 1)) if form == "naacl" else None
    assert gold_of(text, form, one_based=one_based, ids=ids) == golds


def test_possible_links_do_not_fit_into_pharaoh() -> None:
    with pytest.raises(DataError, match="sentence pair 2 has possible links"):
        list(format_lines([parse_gold("0-0"), parse_gold("1p1")], "pharaoh"))


def test_how_formats_are_written() -> None:
    golds = [parse_gold("1p0 0-0"), GoldAlignment(frozenset()), parse_gold("2-3")]
    assert {name: "".join(format_lines(golds, name)) for name in FORMATS if name != "pharaoh"} == {
        "gold": "0-0 1p0\n\n2-3\n",
        "numbered": "0\t0-0 1p0\n1\t\n2\t2-3\n",
        "naacl": "1 1 1 S\n1 2 1 P\n3 3 4 S\n",
        "talp": "1s1 2p1\n\n3s4\n",
    }
    assert "".join(format_lines(golds, one_based=True)) == "1-1 2p1\n\n3-4\n"


@pytest.mark.parametrize("read", [read_gold, read_links])
def test_unknown_formats_get_a_suggestion(read) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UsageError, match="did you mean 'pharaoh'"):
        next(read("-", "pharoah"))


# Files


def test_lines_stay_in_place() -> None:
    assert links_of("0-0\n\n1-1\n") == [{(0, 0)}, set(), {(1, 1)}]
    assert links_of("0-0\r\n\r\n1-1") == [{(0, 0)}, set(), {(1, 1)}]
    assert links_of("") == []


def test_errors_are_located() -> None:
    with pytest.raises(DataError) as caught:
        links_of("0-0\n\n0-0 1-1 x\n")
    assert (caught.value.line, caught.value.column) == (3, 9)


def test_files_are_read_lazily(tmp_path: Path) -> None:
    path = tmp_path / "links"
    path.write_text("0-0\n1-1\nx\n")
    links = read_links(path)
    assert next(links) == {(0, 0)}
    assert next(links) == {(1, 1)}
    with pytest.raises(DataError):
        next(links)


def test_possible_links_are_no_hypothesis() -> None:
    assert links_of("0-0\n", "gold") == [{(0, 0)}]
    with pytest.raises(DataError, match="possible link") as caught:
        links_of("0-0\n0-0 11p1 1p1\n", "gold")
    assert (caught.value.line, caught.value.column) == (2, 10)


def test_what_is_left_out_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    gold_of("1-1 1p1 1-1\n0-2 3s3:0.5\n2-2 2s2:x:y\n", "talp")
    notes = [re.sub(r".*: (?=\d)", "", message) for message in caplog.messages]
    assert sorted(notes) == ["1 links to NULL left out", "2 scores left out", "3 links given more than once"]


def test_comment_lines_are_left_out_on_request() -> None:
    text = "# annotator 2\n0-0\n# half\n\n1-1 x\n"
    with pytest.raises(DataError, match="--comment-prefix") as caught:
        gold_of(text)
    assert caught.value.line == 1
    with pytest.raises(DataError) as caught:
        gold_of(text, comment_prefix="#")
    assert (caught.value.line, caught.value.column) == (5, 5)
    assert len(gold_of(text.replace(" x", ""), comment_prefix="#")) == 3


def test_one_based_and_swapped_files() -> None:
    assert links_of("1-3 2-1\n", one_based=True) == [{(0, 2), (1, 0)}]
    assert links_of("1-3 2-1\n", swap=True) == [{(3, 1), (1, 2)}]
    assert gold_of("1-3 2p1\n", one_based=True, swap=True) == [parse_gold("2-0 0p1")]


@pytest.mark.parametrize("text", ["1-1 0-1", "1-1 1-0", "1-1 0-0", "1-1 000p1"])
def test_zero_is_no_one_based_position(text: str) -> None:
    with pytest.raises(DataError, match="position 0") as caught:
        parse_gold(text, one_based=True)
    assert caught.value.column == 5


# Numbered, NAACL, talp


def test_numbered() -> None:
    assert gold_of("7\t0-0 1p1\n8\t\n9\t2-2\n", "numbered") == [
        parse_gold("0-0 1p1"),
        GoldAlignment(frozenset()),
        parse_gold("2-2"),
    ]


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("0\t0-0\n2\t\n", 2, 1),
        ("0\t0-0\n0\t\n", 2, 1),
        ("0-0\n", 1, 1),
        ("0\t0-0 x\n", 1, 7),
        ("0\t\n\n", 2, 1),
    ],
)
def test_numbered_refused(text: str, line: int, column: int) -> None:
    with pytest.raises(DataError) as caught:
        gold_of(text, "numbered")
    assert (caught.value.line, caught.value.column) == (line, column)


def test_naacl(caplog: pytest.LogCaptureFixture) -> None:
    text = "3 1 1\n1 2 3 P\n3  2\t2 S 0.8\n1 1 1 S \n1 0 4 P\n0001 5 0\n"
    assert gold_of(text, "naacl") == [
        parse_gold("0-0 1p2"),
        GoldAlignment(frozenset()),
        parse_gold("0-0 1-1"),
    ]
    assert any("2 links to NULL" in message for message in caplog.messages)
    assert any("1 scores" in message for message in caplog.messages)


def test_naacl_with_the_ids_of_the_text() -> None:
    text = "18 1 1\n20 2 2 P\n"
    empty = GoldAlignment(frozenset())
    assert gold_of(text, "naacl", ids=[20, 19, 18]) == [parse_gold("1p1"), empty, parse_gold("0-0")]
    assert gold_of("1 1 1\n", "naacl", lengths=[(1, 1), (5, 5)]) == [parse_gold("0-0"), empty]
    assert gold_of("", "naacl", ids=[4, 5]) == [empty, empty]
    with pytest.raises(DataError, match="sentence id 99") as caught:
        gold_of("18 1 1\n99 1 1\n", "naacl", ids=[18])
    assert (caught.value.line, caught.value.column) == (2, 1)
    with pytest.raises(DataError, match="twice"):
        gold_of(text, "naacl", ids=[18, 20, 18])


def test_naacl_without_the_text(caplog: pytest.LogCaptureFixture) -> None:
    assert [len(gold.sure) for gold in gold_of("3 1 1\n", "naacl")] == [0, 0, 1]
    assert "first 2 sentence ids" in caplog.text
    with pytest.raises(DataError, match="ids count from 1"):
        gold_of("0 1 1\n", "naacl")
    with pytest.raises(DataError, match="999999999"):
        gold_of("999999999 1 1\n", "naacl")


def test_naacl_may_count_from_zero() -> None:
    assert gold_of("1 0 0 S \n1 4 3 S \n", "naacl", one_based=False) == [parse_gold("0-0 4-3")]
    with pytest.raises(DataError, match="--zero-based") as caught:
        gold_of("1 0 0 S \n", "naacl")
    assert (caught.value.line, caught.value.column) == (1, 3)


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("1 1", 4),
        ("", 1),
        ("1 1 x", 5),
        ("1 1 1 Q", 7),
        ("1 1 1 0.8", 7),
        ("1 1 1 S nan", 9),
        ("1 1 1 S +1", 9),
        ("1 1 1 S .5", 9),
        ("1 1 1 S 1 2", 11),
        ("1 -1 1", 3),
        ("1\u00a01 1 1", 1),
        ("1-1", 1),
        ("1 1 ١", 5),
    ],
)
def test_naacl_refused(text: str, column: int) -> None:
    with pytest.raises(DataError) as caught:
        gold_of(f"1 1 1\n{text}\n", "naacl")
    assert (caught.value.line, caught.value.column) == (2, column)


def test_talp() -> None:
    assert gold_of("1-1 2s3 4p5:0.7:x 0p3\n\n", "talp") == [
        parse_gold("0-0 1-2 3p4"),
        GoldAlignment(frozenset()),
    ]
    for text in ("1?1", "1-1:", "1-1:a:b:c:d:e", "1-1:" + "x" * 33, "0-0", "0s1 0p0"):
        with pytest.raises(DataError):
            gold_of(text + "\n", "talp")


# Ranges


def test_links_within_the_text_pass() -> None:
    assert links_of("1-2\n\n", lengths=[(2, 3), (0, 0)]) == [{(1, 2)}, set()]


@pytest.mark.parametrize(
    ("text", "options", "lengths", "column", "advice"),
    [
        ("0-0 0-5", {}, [(1, 5)], 5, None),
        ("0-0 5-0", {}, [(5, 1)], 5, None),
        ("2-4 1-1", {}, [(2, 4)], 1, "read as --one-based"),
        ("0-0 1-2", {}, [(3, 2)], 5, "read with --swap"),
        ("1-3", {}, [(3, 1)], 1, "read with --swap and as --one-based"),
        ("1-2", {}, [(3, 2)], 1, "read as --one-based, or with --swap, or with --swap and as --one-based"),
        ("0-0 1-2", {"swap": True}, [(2, 3)], 5, "read without --swap"),
        ("2-2", {"swap": True, "one_based": True}, [(2, 1)], 1, None),
        ("1-3", {"swap": True, "one_based": True}, [(1, 3)], 1, "read without --swap"),
    ],
)
def test_links_outside_the_text(
    text: str, options: dict[str, Any], lengths: list[tuple[int, int]], column: int, advice: str | None
) -> None:
    with pytest.raises(DataError) as caught:
        links_of(f"\n{text}\n\n", lengths=[(9, 9), *lengths, (9, 9)], **options)
    assert (caught.value.line, caught.value.column) == (2, column)
    assert f"{lengths[0][0]} source and {lengths[0][1]} target words" in str(caught.value)
    assert ("fits" in str(caught.value)) == (advice is not None)
    assert str(caught.value).endswith(advice or "words")


def test_advice_holds_for_the_whole_file() -> None:
    late = [(2, 3), (2, 3)]
    assert _advice("1-1 2-3\n1-1\n", late) == "as --one-based"
    assert _advice("1-1 2-3\n0-0\n", late) is None
    assert _advice("0-1\n1-1 2-3\n", late) is None
    assert _advice("1-1 2-3\nx\n", late) is None
    assert _advice("1-1 2-3\n", late) is None


def _advice(text: str, lengths: list[tuple[int, int]]) -> str | None:
    with pytest.raises(DataError) as caught:
        links_of(text, lengths=lengths)
    return str(caught.value).partition("fits when read ")[2] or None


def test_out_of_range_naacl_links_are_located() -> None:
    with pytest.raises(DataError) as caught:
        gold_of("2 1 1\n1 1 1\n1 1 12 P 0.5\n", "naacl", lengths=[(3, 3), (1, 1)])
    assert (caught.value.line, caught.value.column) == (3, 3)


@pytest.mark.parametrize("lines", [1, 4])
def test_line_counts_must_agree(lines: int) -> None:
    with pytest.raises(DataError, match=f"links for {lines} sentence pairs, text of 2"):
        links_of("0-0\n" * lines, lengths=[(1, 1)] * 2)


# Warnings


def test_a_file_that_seems_to_count_from_one_is_noticed(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    links_of("1-1 2-2\n" * 5 + "\n")
    assert "--one-based" in caplog.text
    caplog.clear()
    links_of("1-1 2-2\n" * 5 + "4-0\n")
    links_of("1-1 2-2\n" * 4)
    links_of("1-1 2-2\n" * 5, one_based=True)
    assert caplog.text == ""


def corpus(seed: int) -> list[GoldAlignment]:
    """Sentence pairs with links in any order, some of them possible."""
    rng = random.Random(seed)
    pairs = []
    for _ in range(40):
        order = list(range(rng.randint(4, 15)))
        rng.shuffle(order)
        links = frozenset(enumerate(order))
        pairs.append(GoldAlignment(frozenset(link for link in links if rng.random() < 0.8), links))
    return pairs


@pytest.mark.parametrize(
    ("swap", "shift", "causes"),
    [
        (False, 0, []),
        (False, 1, ["the hypothesis counts words from 1"]),
        (False, -1, ["the gold counts words from 1"]),
        (True, 0, ["opposite directions"]),
        (True, 1, ["opposite directions", "the hypothesis counts words from 1"]),
        (True, -1, ["opposite directions", "the gold counts words from 1"]),
    ],
)
@pytest.mark.parametrize("wrong", [0.0, 0.3])
def test_another_reading_that_agrees_far_better_is_told(
    swap: bool, shift: int, causes: list[str], wrong: float
) -> None:
    gold = corpus(1)
    rng = random.Random(2)
    hypothesis = []
    for pair in gold:
        noisy = {(i, rng.randrange(15) if rng.random() < wrong else j) for i, j in pair.possible}
        hypothesis.append(frozenset((j + shift, i + shift) if swap else (i + shift, j + shift) for i, j in noisy))
    warning = diagnose(hypothesis, gold)
    assert (warning is None) == (not causes)
    for cause in causes:
        assert cause in str(warning)


def test_little_or_poor_evidence_gives_no_warning() -> None:
    gold = corpus(1)
    assert diagnose([], []) is None
    assert diagnose([frozenset()] * len(gold), gold) is None
    assert diagnose([frozenset({(1, 1)})] * 10, [GoldAlignment(frozenset({(0, 0)}))] * 10) is None
    rng = random.Random(3)
    nonsense = [frozenset((rng.randrange(15), rng.randrange(15)) for _ in range(10)) for _ in gold]
    assert diagnose(nonsense, gold) is None
