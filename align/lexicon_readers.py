"""Reading lexicons: our own with their counts, and lists of translations from best to worst."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from align.lexicon import NULL, Entry
from align.lexicon_examples import Example
from align.lexicon_formats import COLUMNS
from align.lexicon_input import NUMBER
from data.bitext import tokenize
from data.corpus import pyarrow
from data.errors import DataError, printable, unknown_name
from data.streams import read_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_KEYS, _COUNTS = COLUMNS[:2], COLUMNS[2:5]
_TRIPLE = re.compile(rf"([^ \t]+) ([^ \t]+) ({NUMBER.pattern})")
_SLACK = 1e-4  # by which the probabilities of one word may sum to more than 1


def read_entries(path: str, form: str) -> Iterator[Entry]:
    """The entries of a lexicon in `tsv`, `jsonl` or `parquet`; what follows from the counts is not read.

    Raises:
        DataError: missing columns, malformed rows, or counts that cannot be.
        UsageError: a format without counts.
    """
    if form not in _WITH_COUNTS:
        raise unknown_name("lexicon format with counts", form, _WITH_COUNTS)
    return _WITH_COUNTS[form](path)


def _tsv(path: str) -> Iterator[Entry]:
    width = 0
    for number, text in read_lines(path):
        cells = text.split("\t")
        if number == 1:
            width = len(cells)
            if tuple(cells[:5]) != COLUMNS[:5]:
                message = f"{printable(text)} found, expected the column names {', '.join(COLUMNS[:5])}, ..."
                raise DataError(message, path, 1, 1)
        elif len(cells) != width:
            raise DataError(f"{len(cells)} columns, the first line has {width}", path, number)
        else:
            for name, cell in zip(_COUNTS, cells[2:5], strict=True):
                if not NUMBER.fullmatch(cell):
                    raise DataError(f"{name} {printable(cell)} is not a number", path, number)
            yield _checked(cells[0], cells[1], list(map(float, cells[2:5])), path, number)


def _jsonl(path: str) -> Iterator[Entry]:
    return (_from_object(row, path, number) for number, row in _objects(path))


def read_examples(path: str) -> Iterator[tuple[Entry, list[Example]]]:
    """The entries of a lexicon in `jsonl`, each with its examples.

    Raises:
        DataError: as `read_entries`, or examples that are not as `nmt-align lexicon --context` writes them.
    """
    for number, row in _objects(path):
        yield _from_object(row, path, number), [_example(o, path, number) for o in row.get("examples", ())]


def _example(fields: Any, path: str, number: int) -> Example:
    try:
        line, source, target = fields["line"], tuple(fields["source"]), tuple(fields["target"])
        links = frozenset((i, j) for i, j in fields["links"])
    except (KeyError, TypeError, ValueError):
        raise DataError("an example needs line, source, target and links", path, number) from None
    whole = all(type(n) is int and n >= 0 for link in ((line, 0), *links) for n in link)
    if not whole or not all(isinstance(word, str) for word in (*source, *target)):
        raise DataError("an example whose words are no text, or whose links are no numbers", path, number)
    if any(i >= len(source) or j >= len(target) for i, j in links):
        raise DataError("an example with a link outside its sentence pair", path, number)
    return Example(line, source, target, links)


def _objects(path: str) -> Iterator[tuple[int, Any]]:
    for number, text in read_lines(path):
        try:
            yield number, json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            raise DataError(f"not the JSON of a lexicon entry: {error}", path, number) from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is given twice")
    return found


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def _parquet(path: str) -> Iterator[Entry]:
    pa, pq = pyarrow()
    number = 0
    try:
        with pq.ParquetFile(path) as file:
            missing = [name for name in COLUMNS[:5] if name not in file.schema_arrow.names]
            if missing:
                raise DataError(f"no column {missing[0]}, which a lexicon has", path)
            for batch in file.iter_batches(columns=list(COLUMNS[:5])):
                for row in batch.to_pylist():
                    number += 1
                    yield _from_object(row, path, number)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"cannot be read as Parquet: {error}", path) from None


_WITH_COUNTS: dict[str, Callable[[str], Iterator[Entry]]] = {"jsonl": _jsonl, "parquet": _parquet, "tsv": _tsv}


def _from_object(row: Any, path: str, number: int) -> Entry:
    if not isinstance(row, dict) or not set(COLUMNS[:5]) <= row.keys():
        raise DataError(f"expected an object with {', '.join(COLUMNS[:5])}", path, number)
    words = [row[key] for key in _KEYS]
    if not all(word is None or (isinstance(word, str) and _is_phrase(word)) for word in words):
        raise DataError("source and target must be words with single spaces, or null", path, number)
    counts = [row[key] for key in _COUNTS]
    if not all(type(count) in (int, float) and abs(count) < 1e15 for count in counts):
        raise DataError(f"{', '.join(_COUNTS)} must be numbers below 1e15", path, number)
    return _checked(words[0] or NULL, words[1] or NULL, list(map(float, counts)), path, number)


def _is_phrase(text: str) -> bool:
    plain = "\n" not in text and not any("\ud800" <= character <= "\udfff" for character in text)
    return plain and " ".join(tokenize(text)) == text != ""


def _checked(source: str, target: str, counts: Sequence[float], path: str, number: int) -> Entry:
    """The entry, if its counts can be those of a pair and its words."""
    count, source_count, target_count = counts
    if not 0 < count <= min(source_count, target_count) < float("inf"):
        message = (
            f"counts {count:g}, {source_count:g}, {target_count:g}: that of a pair is above 0 and none of its "
            "words has less"
        )
        raise DataError(message, path, number)
    if source == target == NULL:
        raise DataError("neither a source nor a target word", path, number)
    return Entry(source, target, count, source_count, target_count)


def _triples(path: str) -> Iterator[tuple[int, str, str, float]]:
    """Rows `word word p` of a Moses or Marian lexicon."""
    for number, text in read_lines(path):
        match = _TRIPLE.fullmatch(text)
        if not match or not 0 <= float(match[3]) <= 1:
            raise DataError(f"{printable(text)} found, expected `word word probability`", path, number)
        yield number, match[1], match[2], float(match[3])


def read_moses(path: str) -> Iterator[tuple[str, str, float]]:
    """The (conditioned word, condition, probability) rows of a `lex.f2e`, `lex.e2f` or Marian shortlist.

    `NULL` rows are read as such, and escaped | as |.

    Raises:
        DataError: malformed rows, or probabilities of one condition that sum to more than 1.
    """
    sums: defaultdict[str, float] = defaultdict(float)
    for number, first, second, p in _triples(path):
        sums[second] += p
        if sums[second] > 1 + _SLACK:
            message = f"the probabilities given {printable(second)} sum to more than 1"
            raise DataError(message, path, number)
        word, condition = (NULL if text == "NULL" else text.replace("&#124;", "|") for text in (first, second))
        yield word, condition, p


def read_muse(path: str) -> Iterator[tuple[str, str]]:
    """The pairs of a dictionary with a source and a target word a line, between them blanks or a tab.

    Raises:
        DataError: a line that has not two words. An empty line is passed over.
    """
    for number, text in read_lines(path):
        words = tokenize(text)
        if len(words) == 2:
            yield words[0], words[1]
        elif words:
            raise DataError(f"{len(words)} words, expected `source target`", path, number)


READABLE = ("jsonl", "marian", "moses", "muse", "parquet", "tsv")
"""Formats that `read_translations` reads."""


def read_translations(path: str, form: str, *, lowercase: bool = False) -> dict[str, list[str]]:
    """The target words of each source word, from best to worst, without `NULL`.

    Best is the most frequent or most probable one; in a format that tells neither, the one that comes first.

    Args:
        path: a lexicon.
        form: one of `READABLE`; `moses` is a `lex.f2e`.
        lowercase: put all words in lower case; what becomes equal is summed.

    Raises:
        DataError: as the readers of these formats.
        UsageError: an unknown format.
    """
    found: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for source, target, value in _valued(path, form):
        if lowercase:
            source, target = source.lower(), target.lower()
        if NULL not in (source, target):
            found[source][target] += value
    return {source: sorted(values, key=values.__getitem__, reverse=True) for source, values in found.items()}


def _valued(path: str, form: str) -> Iterator[tuple[str, str, float]]:
    """(source, target, how good) of each row."""
    if form not in READABLE:
        raise unknown_name("lexicon format to read", form, READABLE)
    if form == "muse":
        return ((source, target, 0) for source, target in read_muse(path))
    if form in ("marian", "moses"):
        return ((source, target, p) for target, source, p in read_moses(path))
    return ((entry.source, entry.target, entry.count) for entry in read_entries(path, form))
