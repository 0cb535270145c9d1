"""Occlusion, omission and resampling: what the model loses when a source word is not there.

A word goes with all its pieces. Its loss of log p stands at its first piece and the others are zero, so that the sum
over the pieces of a word is the word's loss and the best piece belongs to the best word.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
import torch

from align.methods.base import SIGNS, Evidence, Method, Passes, apply_sign
from align.methods.draws import WordDrawer
from align.methods.erasure import PIECES, rows_of
from align.models.base import BASELINES
from align.models.inside import word_counts
from align.models.prefix import PrefixView
from align.models.subwords import NO_WORD
from data.errors import UsageError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from torch import Tensor

    from align.models.base import Batch, Encoded, TranslationModel

UNITS = ("word", "piece")
OBJECTIVES = ("log-prob", "prob")


class Unit(NamedTuple):
    """A word or piece to take away: pieces `start`..`end` - 1 of sentence `row` of a batch."""

    row: int
    start: int
    end: int


def units(batch: Batch, unit: str) -> list[Unit]:
    """The words, or the pieces of words, of every sentence; `</s>`, tags and padding are never taken away."""
    found: list[Unit] = []
    for row, words in enumerate(batch.source_word_of.tolist()):
        for column, word in enumerate(words):
            if word == NO_WORD:
                continue
            if unit == "word" and column and words[column - 1] == word:
                found[-1] = found[-1]._replace(end=column + 1)
            else:
                found.append(Unit(row, column, column + 1))
    return found


def _count(pair: Encoded, unit: str) -> int:
    """The number of units of a pair."""
    words = [word for word in pair.source_word_of if word != NO_WORD]
    return len(set(words)) if unit == "word" else len(words)


def losses(
    model: TranslationModel, batch: Batch, taken: Sequence[Unit], log_probs: Callable[[slice], Tensor]
) -> dict[str, Tensor]:
    """What is lost without each unit, written to its first piece and summed where a unit is taken several times.

    Args:
        taken: the units, one for each variant of the batch.
        log_probs: log p of the target pieces in a slice of the variants, [n, T'], 0 at padding, T' at most T.

    Returns:
        `log-prob` and `prob`, [B, T, S] each.
    """
    before = model.log_probs(batch, model.embed(batch))  # [B, T]
    lost = before.new_zeros(len(OBJECTIVES), len(batch), batch.source.shape[1], before.shape[1])  # [2, B, S, T]
    size = max(1, PIECES // (batch.source.shape[1] + before.shape[1]))
    for start in range(0, len(taken), size):
        part = slice(start, start + size)
        rows = torch.tensor([unit.row for unit in taken[part]], device=before.device)
        columns = torch.tensor([unit.start for unit in taken[part]], device=before.device)
        after = log_probs(part)
        after = torch.nn.functional.pad(after, (0, before.shape[1] - after.shape[1]))
        lost[0].index_put_((rows, columns), before[rows] - after, accumulate=True)
        lost[1].index_put_((rows, columns), before[rows].exp() - after.exp(), accumulate=True)
    scores = lost.transpose(-1, -2)
    if isinstance(model, PrefixView):
        scores = scores.tril()  # what is taken away later changes a prediction by rounding only
    return dict(zip(OBJECTIVES, scores, strict=True))


@dataclass(frozen=True)
class Occluded(Evidence):
    """Losses when the embeddings of a unit are replaced by a baseline; positions stay. Keys as `losses`."""

    baseline: str
    unit: str

    def compute(self, model: TranslationModel, batch: Batch) -> dict[str, Tensor]:
        taken = units(batch, self.unit)
        inputs = model.embed(batch)
        absent = model.baseline(self.baseline)
        positions = torch.arange(inputs.shape[1], device=inputs.device)

        def log_probs(part: slice) -> Tensor:
            rows, starts, ends = torch.tensor(taken[part], device=inputs.device).T
            hidden = (positions >= starts[:, None]) & (positions < ends[:, None])  # [n, S]
            return model.log_probs(rows_of(batch, rows), torch.where(hidden[..., None], absent, inputs[rows]))

        return losses(model, batch, taken, log_probs)

    def passes(self, pair: Encoded) -> Passes:
        return Passes(forward=1 + _count(pair, self.unit))


@dataclass(frozen=True)
class Omitted(Evidence):
    """Losses when a unit is deleted and later positions move up. Keys as `losses`."""

    unit: str

    def compute(self, model: TranslationModel, batch: Batch) -> dict[str, Tensor]:
        taken = units(batch, self.unit)
        variants = [_spliced(batch, unit, ()) for unit in taken]
        return losses(model, batch, taken, lambda part: _log_probs(model, variants[part]))

    def passes(self, pair: Encoded) -> Passes:
        return Passes(forward=1 + _count(pair, self.unit))


def _spliced(batch: Batch, unit: Unit, pieces: tuple[int, ...]) -> Encoded:
    """The unit's sentence with other pieces in its place."""
    # Padding on the left moves the columns of the batch.
    shift = int(batch.source_mask[unit.row].int().argmax())
    return batch.pairs[unit.row].spliced(unit.start - shift, unit.end - shift, pieces)


def _log_probs(model: TranslationModel, pairs: Sequence[Encoded]) -> Tensor:
    batch = model.batch(pairs)
    return model.log_probs(batch, model.embed(batch))


@dataclass(frozen=True)
class Resampled(Evidence):
    """Mean losses when a word is replaced by words drawn from a frequency list. Keys as `losses`.

    Draws of a sentence come from its own generator. A drawn word is another one and has no more pieces than the word
    it replaces, so that no sentence outgrows the model.
    """

    draws: int
    words: str
    seed: int

    def compute(self, model: TranslationModel, batch: Batch) -> dict[str, Tensor]:
        taken = [unit for unit in units(batch, "word") for _ in range(self.draws)]
        draw = WordDrawer(model, self.words)
        generators = [np.random.default_rng([self.seed, pair.pair.id]) for pair in batch.pairs]
        variants = [
            _spliced(batch, unit, draw(generators[unit.row], batch.source[unit.row, unit.start : unit.end].tolist()))
            for unit in taken
        ]
        summed = losses(model, batch, taken, lambda part: _log_probs(model, variants[part]))
        return {key: value / self.draws for key, value in summed.items()}

    def passes(self, pair: Encoded) -> Passes:
        return Passes(forward=1 + self.draws * _count(pair, "word"))


@dataclass(frozen=True)
class _Erasure(Method):
    """`sign` and `objective` say how losses are read: of log p, or of p."""

    sign: str = "positive"
    objective: str = "log-prob"

    family: ClassVar[str] = "occlusion"
    measures: ClassVar[str] = "saliency"

    def __post_init__(self) -> None:
        choices = {"sign": SIGNS, "objective": OBJECTIVES, "unit": UNITS, "baseline": BASELINES}
        for name, value in self.options().items():
            if name in choices and value not in choices[name]:
                raise unknown_name(name, str(value), choices[name])

    def read(self, evidence: Mapping[str, Tensor], batch: Batch) -> Tensor:
        return apply_sign(evidence[self.objective], self.sign)


@dataclass(frozen=True)
class Occlusion(_Erasure):
    """Loss of log p when a word's embeddings are replaced by a vector that stands for absence; positions stay."""

    baseline: str = "zero"
    unit: str = "word"

    name: ClassVar[str] = "occlusion"
    summary: ClassVar[str] = "loss of log p when a source word is blanked out"
    citation: ClassVar[str] = "Zeiler and Fergus 2014; Li et al. 2016 (erasure); for MT Li et al. 2019 (ACL)"
    compared: ClassVar[Mapping[str, Callable[[TranslationModel], Sequence[object]]]] = {
        "baseline": lambda model: BASELINES
    }

    @property
    def evidence(self) -> Occluded:
        return Occluded(self.baseline, self.unit)


@dataclass(frozen=True)
class Omission(_Erasure):
    """Loss of log p when a word is deleted from the sentence and later words move up."""

    unit: str = "word"

    name: ClassVar[str] = "omission"
    summary: ClassVar[str] = "loss of log p when a source word is deleted"
    citation: ClassVar[str] = "Kádár et al. 2017"

    @property
    def evidence(self) -> Omitted:
        return Omitted(self.unit)


@dataclass(frozen=True)
class Resampling(_Erasure):
    """Mean loss of log p when a word is replaced by words drawn by frequency.

    `words` is a file of words and counts; without it the model's own dictionary is the list.
    """

    draws: int = 5
    words: str = ""
    seed: int = 0

    name: ClassVar[str] = "resampling"
    summary: ClassVar[str] = "mean loss of log p when a source word is replaced by random words"
    citation: ClassVar[str] = "Zintgraf et al. 2017"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.draws < 1 or self.seed < 0:
            raise UsageError(f"draws must be at least 1 and seed at least 0, not {self.draws} and {self.seed}")

    def check(self, model: TranslationModel) -> None:
        if not self.words:
            word_counts(model)

    @property
    def evidence(self) -> Resampled:
        return Resampled(self.draws, self.words, self.seed)
