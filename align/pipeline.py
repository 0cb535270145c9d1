"""Sentence pairs in, alignments out: batches by length, order restored, one status for every pair."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import torch

from align.extract import Extracted, Extraction, extract
from align.models.base import plan_batches
from data.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from align.extract import Matrix
    from align.methods.base import Method
    from align.models.base import Encoded, TranslationModel
    from data.bitext import Pair
    from data.links import Link, Links

WINDOW = 1024  # pairs sorted by length together
BATCH_PIECES = 400  # B x (S + T) of a batch, times the factor of the method
MOST_UNKNOWN = 0.2


@dataclass(frozen=True)
class Aligned:
    """The alignment of one pair. `status`: `ok`, `empty`, `too_long`, `non_finite`, `oom` (out of memory).

    `scores` holds for each link its share of the row; `matrix` is the soft alignment of words, [J, I].
    """

    encoded: Encoded
    scores: dict[Link, float]
    matrix: Matrix
    status: str

    @property
    def links(self) -> Links:
        return frozenset(self.scores)


def align_pairs(
    model: TranslationModel,
    pairs: Iterable[Pair],
    method: Method,
    how: Extraction,
    batch_pieces: int = BATCH_PIECES,
    most_unknown: float = MOST_UNKNOWN,
) -> Iterator[Aligned]:
    """Align pairs in constant memory; results come in the order of the input.

    Raises:
        ModelError: more than the share `most_unknown` of the pieces of a window are unknown to the model.
    """
    for window in windows(pairs):
        encoded = encode_pairs(model, window, most_unknown)
        yield from _align_window(model, encoded, method, how, batch_pieces)


def windows(pairs: Iterable[Pair], size: int = WINDOW) -> Iterator[list[Pair]]:
    """Runs of `size` pairs."""
    rest = iter(pairs)
    while window := list(islice(rest, size)):
        yield window


def translated_pairs(model: TranslationModel, sources: Iterable[Pair], beam: int) -> Iterator[Pair]:
    """Pairs of sources and the model's translations of them.

    Raises:
        ModelError: a model that cannot translate.
    """
    for window in windows(sources):
        targets = model.translate([pair.source for pair in window], beam)
        yield from (replace(pair, target=target) for pair, target in zip(window, targets, strict=True))


def encode_pairs(model: TranslationModel, pairs: Iterable[Pair], most_unknown: float = MOST_UNKNOWN) -> list[Encoded]:
    """Cut pairs into pieces and refuse text that the model was evidently not made for.

    Raises:
        ModelError: as `align_pairs`.
    """
    encoded = [model.encode_pair(pair) for pair in pairs]
    total = sum(len(e.source) + len(e.target) for e in encoded)
    unknown = sum(e.unknown for e in encoded)
    if total and unknown / total > most_unknown:
        raise ModelError(
            f"{unknown / total:.0%} of the pieces of this text are unknown to {model.name}: check the dictionaries, "
            "the BPE codes and which side is which (--max-unknown 1 goes on all the same)"
        )
    return encoded


def _align_window(
    model: TranslationModel, encoded: list[Encoded], method: Method, how: Extraction, batch_pieces: int
) -> Iterator[Aligned]:
    done: dict[int, Aligned] = {}
    pieces = batch_pieces * method.evidence.on(model).batch_factor
    for group in plan_batches([e for e in encoded if e.status == "ok"], pieces):
        for result in _align_group(model, group, method, how):
            done[result.encoded.pair.id] = result
    for pair in encoded:
        yield done.pop(pair.pair.id) if pair.status == "ok" else unaligned(pair)


def _align_group(model: TranslationModel, group: list[Encoded], method: Method, how: Extraction) -> Iterator[Aligned]:
    """The results of a batch. Where memory is short it is halved, down to single pairs, which then end as `oom`."""
    try:
        batch = model.batch(group)
        with torch.no_grad():
            scores = method.scores(model, batch)
        found = extract(scores, batch, how)
    except (MemoryError, RuntimeError) as error:
        if not _out_of_memory(error):
            raise
    else:
        yield from map(aligned, group, found)
        return
    # Not in the handler: the error would keep the tensors of the attempt.
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    if len(group) == 1:
        yield unaligned(replace(group[0], status="oom"))
        return
    half = len(group) // 2
    yield from _align_group(model, group[:half], method, how)
    yield from _align_group(model, group[half:], method, how)


def _out_of_memory(error: Exception) -> bool:
    """Whether memory was short; PyTorch has no class of its own for that on CPU."""
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in str(error)


def aligned(pair: Encoded, found: Extracted) -> Aligned:
    """The result of a pair that went through the model."""
    return Aligned(pair, found.scores, found.matrix, "ok" if found.finite else "non_finite")


def unaligned(pair: Encoded) -> Aligned:
    """The result of a pair that could not go through the model: no links, and its status."""
    return Aligned(pair, {}, np.zeros((len(pair.target_words), len(pair.source_words))), pair.status)
