"""Phrase pairs that fit a word alignment."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from data.links import Link

Span: TypeAlias = tuple[int, int]
"""A run of words: the first one, and one past the last."""


def phrase_pairs(
    links: Collection[Link], source_length: int, target_length: int, longest: int
) -> Iterator[tuple[Span, Span]]:
    """The (source span, target span) pairs that are consistent with `links`, as Moses extracts them.

    A pair is consistent if a link joins the two spans and none joins a word inside one of them to a word outside
    the other (Koehn, Och and Marcu 2003, "Statistical Phrase-Based Translation"; Koehn 2010, figure 5.5). Words
    without a link may stand at the borders.

    Args:
        links: of one sentence pair.
        source_length, target_length: I and J.
        longest: most words of a span, on either side.
    """
    sources: list[list[int]] = [[] for _ in range(target_length)]  # source words linked to each target word
    reach: list[Span | None] = [None] * source_length  # first and last target word linked to each source word
    for i, j in links:
        sources[j].append(i)
        low, high = reach[i] or (j, j)
        reach[i] = min(low, j), max(high, j)
    for j1 in range(target_length):
        first, last = source_length, -1  # of the source words linked to the target span
        for j2 in range(j1 + 1, min(j1 + longest, target_length) + 1):
            if sources[j2 - 1]:
                first, last = min(first, *sources[j2 - 1]), max(last, *sources[j2 - 1])
            if last - first >= longest:
                break
            if last >= 0 and all(_inside(reach[i], j1, j2) for i in range(first, last + 1)):
                for i1, i2 in _widened(reach, first, last, longest):
                    yield (i1, i2), (j1, j2)


def _inside(reached: Span | None, j1: int, j2: int) -> bool:
    return reached is None or (j1 <= reached[0] and reached[1] < j2)


def _widened(reach: list[Span | None], first: int, last: int, longest: int) -> Iterator[Span]:
    """The spans of at most `longest` words from `first` to `last` and over unlinked words on both sides."""
    i1 = first
    while True:
        i2 = last + 1
        while i2 - i1 <= longest:
            yield i1, i2
            if i2 == len(reach) or reach[i2] is not None:
                break
            i2 += 1
        i1 -= 1
        if i1 < 0 or reach[i1] is not None:
            return
