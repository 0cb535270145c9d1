"""BLEU and chrF, and what is lost of them, against sacrebleu on every resampled corpus."""

from __future__ import annotations

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF

from data.errors import DataError
from eval.quality import quality_lost, quality_of

REFERENCES = [line.split() for line in ("the house is small", "a cat sat on the mat", "we agree with you", "yes it is")]
GOOD = [line.split() for line in ("the house is small", "a cat sat on a mat", "we agree with him", "yes it was")]
BAD = [line.split() for line in ("the the small", "cat on mat sat", "we agree with you", "no")]


def sacrebleu_scores(translations, references):
    texts, expected = [" ".join(t) for t in translations], [[" ".join(r) for r in references]]
    return BLEU(tokenize="none").corpus_score(texts, expected).score, CHRF().corpus_score(texts, expected).score


def test_scores_are_those_of_sacrebleu():
    found = quality_of(GOOD, REFERENCES)
    assert (found.bleu, found.chrf) == pytest.approx(sacrebleu_scores(GOOD, REFERENCES))


def test_interval_of_a_loss_is_that_of_the_resampled_corpora():
    clean, other = quality_of(GOOD, REFERENCES), quality_of(BAD, REFERENCES)
    lost = quality_lost(clean, other, 40, 3)
    drawn = []
    for chosen in np.random.default_rng(3).integers(4, size=(40, 4)):
        scores = [sacrebleu_scores([s[n] for n in chosen], [REFERENCES[n] for n in chosen]) for s in (GOOD, BAD)]
        drawn.append(np.subtract(*scores))
    for n, name in enumerate(("bleu", "chrf")):
        expected = sacrebleu_scores(GOOD, REFERENCES)[n] - sacrebleu_scores(BAD, REFERENCES)[n]
        assert lost[name].value == pytest.approx(expected)
        assert [lost[name].low, lost[name].high] == pytest.approx(np.percentile(np.array(drawn)[:, n], [2.5, 97.5]))


def test_nothing_is_lost_to_the_same_translations():
    same = quality_of(GOOD, REFERENCES)
    assert all((one.value, one.low, one.high) == (0, 0, 0) for one in quality_lost(same, same, 20, 1).values())
    assert quality_lost(same, same, 0, 1)["bleu"].low is None


def test_other_sentences_are_refused():
    with pytest.raises(DataError, match="same sentences"):
        quality_lost(quality_of(GOOD, REFERENCES), quality_of(BAD[:3], REFERENCES[:3]), 10, 1)
