"""Word links and gold alignments: reading, writing, and noticing when base or direction are wrong.

A link is (source word, target word), both from 0. Files that count from 1 or have the target first are
declared so by their reader (`one_based`, `swap`); nothing is guessed, but what looks wrong is said.
"""

from __future__ import annotations

import logging
from collections import Counter
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from data.errors import DataError
from data.link_formats import (
    FORMATS,
    LAYOUTS,
    GoldAlignment,
    Link,
    Links,
    Reading,
    Row,
    link_format,
    locate,
    parse_rows,
)
from data.streams import read_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = [
    "FORMATS",
    "GoldAlignment",
    "Link",
    "Links",
    "diagnose",
    "format_gold",
    "format_lines",
    "format_links",
    "link_format",
    "parse_gold",
    "parse_links",
    "read_gold",
    "read_links",
]

log = logging.getLogger("nmt_align")

_ENOUGH_LINES = 5
"""Lines with links from which on it is odd that none has a link on a first word."""
_ENOUGH_LINKS = 20
"""Links from which on a comparison of readings means something."""


def parse_links(text: str, *, one_based: bool = False, swap: bool = False) -> Links:
    """The links of one Pharaoh line such as `0-0 1-2`. Raises DataError, with the column, for all else."""
    return _parse(text, "pharaoh", one_based, swap).sure


def parse_gold(text: str, *, one_based: bool = False, swap: bool = False) -> GoldAlignment:
    """The links of one gold line such as `0-0 1p2 3?3`. Raises DataError, with the column, for all else."""
    return _parse(text, "gold", one_based, swap)


def _parse(text: str, name: str, one_based: bool, swap: bool) -> GoldAlignment:
    return parse_rows([Row(None, 1, text)], Reading(FORMATS[name], one_based, swap), Counter())


def format_links(links: Links) -> str:
    """The Pharaoh line of `links`, sorted, without line end."""
    return " ".join(f"{i}-{j}" for i, j in sorted(links))


def format_gold(gold: GoldAlignment) -> str:
    """The gold line of `gold`, sorted, without line end: `i-j` sure, `ipj` possible only."""
    return " ".join(f"{i}{'-' if (i, j) in gold.sure else 'p'}{j}" for i, j in sorted(gold.possible))


def read_links(
    path: str | Path,
    format: str = "pharaoh",  # noqa: A002
    *,
    one_based: bool | None = None,
    swap: bool = False,
    lengths: Iterable[tuple[int, int]] | None = None,
    ids: Sequence[int] | None = None,
    comment_prefix: str | None = None,
    option: str = "--",
) -> Iterator[Links]:
    """The links of each sentence pair of a file without possible links, such as an aligner's output.

    Arguments and errors are those of `read_gold`; a possible link is an error as well.
    """
    reading = _reading(path, format, one_based, swap, option)
    for rows, gold in _sentences(reading, lengths, ids, comment_prefix):
        if len(gold.sure) < len(gold.possible):
            line, column = locate(rows, reading, min(gold.possible - gold.sure))
            raise DataError("a possible link, where all links have to be sure", path, line, column)
        yield gold.sure


def read_gold(
    path: str | Path,
    format: str = "gold",  # noqa: A002
    *,
    one_based: bool | None = None,
    swap: bool = False,
    lengths: Iterable[tuple[int, int]] | None = None,
    ids: Sequence[int] | None = None,
    comment_prefix: str | None = None,
    option: str = "--",
) -> Iterator[GoldAlignment]:
    """The sure and possible links of each sentence pair of a file, in order.

    Repeated links, links to NULL and scores are left out, counted and noted. A warning is given when no link
    at all is on a first word, which is what a file that counts from 1 looks like.

    Args:
        path: the file, plain or gzip; `-` is standard input.
        format: a name in `FORMATS`.
        one_based: whether positions count from 1; None: as the format has it (`naacl` and `talp` do).
        swap: whether the file has the target position first.
        lengths: (I, J), the number of source and target words of each pair: links must stay within them, and
            the file must have as many lines.
        ids: the sentence ids of the text, in order, for `naacl`. Without them line n is sentence n, from 1.
        comment_prefix: lines that begin with it are left out.
        option: what the options of the command begin with that read this file otherwise: `--gold-` for `--gold-swap`
            and `--gold-one-based`, which messages advise.

    Raises:
        DataError: malformed links, links outside their sentence (the message says which other base or
            direction would make the whole file fit), unknown sentence ids, or a line count unlike `lengths`.
        UsageError: an unknown format.
    """
    for _, gold in _sentences(_reading(path, format, one_based, swap, option), lengths, ids, comment_prefix):
        yield gold


_Sentence = tuple[list[Row], GoldAlignment]


def _reading(path: str | Path, name: str, one_based: bool | None, swap: bool, option: str) -> Reading:
    form = link_format(name)
    return Reading(form, form.one_based if one_based is None else one_based, swap, path, option)


def _sentences(
    reading: Reading,
    lengths: Iterable[tuple[int, int]] | None,
    ids: Sequence[int] | None,
    comment_prefix: str | None,
) -> Iterator[_Sentence]:
    """Rows and links of each sentence, checked against `lengths`, with notes at the end of the file."""
    path = reading.path or "-"
    lines = read_lines(path)
    if comment_prefix:
        lines = ((number, text) for number, text in lines if not text.startswith(comment_prefix))
    if reading.format.layout == "naacl" and ids is None and lengths is not None:
        lengths = list(lengths)
        ids = range(1, len(lengths) + 1)
    tally: Counter[str] = Counter()
    parsed = (
        (rows, parse_rows(rows, reading, tally)) for rows in LAYOUTS[reading.format.layout].read(lines, reading, ids)
    )
    linked, first_word = 0, False
    for rows, gold in parsed if lengths is None else _within(parsed, lengths, reading):
        linked += bool(gold.possible)
        first_word = first_word or any(i == 0 or j == 0 for i, j in gold.possible)
        yield rows, gold
    for what, count in tally.items():
        if count:
            log.warning("Note: %s: %d %s", path, count, what)
    if linked >= _ENOUGH_LINES and not first_word and not reading.one_based:
        advice = f"if positions count from 1, read it {reading.option}one-based"
        log.warning("Warning: %s: no link on a first word in %d lines; %s", path, linked, advice)


