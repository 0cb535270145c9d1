"""Symmetrisation: the links of a source-to-target and a target-to-source model combined into one set.

The programs in use grow the intersection by different rules under similar names; here each rule has its name:

* `grow-diag…`: Moses' symal (Koehn et al. 2003, "Statistical Phrase-Based Translation"). A neighbour joins if
  one of its words is still free; walks the links, in (target, source) order.
* `atools-grow-diag…`: fast_align's atools. As above, but walks the candidates, in (source, target) order.
* `lilt-grow-diag…`: alignment-scripts (Zenkel et al. 2019). A neighbour joins only if both words are free;
  walks the links, in (source, target) order.

Added links count at once. A final step takes what it can of the forward links, then of the reverse ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Literal

from data.errors import UsageError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from data.links import Link, Links

Walk = Literal["links", "candidates"]
Free = Literal["one", "both"]

# Offsets in the order in which a rule visits them; a pair is in the rule's own order of the two sides.
_BESIDE = ((-1, 0), (0, -1), (1, 0), (0, 1))
_AROUND = (*_BESIDE, (-1, -1), (-1, 1), (1, -1), (1, 1))
# alignment-scripts iterates over a set: its order up to CPython 3.7, which gives the published files.
_AROUND_LILT = ((0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, 0), (1, -1), (1, 1))


@dataclass(frozen=True)
class _Rule:
    """How to grow from the intersection: what is walked, which words must be free, which side sorts first."""

    walk: Walk
    neighbours: tuple[tuple[int, int], ...]
    growth: Free
    final: Free | None
    target_first: bool


_RULES = {
    "grow": _Rule("links", _BESIDE, "one", None, target_first=True),
    "grow-diag": _Rule("links", _AROUND, "one", None, target_first=True),
    "grow-diag-final": _Rule("links", _AROUND, "one", "one", target_first=True),
    "grow-diag-final-and": _Rule("links", _AROUND, "one", "both", target_first=True),
    "atools-grow-diag": _Rule("candidates", _AROUND, "one", None, target_first=False),
    "atools-grow-diag-final": _Rule("candidates", _AROUND, "one", "one", target_first=False),
    "atools-grow-diag-final-and": _Rule("candidates", _AROUND, "one", "both", target_first=False),
    "lilt-grow-diag": _Rule("links", _AROUND_LILT, "both", None, target_first=False),
    "lilt-grow-diag-final": _Rule("links", _AROUND_LILT, "both", "both", target_first=False),
}
METHODS = ("intersection", "union", "forward", "reverse", *_RULES)
_ALIASES = {
    "i": "intersection",
    "intersect": "intersection",
    "u": "union",
    "g": "grow",
    "gd": "grow-diag",
    "gdf": "grow-diag-final",
    "gdfa": "grow-diag-final-and",
    "grow-diagonal-final-and": "grow-diag-final-and",
    "lilt-grow-diagonal": "lilt-grow-diag",
    "lilt-grow-diagonal-final": "lilt-grow-diag-final",
}
# Moses people and alignment-scripts people mean different rules by these.
_AMBIGUOUS = {
    "grow-diagonal": "grow-diag",
    "grow-diagonal-final": "grow-diag-final",
}


def method_name(name: str, others: tuple[str, ...] = ()) -> str:
    """The name in `METHODS` that `name` stands for: case, underscores and the usual short forms are accepted.

    The error for an unknown name lists `others` too.

    Raises:
        UsageError: `name` is unknown, or is one that two programs use for different rules.
    """
    plain = name.strip().lower().replace("_", "-")
    if plain in METHODS:
        return plain
    if plain in _AMBIGUOUS:
        moses = _AMBIGUOUS[plain]
        raise UsageError(f"{plain!r} can mean {moses!r} (Moses) or 'lilt-{moses}' (alignment-scripts): say which")
    if plain not in _ALIASES:
        raise unknown_name("symmetrisation", name, (*METHODS, *others))
    return _ALIASES[plain]


def symmetrize(forward: Links, reverse: Links, method: str = "grow-diag-final-and") -> Links:
    """Combine two sets of (source, target) links.

    Args:
        forward: links of the source-to-target model.
        reverse: links of the target-to-source model, already turned to (source, target).
        method: one of `METHODS`, or a short form that `method_name` knows.

    Returns:
        a set between the intersection and the union (for `forward` and `reverse`, that set itself).

    Raises:
        UsageError: unknown or ambiguous method.
    """
    name = method_name(method)
    match name:
        case "intersection":
            return forward & reverse
        case "union":
            return forward | reverse
        case "forward":
            return forward
        case "reverse":
            return reverse
    if forward == reverse:
        return forward
    rule = _RULES[name]
    if rule.target_first:
        return frozenset(_inverted(_combine(_inverted(forward), _inverted(reverse), rule)))
    return frozenset(_combine(forward, reverse, rule))


class _Growing:
    """Links so far and the words that they cover, in the rule's order of the two sides."""

    def __init__(self, links: Iterable[Link]) -> None:
        self.links = set(links)
        self.first = {a for a, _ in self.links}
        self.second = {b for _, b in self.links}

    def add_if_free(self, link: Link, free: Free) -> bool:
        """Add `link` and return True iff `free` ("one" or "both") of its words have no link yet."""
        covered = (link[0] in self.first) + (link[1] in self.second)
        if covered == 2 or (covered == 1 and free == "both"):
            return False
        self.links.add(link)
        self.first.add(link[0])
        self.second.add(link[1])
        return True


def _combine(forward: Iterable[Link], reverse: Iterable[Link], rule: _Rule) -> set[Link]:
    """Intersection, growth, final step; the sides of all links already stand in the rule's order."""
    forward, reverse = set(forward), set(reverse)
    growing = _Growing(forward & reverse)
    candidates = forward ^ reverse
    grow = _grow_from_links if rule.walk == "links" else _grow_from_candidates
    grow(growing, candidates, rule)
    if rule.final:
        for directional in (forward, reverse):
            for link in sorted(directional & candidates):
                growing.add_if_free(link, rule.final)
    return growing.links


def _grow_from_links(growing: _Growing, candidates: set[Link], rule: _Rule) -> None:
    """Walk the links in ascending order, also those added ahead, and take their free neighbours; repeat."""
    added = True
    while added:
        added = False
        ahead = sorted(growing.links)  # a sorted list is a heap
        while ahead:
            a, b = link = heappop(ahead)
            for da, db in rule.neighbours:
                near = (a + da, b + db)
                if near in candidates and growing.add_if_free(near, rule.growth):
                    added = True
                    if near > link:
                        heappush(ahead, near)


def _grow_from_candidates(growing: _Growing, candidates: set[Link], rule: _Rule) -> None:
    """Walk the candidates in ascending order and take those that are free and beside a link; repeat."""
    left = sorted(candidates)
    added = True
    while added:
        remaining = [
            link
            for link in left
            if not (_touches(link, growing.links, rule) and growing.add_if_free(link, rule.growth))
        ]
        added = len(remaining) < len(left)
        left = remaining


def _touches(link: Link, links: set[Link], rule: _Rule) -> bool:
    a, b = link
    return any((a + da, b + db) in links for da, db in rule.neighbours)


def _inverted(links: Iterable[Link]) -> Iterable[Link]:
    return ((b, a) for a, b in links)
