"""How links are written: the grammar of each format, and what a malformed line probably is.

Grammars are for `re.fullmatch` on ASCII only and run in linear time; numbers are converted after the match.
"""

from __future__ import annotations

import logging
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from data.errors import DataError, printable, unknown_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

Link: TypeAlias = tuple[int, int]
"""(i, j): source word, target word, both from 0."""
Links: TypeAlias = frozenset[Link]

log = logging.getLogger("nmt_align")

_POSITION = "[0-9]{1,6}"
_NUMBER = r"-?(?:0|[1-9][0-9]{0,8})(?:\.[0-9]{1,17})?(?:[eE][-+]?[0-9]{1,3})?"
_FIELDS = "(?::[!-9;-~]{1,32}){0,4}"
_FIELDS_OF_LINK = re.compile(r":[^ \t]*")
_MARK = re.compile("[-sp?]")
_MARKS_TO_SPACES = str.maketrans("-sp?", "    ")
_POSSIBLE_MARKS = frozenset("p?")
_RECORD_FIELDS = ("[0-9]{1,9}", _POSITION, _POSITION, "[SP]", _NUMBER)
_RECORD = re.compile(r"[ \t]*({})[ \t]+({})[ \t]+({})(?:[ \t]+({})(?:[ \t]+({}))?)?[ \t]*".format(*_RECORD_FIELDS))
_MAX_GAPS = 1000
"""Sentences without links per sentence with links in a NAACL file read without its text."""


@dataclass(frozen=True, slots=True)
class GoldAlignment:
    """The links of one sentence pair as annotators gave them.

    Attributes:
        sure: the sure links S.
        possible: the possible links P of AER; contains `sure`, whatever it was made with.
    """

    sure: Links
    possible: Links = frozenset()

    def __post_init__(self) -> None:
        if not self.sure <= self.possible:
            object.__setattr__(self, "possible", self.possible | self.sure)


class Row(NamedTuple):
    """Link tokens of one sentence as they stand in one line of a file."""

    line: int | None
    column: int
    text: str


@dataclass(frozen=True)
class LinkFormat:
    """One way to write links down.

    Attributes:
        example: for messages.
        marks: what may join the two positions; `p` and `?` make a link possible.
        layout: how lines and sentences belong together, a key of `LAYOUTS`.
        written: the marks written for a sure and for a possible link (None: cannot be written).
        one_based: whether positions count from 1 when nothing else is said.
        null: whether position 0 of one-based links stands for NULL, no word.
        fields: the grammar of what may follow a link.
    """

    example: str
    marks: str = "-"
    layout: str = "plain"
    written: tuple[str, str | None] = ("-", None)
    one_based: bool = False
    null: bool = False
    fields: str = ""

    @cached_property
    def token(self) -> re.Pattern[str]:
        """One link."""
        return re.compile(f"{_POSITION}[{self.marks}]{_POSITION}{self.fields}")

    @cached_property
    def line(self) -> re.Pattern[str]:
        """The links of a sentence."""
        token = self.token.pattern
        return re.compile(rf"(?:[ \t]*{token}(?:[ \t]+{token})*)?[ \t]*")


FORMATS = {
    "gold": LinkFormat("0-0 1p2", marks="-p?", written=("-", "p")),
    "naacl": LinkFormat("18 1 2 S", "-sp", "naacl", ("S", "P"), one_based=True, null=True, fields=_FIELDS),
    "numbered": LinkFormat("12<tab>0-0 1-2", "-p?", "numbered", ("-", "p")),
    "pharaoh": LinkFormat("0-0 1-2"),
    "talp": LinkFormat("1-1 2s3 4p5", "-sp", written=("s", "p"), one_based=True, null=True, fields=_FIELDS),
}


def link_format(name: str) -> LinkFormat:
    """The format called `name`. Raises UsageError, with a suggestion, for a name that is none."""
    if name not in FORMATS:
        raise unknown_name("link format", name, FORMATS)
    return FORMATS[name]


@dataclass(frozen=True)
class Reading:
    """How to understand a link file.

    Attributes:
        format: how it is written.
        one_based: whether its positions count from 1.
        swap: whether it has the target position first.
        path: its name, for messages.
        option: how the options of the command at hand begin that say how to read it, for messages.
    """

    format: LinkFormat
    one_based: bool
    swap: bool = False
    path: str | Path | None = None
    option: str = "--"


