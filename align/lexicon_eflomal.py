"""What eflomal's priors hold beside a lexicon: how many links words have, and how links jump."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from align.lexicon_input import LinkedPair
    from data.links import Link


@dataclass
class Priors:
    """Counts over a corpus (Östling and Tiedemann 2016, "Efficient Word Alignment with Markov Chain Monte Carlo").

    A jump is the distance from the source word of the last link of a target word to that of the first link of
    the next linked target word, in links sorted by both; a sentence starts before its first and ends after its
    last word.

    Attributes:
        source_fertility, target_fertility: how often a word has n links, n at least 1, by (word, n).
        source_jumps: how often a jump of some size over source words occurs in the order of target words.
        target_jumps: the same with sides exchanged.
    """

    source_fertility: Counter[tuple[str, int]] = field(default_factory=Counter)
    target_fertility: Counter[tuple[str, int]] = field(default_factory=Counter)
    source_jumps: Counter[int] = field(default_factory=Counter)
    target_jumps: Counter[int] = field(default_factory=Counter)

    def watch(self, pairs: Iterable[LinkedPair]) -> Iterator[LinkedPair]:
        """The pairs, counted as they go by."""
        for linked in pairs:
            links = linked.weights.keys()
            source, target = linked.pair.source, linked.pair.target
            self.source_fertility.update((source[i], n) for i, n in Counter(i for i, _ in links).items())
            self.target_fertility.update((target[j], n) for j, n in Counter(j for _, j in links).items())
            self.source_jumps.update(_jumps(links, len(source)))
            self.target_jumps.update(_jumps([(j, i) for i, j in links], len(target)))
            yield linked

    def lines(self) -> Iterator[str]:
        """The FERF, FERR, HMMF and HMMR rows, with line ends."""
        for name, fertility in (("FERF", self.source_fertility), ("FERR", self.target_fertility)):
            for (word, links), count in sorted(fertility.items()):
                if "\r" not in word:  # which would end the line
                    yield f"{name}\t{word}\t{links}\t{count}\n"
        for name, jumps in (("HMMF", self.source_jumps), ("HMMR", self.target_jumps)):
            for jump, count in sorted(jumps.items()):
                yield f"{name}\t{jump}\t{count}\n"


def _jumps(links: Collection[Link], length: int) -> Iterator[int]:
    """The jumps of one pair of which the side with the jumps has `length` words."""
    last_i = last_j = -1
    for i, j in sorted(links, key=itemgetter(1, 0)):
        if j != last_j:
            yield i - last_i
        last_i, last_j = i, j
    yield length - last_i
