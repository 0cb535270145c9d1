"""Text and links together, with a weight for every link: what lexicons are counted from."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from data.errors import DataError, UsageError, printable
from data.links import read_gold
from data.streams import STANDARD_STREAM, read_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from data.bitext import Pair
    from data.links import GoldAlignment, Link

UNIT = 1_000_000
"""Weight of a plain link. Weights are whole millionths, so that their sums are exact in every order."""
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,25})?(?:[eE][-+]?[0-9]{1,3})?")
"""A number in a text file: ASCII digits, no `nan` or `inf`."""


@dataclass(frozen=True, slots=True)
class LinkedPair:
    """A sentence pair and the weights of its links, in millionths, all above 0."""

    pair: Pair
    weights: Mapping[Link, int]


@dataclass(frozen=True, slots=True)
class LinkFile:
    """Where the links of a text are and how to read them; the fields are those of `data.links.read_gold`.

    Attributes:
        possible_weight: what a possible link counts, from 0 to 1; a sure one counts 1.
        scores: a file with as many numbers a line as there are links, in their order: what each link counts.
    """

    path: str | Path
    format: str = "pharaoh"
    one_based: bool | None = None
    swap: bool = False
    comment_prefix: str | None = None
    possible_weight: float = 1.0
    scores: str | Path | None = None
    option: str = "--"


def read_linked(pairs: Iterable[Pair], links: LinkFile) -> Iterator[LinkedPair]:
    """Pairs with their links, one at a time.

    Raises:
        DataError: text and links of different length, a link outside its pair, malformed links or scores.
        UsageError: scores with another format than Pharaoh, or for links from standard input.
    """
    if links.scores is not None:
        return _read_scored(pairs, links)
    possible = round(links.possible_weight * UNIT)
    return (LinkedPair(pair, _weights(gold, possible)) for pair, gold in read_paired(pairs, links))


def read_paired(pairs: Iterable[Pair], links: LinkFile) -> Iterator[tuple[Pair, GoldAlignment]]:
    """Pairs with their sure and possible links, one at a time. Raises DataError as `read_linked` does."""
    # Links are checked against the lengths of the pairs; each pair waits here for its links. A NAACL file
    # has its lines in any order and takes all pairs first.
    waiting: deque[Pair] = deque(maxlen=None if links.format == "naacl" else 1)

    def lengths() -> Iterator[tuple[int, int]]:
        for pair in pairs:
            waiting.append(pair)
            yield len(pair.source), len(pair.target)

    alignments = read_gold(
        links.path,
        links.format,
        one_based=links.one_based,
        swap=links.swap,
        lengths=lengths(),
        comment_prefix=links.comment_prefix,
        option=links.option,
    )
    for gold in alignments:
        yield waiting.popleft(), gold


def _weights(gold: GoldAlignment, possible: int) -> dict[Link, int]:
    weights = dict.fromkeys(gold.possible, possible) if possible else {}
    weights.update(dict.fromkeys(gold.sure, UNIT))
    return weights


def _read_scored(pairs: Iterable[Pair], links: LinkFile) -> Iterator[LinkedPair]:
    if links.format != "pharaoh" or links.comment_prefix is not None:
        raise UsageError("scores belong to a plain Pharaoh file: one number for each link, in its order")
    if str(links.path) == STANDARD_STREAM:
        raise UsageError("links with scores are read twice and cannot come from standard input")
    for (pair, _), weights in zip(read_paired(pairs, links), _scored_links(links), strict=True):
        yield LinkedPair(pair, {link: weight for link, weight in weights.items() if weight})


def _scored_links(links: LinkFile) -> Iterator[dict[Link, int]]:
    """The weight of each link, by line; the links have been checked by another reader before."""
    scores = str(links.scores)
    rows = zip_longest(read_lines(links.path), read_lines(scores))
    for number, (written, scored) in enumerate(rows, 1):
        if written is None or scored is None:
            more = number + sum(1 for _ in rows)
            counts = (more, number - 1) if written is None else (number - 1, more)
            raise DataError(f"scores for {counts[0]} sentence pairs, links for {counts[1]}", scores, number)
        positions = [int(digits) - bool(links.one_based) for digits in re.findall("[0-9]+", written[1])]
        order = list(zip(positions[::2], positions[1::2], strict=True))
        if links.swap:
            order = [(i, j) for j, i in order]
        weights = dict(zip(order, _parse_scores(scored[1], len(order), scores, number), strict=True))
        if len(weights) < len(order):
            raise DataError("a link given twice, where each needs one score", links.path, number)
        yield weights


def _parse_scores(text: str, expected: int, path: str, line: int) -> list[int]:
    """The numbers of a line of scores in millionths: `expected` ones, from 0 to 1."""
    found = list(re.finditer(r"[^ \t]+", text))
    if len(found) != expected:
        raise DataError(f"{len(found)} scores for {expected} links", path, line)
    for token in found:
        if not NUMBER.fullmatch(token[0]) or not 0 <= float(token[0]) <= 1:
            message = f"{printable(token[0])} found, expected a number from 0 to 1"
            raise DataError(message, path, line, token.start() + 1)
    return [round(float(token[0]) * UNIT) for token in found]
