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
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    if not pairs:
        raise DataError("translation quality needs at least one pair")
    translations = [" ".join(words) for words in model.translate([pair.source for pair in pairs], beam)]
    references = [[" ".join(pair.target) for pair in pairs]]
    bleu = BLEU(tokenize="none", force=True).corpus_score(translations, references)
    return Quality(bleu.score, CHRF().corpus_score(translations, references).score)
