"""How well a model translates: BLEU and chrF of its own translations, by sacrebleu."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from data.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from align.models.base import TranslationModel
    from data.bitext import Pair


@dataclass(frozen=True)
class Quality:
    """Corpus BLEU and chrF, 0 to 100, on text that is tokenised already."""

    bleu: float
    chrf: float


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
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    texts, expected = [" ".join(words) for words in translations], [[" ".join(words) for words in references]]
    bleu = BLEU(tokenize="none", force=True).corpus_score(texts, expected)
    return Quality(bleu.score, CHRF().corpus_score(texts, expected).score)