def _within(parsed: Iterator[_Sentence], lengths: Iterable[tuple[int, int]], reading: Reading) -> Iterator[_Sentence]:
    """`parsed`, as long as all links are within the sentence lengths and there are as many of both."""
    fits = _OtherReadings(reading)
    pairs = zip_longest(parsed, lengths)
    for index, (sentence, size) in enumerate(pairs):
        if sentence is None or size is None:
            more = index + 1 + sum(1 for _ in pairs)
            counts = (index, more) if sentence is None else (more, index)
            message = f"links for {counts[0]} sentence pairs, text of {counts[1]}"
            raise DataError(f"{message}: pair {index + 1} has no partner", reading.path)
        rows, gold = sentence
        fits.see(gold.possible, size)
        outside = [(i, j) for i, j in gold.possible if i >= size[0] or j >= size[1]]
        if outside:
            link = min(outside)
            line, column = locate(rows, reading, link)
            message = (
                f"link {link[0]}-{link[1]} (source-target, from 0) is outside its sentence pair of "
                f"{size[0]} source and {size[1]} target words"
            )
            raise DataError(message + fits.advice(pairs), reading.path, line, column)
        yield sentence


class _OtherReadings:
    """Which other base or direction would keep every link of a file within its sentence."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.shift = 1 if reading.one_based else -1
        self.open = [(False, self.shift), (True, 0), (True, self.shift)]

    def see(self, links: Links, size: tuple[int, int]) -> None:
        self.open = [reading for reading in self.open if _fits(_reread(links, *reading), size)]

    def advice(self, rest: Iterator[tuple[_Sentence | None, tuple[int, int] | None]]) -> str:
        """What to tell after the rest of the file has been seen too; nothing if it is malformed."""
        try:
            for sentence, size in rest:
                if sentence is None or size is None:
                    return ""
                self.see(sentence[1].possible, size)
        except DataError:
            return ""
        option = self.reading.option
        swapping = f"{'without' if self.reading.swap else 'with'} {option}swap"
        counting = f"as {option}{'zero' if self.reading.one_based else 'one'}-based"
        options = [" and ".join([swapping] * swap + [counting] * (shift != 0)) for swap, shift in self.open]
        return f"; the whole file fits when read {', or '.join(options)}" if options else ""


def _reread(links: Links, swap: bool, shift: int) -> Links:
    """The links as they are when sides are changed and positions moved; not all of them need exist."""
    return frozenset((j + shift, i + shift) if swap else (i + shift, j + shift) for i, j in links)


def _fits(links: Links, size: tuple[int, int]) -> bool:
    return all(0 <= i < size[0] and 0 <= j < size[1] for i, j in links)


def diagnose(hypothesis: Sequence[Links], gold: Sequence[GoldAlignment]) -> str | None:
    """A warning if another base or direction would make `hypothesis` agree far better with `gold`, else None.

    Args:
        hypothesis: the links of each sentence pair as read.
        gold: the gold alignment of each sentence pair as read.
    """
    total = sum(len(links) for links in hypothesis)
    hits = {
        (swap, shift): sum(
            len(_reread(links, swap, shift) & reference.possible)
            for links, reference in zip(hypothesis, gold, strict=True)
        )
        for swap in (False, True)
        for shift in (0, -1, 1)
    }
    best = max(hits, key=lambda reading: hits[reading])
    if total < _ENOUGH_LINKS or hits[best] < total / 2 or hits[best] < 1.25 * hits[False, 0]:
        return None
    swap, shift = best
    causes = ["hypothesis and gold run in opposite directions"] if swap else []
    if shift:
        causes.append(f"the {'hypothesis' if shift < 0 else 'gold'} counts words from 1")
    return (
        f"{hits[False, 0] / total:.0%} of the links are in the gold; it would be {hits[best] / total:.0%} "
        f"if {' and '.join(causes)}"
    )


def format_lines(
    alignments: Iterable[GoldAlignment],
    format: str = "gold",  # noqa: A002
    *,
    one_based: bool | None = None,
    ids: Sequence[int] | None = None,
) -> Iterator[str]:
    """What to write for each sentence pair, with line ends. In `naacl` that is one line a link.

    Args:
        alignments: the links of each sentence pair.
        format: a name in `FORMATS`.
        one_based: whether to count from 1; None: as the format has it.
        ids: sentence ids for `naacl` and `numbered`; by default from 1 and from 0.

    Raises:
        DataError: a possible link in a format that has none.
        UsageError: an unknown format.
    """
    form = link_format(format)
    layout = LAYOUTS[form.layout]
    base = int(form.one_based if one_based is None else one_based)
    sure, possible = form.written
    for index, gold in enumerate(alignments):
        if possible is None and len(gold.sure) < len(gold.possible):
            raise DataError(f"sentence pair {index + 1} has possible links, which {format} cannot hold")
        marked = (
            (i + base, sure if (i, j) in gold.sure else possible or sure, j + base) for i, j in sorted(gold.possible)
        )
        yield layout.write(index + layout.first_id if ids is None else ids[index], marked)