def parse_rows(rows: Sequence[Row], reading: Reading, tally: Counter[str]) -> GoldAlignment:
    """The links of one sentence; what is left out or doubled is counted in `tally`.

    Raises:
        DataError: a malformed link, or position 0 where positions count from 1 and there is no NULL.
    """
    form = reading.format
    base = int(reading.one_based)
    sure: list[Link] = []
    unsure: list[Link] = []
    for row in rows:
        text = row.text
        if not form.line.fullmatch(text):
            raise _malformed(row, reading)
        if form.fields:
            text, count = _FIELDS_OF_LINK.subn("", text)
            tally["scores left out"] += count
        # What is left are ASCII digits, marks, spaces and tabs.
        numbers = [int(position) - base for position in text.translate(_MARKS_TO_SPACES).split()]
        links = list(zip(numbers[::2], numbers[1::2], strict=True))
        if base and min(numbers, default=0) < 0:
            _check_zeros(links, row, reading)
        if _POSSIBLE_MARKS.isdisjoint(text):
            sure += links
        else:
            for link, mark in zip(links, _MARK.findall(text), strict=True):
                (unsure if mark in _POSSIBLE_MARKS else sure).append(link)
    given = len(sure) + len(unsure)
    if base and form.null:
        sure, unsure = ([link for link in links if min(link) >= 0] for links in (sure, unsure))
        tally["links to NULL left out"] += given - len(sure) - len(unsure)
        given = len(sure) + len(unsure)
    if reading.swap:
        sure, unsure = ([(i, j) for j, i in links] for links in (sure, unsure))
    certain = frozenset(sure)
    gold = GoldAlignment(certain, certain.union(unsure) if unsure else certain)
    tally["links given more than once"] += given - len(gold.possible)
    return gold


def _check_zeros(links: Sequence[Link], row: Row, reading: Reading) -> None:
    """Refuse a position 0 in one-based links, unless it stands for NULL and the other one for a word."""
    for (i, j), token in zip(links, re.finditer(r"[^ \t]+", row.text), strict=True):
        if min(i, j) < 0 and not (reading.format.null and max(i, j) >= 0):
            message = f"position 0 in link {i + 1}-{j + 1}, read as one-based; {reading.option}zero-based counts from 0"
            raise DataError(message, reading.path, row.line, row.column + token.start())


def locate(rows: Sequence[Row], reading: Reading, link: Link) -> tuple[int | None, int]:
    """Line and column where `link`, one of those parsed from `rows`, is written."""
    first, second = (n + reading.one_based for n in (link[::-1] if reading.swap else link))
    written = re.compile(rf"(?<![^ \t])0*{first}[{reading.format.marks}]0*{second}(?![0-9])")
    return next((row.line, row.column + hit.start()) for row in rows if (hit := written.search(row.text)))


# What malformed lines and tokens usually are; the first that matches is told.
_LINE_HINTS = (
    (r"[ \t]*(?:#|%|//|;).*", "a comment or header? --comment-prefix skips lines that begin with it"),
    (_RECORD.pattern, "NAACL records? Then the format is naacl"),
    (r"[0-9]{1,9}\t.*", "a sentence id before the links? Then the format is numbered"),
    (r".*\|\|\|.*", "a link file holds links only; scores live in a parallel file"),
)
_TOKEN_HINTS = (
    (r"[0-9]+-[0-9]+-[SP]", "marks at the end are not read; a possible link is written 3p4"),
    (r"[0-9]+[-p?s][0-9]+[:-].*", "nothing may follow a link here; scores live in a parallel file"),
    (r"[0-9]{1,6}[p?][0-9]{1,6}", "a possible link? Then the format is gold"),
    (r"[0-9]{1,6}s[0-9]{1,6}", "a talp mark? Then the format is talp"),
    (r"[0-9]+[-p?s][0-9]+", "a position has at most six digits"),
    (r"[0-9]+[\u2010-\u2015\u2212\ufe58\ufe63\uff0d][0-9]+", "that dash is not the ASCII hyphen"),
    (r"[0-9]+[^-0-9p?][0-9]+", "two positions are joined by a hyphen"),
    (r"\d+\D\d+", "positions are written in the ASCII digits 0 to 9"),
    (r"[-+].*", "a position has no sign"),
)


def _malformed(row: Row, reading: Reading) -> DataError:
    """The error for the first token of `row` that is not a link."""
    form = reading.format
    token = next(t for t in re.finditer(r"[^ \t]+", row.text) if not form.token.fullmatch(t.group()))
    return _explained(token.group(), row.text, reading, row.line, row.column + token.start())


def _explained(token: str, text: str, reading: Reading, line: int | None, column: int) -> DataError:
    hints = [hint for pattern, hint in _LINE_HINTS if re.fullmatch(pattern, text, re.DOTALL)]
    hints += [hint for pattern, hint in _TOKEN_HINTS if re.fullmatch(pattern, token, re.DOTALL)]
    told = f" ({hints[0]})" if hints else ""
    message = f"{printable(token)} found, expected links such as `{reading.format.example}`{told}"
    return DataError(message, reading.path, line, column)


