"""How well a model translates: BLEU and chrF of its own translations, by sacrebleu."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from data.errors import DataError
from eval.bootstrap import draws

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray
    from sacrebleu.metrics.base import Metric

    from align.models.base import TranslationModel
    from data.bitext import Pair

METRICS = ("bleu", "chrf")


@dataclass(frozen=True)
class Quality:
    """Corpus BLEU and chrF, 0 to 100, on text that is tokenised already.

    `counts` are what each metric adds up over sentences, such as matching n-grams: [N, K].
    """

    bleu: float
    chrf: float
    counts: Mapping[str, NDArray[np.float64]]


def translation_quality(model: TranslationModel, pairs: Sequence[Pair], beam: int = 5) -> Quality:
    """Translate the sources and compare with the targets.

    Raises:
        DataError: no pairs.
        ModelError: a model that cannot translate.
    """
    if not pairs:
        raise DataError("translation quality needs at least one pair")
    return quality_of(model.translate([pair.source for pair in pairs], beam), [pair.target for pair in pairs])


def quality_of(translations: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> Quality:
    """Compare translations with one reference each, all as words."""
    import numpy as np

    texts, expected = [" ".join(words) for words in translations], [[" ".join(words) for words in references]]
    # The steps of sacrebleu's corpus_score, which keeps the counts of sentences to itself.
    counts = {name: np.array(_metric(name)._extract_corpus_statistics(texts, expected), float) for name in METRICS}
    bleu, chrf = (_score(name, counts[name].sum(0)) for name in METRICS)
    return Quality(bleu, chrf, counts)


@dataclass(frozen=True)
class Lost:
    """Points of a metric lost from one system to another, with its 2.5th and 97.5th percentile over resamples."""

    value: float
    low: float | None
    high: float | None


def quality_lost(clean: Quality, other: Quality, resamples: int, seed: int) -> dict[str, Lost]:
    """What `other` loses of each of `METRICS`, by paired bootstrap over sentences (Koehn 2004).

    Raises:
        DataError: the two differ in the number of sentences.
    """
    import numpy as np

    found = {}
    for name in METRICS:
        systems = clean.counts[name], other.counts[name]
        if len(systems[0]) != len(systems[1]):
            raise DataError("translations to compare must be of the same sentences")
        drawn = [
            _score(name, row @ systems[0]) - _score(name, row @ systems[1])
            for rows in draws(len(systems[0]), resamples, seed)
            for row in rows
        ]
        low, high = np.percentile(drawn, [2.5, 97.5]).tolist() if drawn else (None, None)
        found[name] = Lost(getattr(clean, name) - getattr(other, name), low, high)
    return found


@cache
def _metric(name: str) -> Metric:
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    return BLEU(tokenize="none", force=True) if name == "bleu" else CHRF()


def _score(name: str, counts: NDArray[np.float64]) -> float:
    """The metric of a corpus from its summed counts. [K]"""
    return float(_metric(name)._compute_score_from_stats(counts.tolist()).score)
