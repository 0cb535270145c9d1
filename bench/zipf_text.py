"""Text with links that grows as real text does, of any size: for measuring what memory a corpus takes.

Words are numbers, their frequency rank. Ranks follow two power laws, r^-1 up to rank 7,873 and r^-1.77 beyond, which
Gerlach and Altmann (2013, "Stochastic model for the vocabulary growth in natural languages", Physical Review X 3)
found in English text: so the vocabulary never stops growing. A word is translated by one of many words of similar
rank, the k-th of them with probability 1 / (k (k + 1)). One source word in ten has no link, one target word in ten is
inserted, and one link in five goes to a word near by instead, as those of aligners do.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

KNEE, STEEP = 7873, 1.77
LENGTH = 17.0
"""Mean number of words of a sentence, as in the Hansards."""
MOST = 2**40
_CHUNK = 20_000


def write(folder: Path, pairs: int, seed: int = 1) -> None:
    """Write files `source`, `target` and `links` of so many pairs."""
    rng = np.random.default_rng(seed)
    names = ("source", "target", "links")
    files = [open(folder / name, "w", encoding="ascii", newline="\n") for name in names]  # noqa: SIM115
    for start in range(0, pairs, _CHUNK):
        for file, lines in zip(files, chunk(rng, min(_CHUNK, pairs - start)), strict=True):
            file.write("\n".join(lines) + "\n")
    for file in files:
        file.close()


def chunk(rng: np.random.Generator, pairs: int) -> tuple[list[str], list[str], list[str]]:
    """Source sentences, target sentences and links of some pairs."""
    lengths = 1 + rng.negative_binomial(3, 3 / (3 + LENGTH - 1), pairs)
    source = ranks(rng, int(lengths.sum()))
    target = np.where(rng.random(len(source)) < 0.1, ranks(rng, len(source)), translated(rng, source))
    ends = np.cumsum(lengths)
    place = np.arange(len(source)) - np.repeat(ends - lengths, lengths)
    moved = np.where(rng.random(len(source)) < 0.2, rng.integers(-3, 4, len(source)), 0)
    other = np.clip(place + moved, 0, np.repeat(lengths, lengths) - 1)
    linked = rng.random(len(source)) >= 0.1
    left, right = ([f"{side}{rank:x}" for rank in words.tolist()] for side, words in (("s", source), ("t", target)))
    links = [f"{i}-{j}" if on else "" for i, j, on in zip(place.tolist(), other.tolist(), linked.tolist(), strict=True)]
    spans = list(zip((ends - lengths).tolist(), ends.tolist(), strict=True))
    sentences = ([" ".join(words[a:b]) for a, b in spans] for words in (left, right))
    return next(sentences), next(sentences), [" ".join(filter(None, links[a:b])) for a, b in spans]


def ranks(rng: np.random.Generator, size: int) -> Ints:
    """Frequency ranks of running words, from 1."""
    head, tail = np.log(KNEE), 1 / (STEEP - 1)
    flat = np.exp(head * rng.random(size))
    steep = KNEE * (1 - rng.random(size)) ** -tail
    return np.minimum(np.where(rng.random(size) < head / (head + tail), flat, steep), MOST).astype(np.int64)


def translated(rng: np.random.Generator, source: Ints) -> Ints:
    """For each word one of its translations: the k-th is the word of rank r x 2^h, h in -1..1 hashed from r and k."""
    k = np.minimum(1 / (1 - rng.random(len(source))), 1000).astype(np.int64)
    mixed = (source * 2654435761 + (k - 1) * 40503 * 65537) % 65536 / 32768 - 1
    return np.maximum(1, source * np.exp2(np.where(k == 1, 0, mixed))).astype(np.int64)
