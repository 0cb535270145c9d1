"""Sentence pairs in: two files, one `source ||| target` file, or columns of a TSV file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from data.errors import DataError, UsageError, printable
from data.streams import check_paths, read_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

_T = TypeVar("_T")

SEPARATOR = "|||"
_NUMBERED_SENTENCE = re.compile(r"<s snum=([0-9]{1,9})>(.*)</s>[ \t]*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Pair:
    """One sentence pair. Its words are what links count.

    Attributes:
        id: zero-based line number.
        source: I source words; empty for an empty line.
        target: J target words; empty for an empty line.
    """

    id: int
    source: tuple[str, ...]
    target: tuple[str, ...]


def tokenize(text: str) -> tuple[str, ...]:
    """The words of `text`: runs of anything but ASCII space and tab, as fast_align and Moses count them.

    No-break space, U+3000 and other Unicode blanks belong to a word.
    """
    return tuple(filter(None, text.replace("\t", " ").split(" ")))


def read_bitext(source: str | Path, target: str | Path) -> Iterator[Pair]:
    """Pairs of two files with a sentence a line.

    Raises:
        DataError: files of different length (when the shorter one ends), or unreadable text.
        UsageError: both are standard input.
    """
    for index, (_, left), (_, right) in _paired(read_lines(source), read_lines(target), source, target):
        yield Pair(index, tokenize(left), tokenize(right))


def _paired(
    sources: Iterator[_T], targets: Iterator[_T], source: str | Path, target: str | Path
) -> Iterator[tuple[int, _T, _T]]:
    """Index and the two lines of each pair; DataError as soon as one file ends before the other."""
    check_paths((source, target))
    rows = zip_longest(sources, targets)
    for index, (left, right) in enumerate(rows):
        if left is None or right is None:
            longer, shorter = (source, target) if right is None else (target, source)
            total = index + 1 + sum(1 for _ in rows)
            message = f"no partner for this line: {longer} has {total} lines, {shorter} has {index}"
            raise DataError(message, longer, index + 1)
        yield index, left, right


def read_lengths(source: str | Path, target: str | Path) -> Iterator[tuple[int, tuple[int, int]]]:
    """Sentence id and numbers of words (I, J) of each pair of a text, plain or as in `read_sentences`.

    Raises:
        DataError: files of different length or with different ids, a line unlike the first, unreadable text.
        UsageError: both are standard input.
    """
    pairs = _paired(read_sentences(source), read_sentences(target), source, target)
    for index, (left_id, left), (right_id, right) in pairs:
        if left_id != right_id:
            raise DataError(f"sentence id {left_id}, in {target} it is {right_id}", source, index + 1, 1)
        yield left_id, (len(left), len(right))


def read_sentences(path: str | Path) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Sentence ids and words of one side of a text, as NAACL link files refer to them.

    Lines are `<s snum=18> words </s>`; or plain, when the first one is, and then their ids count from 1.

    Raises:
        DataError: a line unlike the first one, or unreadable text.
    """
    marked: bool | None = None
    for number, text in read_lines(path):
        match = _NUMBERED_SENTENCE.fullmatch(text)
        if marked is None:
            marked = match is not None
        if marked and match is None:
            raise DataError("expected `<s snum=ID> words </s>` as in the first line", path, number, 1)
        yield (int(match[1]), tokenize(match[2])) if marked and match else (number, tokenize(text))


def read_joint(path: str | Path) -> Iterator[Pair]:
    """Pairs of a file with `source ||| target` lines; an empty line is an empty pair.

    Raises:
        DataError: a line without exactly one token `|||`, or unreadable text.
    """
    for number, text in read_lines(path):
        words = tokenize(text)
        if words.count(SEPARATOR) != (1 if words else 0):
            raise _bad_separator(words, text, path, number)
        middle = words.index(SEPARATOR) if words else 0
        yield Pair(number - 1, words[:middle], words[middle + 1 :])


def _bad_separator(words: tuple[str, ...], text: str, path: str | Path, number: int) -> DataError:
    expected = "expected `source ||| target` with blanks around one |||"
    spans = list(re.finditer(r"[^ \t]+", text))
    separators = [span for span in spans if span.group() == SEPARATOR]
    if len(separators) > 1:
        return DataError(f"a second |||; {expected}", path, number, separators[1].start() + 1)
    glued = next((span for span in spans if SEPARATOR in span.group()), None)
    if glued is not None:
        message = f"||| glued to a word in {printable(glued.group())}; {expected}"
        return DataError(message, path, number, glued.start() + 1)
    return DataError(f"no |||; {expected}", path, number, len(text) + 1)


def read_tsv(path: str | Path, columns: tuple[int, int] = (1, 2)) -> Iterator[Pair]:
    """Pairs of a tab-separated file; words are split at spaces only. An empty line is an empty pair.

    Args:
        path: the file; `-` is standard input.
        columns: which columns, from 1, hold source and target.

    Raises:
        DataError: a line with too few columns, or unreadable text.
        UsageError: a column below 1.
    """
    if min(columns) < 1:
        raise UsageError(f"columns {columns[0]},{columns[1]}: columns count from 1")
    for number, text in read_lines(path):
        cells = text.split("\t")
        if not text:
            yield Pair(number - 1, (), ())
        elif len(cells) < max(columns):
            message = f"{len(cells)} column{'s' * (len(cells) > 1)} where column {max(columns)} was expected"
            raise DataError(message, path, number, len(text) + 1)
        else:
            yield Pair(number - 1, tokenize(cells[columns[0] - 1]), tokenize(cells[columns[1] - 1]))