# How lines and sentences belong together: for each layout one reader and one writer.

Lines: TypeAlias = "Iterable[tuple[int, str]]"


def _read_plain(lines: Lines, reading: Reading, ids: Sequence[int] | None) -> Iterator[list[Row]]:
    for number, text in lines:
        yield [Row(number, 1, text)]


def _read_numbered(lines: Lines, reading: Reading, ids: Sequence[int] | None) -> Iterator[list[Row]]:
    """Lines `id<tab>links`, in order and without gaps, so that line n is sentence n."""
    previous = None
    for number, text in lines:
        match = re.match(r"([0-9]{1,9})\t", text)
        if match is None:
            raise _explained(text.partition("\t")[0], text, reading, number, 1)
        sentence = int(match[1])
        if previous is not None and sentence != previous + 1:
            message = f"sentence id {sentence} after {previous}, expected {previous + 1}"
            raise DataError(message, reading.path, number, 1)
        previous = sentence
        yield [Row(number, match.end() + 1, text[match.end() :])]


def _read_naacl(lines: Lines, reading: Reading, ids: Sequence[int] | None) -> Iterator[list[Row]]:
    """Lines `sentence i j [S|P [confidence]]` in any order. Without `ids`, line n is sentence n, from 1."""
    sentences: defaultdict[int, list[Row]] = defaultdict(list)
    known = None if ids is None else frozenset(ids)
    if known is not None and ids is not None and len(known) < len(ids):
        raise DataError("the text gives a sentence id twice", reading.path)
    for number, text in lines:
        match = _RECORD.fullmatch(text)
        if match is None:
            raise _bad_record(text, reading, number)
        sentence, i, j, mark, confidence = int(match[1]), match[2], match[3], match[4], match[5]
        if sentence == 0 if known is None else sentence not in known:
            expected = "ids count from 1" if known is None else "the text has no such sentence"
            raise DataError(f"sentence id {sentence}: {expected}", reading.path, number, match.start(1) + 1)
        token = f"{i}{(mark or '-').lower()}{j}" + (f":{confidence}" if confidence else "")
        sentences[sentence].append(Row(number, match.start(2) + 1, token))
    if ids is None:
        ids = range(1, max(sentences, default=0) + 1)
        if len(ids) > _MAX_GAPS * (len(sentences) + 1):
            message = f"sentence ids up to {len(ids)} for {len(sentences)} sentences"
            raise DataError(f"{message}: the text is needed to tell which line is which", reading.path)
        if min(sentences, default=1) > 1:
            missing = min(sentences) - 1
            log.warning("Note: %s: no links for the first %d sentence ids", reading.path, missing)
    for sentence in ids:
        yield sentences.get(sentence, [])


def _bad_record(text: str, reading: Reading, number: int) -> DataError:
    """The error for the first field of a NAACL line that is wrong, missing or too much."""
    fields = list(re.finditer(r"[^ \t]+", text))
    for k, field in enumerate(fields):
        if k >= len(_RECORD_FIELDS) or not re.fullmatch(_RECORD_FIELDS[k], field.group()):
            return _explained(field.group(), text, reading, number, field.start() + 1)
    message = f"{len(fields)} fields, expected `sentence i j [S|P [confidence]]`"
    return DataError(message, reading.path, number, len(text) + 1)


MarkedLink: TypeAlias = tuple[int, str, int]


def _write_plain(sentence: int, links: Iterable[MarkedLink]) -> str:
    return " ".join(f"{i}{mark}{j}" for i, mark, j in links) + "\n"


def _write_numbered(sentence: int, links: Iterable[MarkedLink]) -> str:
    return f"{sentence}\t{_write_plain(sentence, links)}"


def _write_naacl(sentence: int, links: Iterable[MarkedLink]) -> str:
    return "".join(f"{sentence} {i} {j} {mark}\n" for i, mark, j in links)


@dataclass(frozen=True)
class Layout:
    """Reader and writer of a layout, and the id it gives to the first sentence."""

    read: Callable[[Lines, Reading, Sequence[int] | None], Iterator[list[Row]]]
    write: Callable[[int, Iterable[MarkedLink]], str]
    first_id: int = 0


LAYOUTS = {
    "naacl": Layout(_read_naacl, _write_naacl, first_id=1),
    "numbered": Layout(_read_numbered, _write_numbered),
    "plain": Layout(_read_plain, _write_plain),
}
