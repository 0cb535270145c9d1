"""Known answers: does the source word with the highest score lie where the cause is known to be?

Pointing game after Poerner, Schütze and Roth 2018 ("Evaluating neural network explanation methods using hybrid
documents and morphosyntactic agreement"). Minimal pairs: two sentences differ in one word, and the model's translations
of them part at some word; for that word the cause is known, by the model's own doing. Hybrids: two sentences are
joined, and a word of the translation of one should not rest on the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import torch

from align.extract import Extraction
from align.many import run_methods
from align.methods.erasure import word_spans
from align.pipeline import BATCH_PIECES
from data.bitext import Pair
from eval.bootstrap import MeanInterval, paired_means
from eval.erasure import target_pieces
from eval.faithfulness import RANDOM, orders

if TYPE_CHECKING:
    from collections.abc import Sequence

    from align.methods.base import Method
    from align.models.base import Encoded, TranslationModel
    from data.minimal_pairs import MinimalPair
    from eval.erasure import Floats
    from eval.faithfulness_scores import Row

HYBRID = "hybrid sentences"
UNDEFINED = MeanInterval(None, None, None, None)
SCORES = ("pointing", "pointing_context", "pointing_contrast")
ROUNDING = 1e-4  # of the largest score: a smaller difference between two forms is none
LEAST = 0.1  # probability of a target word of a hybrid below which the model would not have said it


@dataclass(frozen=True)
class Question:
    """A target word of a pair whose cause is known.

    Attributes:
        answer: the source words that are right.
        group: what is drawn together by the bootstrap: the number of its minimal pair or hybrid.
        excused: a source word that the target word translates; the second score leaves it out.
        rival: the same source and prefix with the form that the other sentence decides for, as its last word.
    """

    phenomenon: str
    pair: Encoded
    target: int
    answer: frozenset[int]
    group: int
    excused: int | None = None
    rival: Encoded | None = None


@dataclass(frozen=True)
class Posed:
    """Questions, and how many of each phenomenon could have been posed if the model had followed."""

    questions: list[Question]
    possible: dict[str, int]


def from_minimal_pairs(model: TranslationModel, pairs: Sequence[MinimalPair], beam: int = 5) -> Posed:
    """Questions from minimal pairs that the model follows, two for each: one a sentence.

    The model follows where its own translations of both sentences part at one of the forms, and each sentence prefers
    its own form to the other's after the same prefix.

    Raises:
        ModelError: a model that cannot translate.
    """
    possible: dict[str, int] = {}
    questions: list[Question] = []
    sources = [side for pair in pairs for side in (pair.first, pair.second)]
    translations = model.translate(sources, beam)
    for number, pair in enumerate(pairs):
        possible[pair.phenomenon] = possible.get(pair.phenomenon, 0) + 2
        sides, said = (pair.first, pair.second), translations[2 * number : 2 * number + 2]
        encoded = [model.encode_pair(Pair(2 * number + n, sides[n], said[n])) for n in range(2)]
        if any(e.status != "ok" for e in encoded):
            continue
        parting = _parting(encoded[0].target_words, encoded[1].target_words)
        if parting is None:
            continue
        rivals = [
            model.encode_pair(Pair(2 * number + n, sides[n], encoded[1 - n].target_words[: parting + 1]))
            for n in range(2)
        ]
        if not _decided(model, encoded, rivals, parting, pair.forms):
            continue
        answer, excused = frozenset({pair.cause}), None if pair.translated == pair.cause else pair.translated
        questions += [
            Question(pair.phenomenon, e, parting, answer, number, excused, rival)
            for e, rival in zip(encoded, rivals, strict=True)
        ]
    return Posed(questions, possible)


def _parting(first: Sequence[str], second: Sequence[str]) -> int | None:
    """The first word in which two translations differ; None where one is the start of the other."""
    return next((n for n, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), None)


def _decided(
    model: TranslationModel, encoded: Sequence[Encoded], rivals: Sequence[Encoded], word: int, forms: frozenset[str]
) -> bool:
    """Whether each sentence prefers its own form, one of `forms`, to its rival."""
    if forms and not {e.target_words[word] for e in encoded} <= forms:
        return False
    return all(
        _word_log_probs(model, own)[word] > _word_log_probs(model, rival)[word]
        for own, rival in zip(encoded, rivals, strict=True)
    )


def from_hybrids(model: TranslationModel, pairs: Sequence[Pair]) -> Posed:
    """Questions from each pair joined with the next: a target word of one should point into its own half.

    Words to which the model gives little probability are left out, as it would not have said them.
    """
    questions: list[Question] = []
    possible = 0
    for number, (one, other) in enumerate(pairwise(pairs)):
        source, target = one.source + other.source, one.target + other.target
        joined = model.encode_pair(Pair(number, source, target))
        halves = [model.encode_pair(half) for half in (one, other)]
        if any(e.status != "ok" for e in (joined, *halves)):
            continue
        border, target_border = len(halves[0].source_words), len(halves[0].target_words)
        words = frozenset(word_spans(joined))
        first = frozenset(word for word in words if word < border)
        for target_word, log_prob in _word_log_probs(model, joined).items():
            possible += 1
            if log_prob >= np.log(LEAST):
                own = first if target_word < target_border else words - first
                questions.append(Question(HYBRID, joined, target_word, own, number))
    return Posed(questions, {HYBRID: possible})


@torch.no_grad()
def _word_log_probs(model: TranslationModel, pair: Encoded) -> dict[int, float]:
    batch = model.batch([pair])
    rows = model.log_probs(batch, model.embed(batch))[0]
    return {word: float(rows[pieces].sum()) for word, pieces in target_pieces(pair).items()}


def score(
    model: TranslationModel,
    methods: Sequence[Method],
    posed: Posed,
    resamples: int,
    seed: int,
    batch_pieces: int = BATCH_PIECES,
) -> list[Row]:
    """A row for each phenomenon and method: the share of questions whose top source word is right.

    `pointing_context` asks for the top word among those that the target word does not translate, `pointing_contrast`
    for the top word of the scores less those for the rival form: why this form rather than that one (Yin and Neubig
    2022); undefined for norms, which do not subtract. The row `random` is what a word at random would get, and p-values
    are against it. Intervals are over minimal pairs or hybrids.
    """
    asking = posed.questions
    own = _matrices(model, {q.pair.pair.id: q.pair for q in asking}, methods, batch_pieces)
    rivals = _matrices(model, {q.pair.pair.id: q.rival for q in asking if q.rival}, methods, batch_pieces)
    rows: list[Row] = []
    for phenomenon, possible in posed.possible.items():
        asked = [question for question in asking if question.phenomenon == phenomenon]
        if not asked:
            continue
        contrasted = all(question.rival for question in asked)
        hits = {
            "pointing": [_chances(asked, False), *(_hits(own[m.label], asked, False, seed) for m in methods)],
            "pointing_context": [_chances(asked, True), *(_hits(own[m.label], asked, True, seed) for m in methods)],
        }
        if contrasted:
            hits["pointing_contrast"] = [
                _chances(asked, False),
                *(_hits(own[m.label], asked, False, seed, rivals[m.label]) for m in methods),
            ]
        found = {name: _means(asked, table, resamples, seed) for name, table in hits.items()}
        for n, label in enumerate([RANDOM, *(m.label for m in methods)]):
            kind = methods[n - 1].measured if n else "floor"
            row: Row = {"phenomenon": phenomenon, "measures": kind, "method": label}
            for name in SCORES:
                defined = name in found and not (name == "pointing_contrast" and kind == "sensitivity")
                row |= _fields(name, found[name][n] if defined else UNDEFINED)
            rows.append({**row, "questions": len(asked), "possible": possible})
    return rows


def _fields(name: str, mean: MeanInterval) -> Row:
    return {name: mean.value, f"{name}_low": mean.low, f"{name}_high": mean.high, f"{name}_p": mean.p_value}


def _matrices(
    model: TranslationModel, pairs: dict[int, Encoded], methods: Sequence[Method], batch_pieces: int
) -> dict[str, dict[int, Floats]]:
    """Word scores [J, I] by method and number of the pair."""
    runs = run_methods(model, list(pairs.values()), methods, [Extraction()], batch_pieces)
    return {run.method.label: {key: result.matrix for key, result in run.aligned.items()} for run in runs}


def _means(
    asked: Sequence[Question], table: Sequence[Sequence[float]], resamples: int, seed: int
) -> list[MeanInterval]:
    """The mean of each row of hits, with intervals over the groups of questions."""
    place = {group: n for n, group in enumerate(sorted({question.group for question in asked}))}
    rows = [place[question.group] for question in asked]
    systems = []
    for hits in table:
        sums = np.zeros((len(place), 2))
        np.add.at(sums, rows, np.stack([hits, np.ones(len(hits))], axis=1))
        systems.append([(hit, count) for hit, count in sums.tolist()])
    return paired_means(systems, resamples, seed)


def _candidates(question: Question, context: bool) -> list[int]:
    """The source words that may be the top one: all, or without the word that is translated."""
    return [word for word in word_spans(question.pair) if not (context and word == question.excused)]


def _chances(asked: Sequence[Question], context: bool) -> list[float]:
    """How often a word at random is right."""
    words = [(question, _candidates(question, context)) for question in asked]
    return [len(question.answer & set(found)) / len(found) for question, found in words]


def _hits(
    matrices: dict[int, Floats],
    asked: Sequence[Question],
    context: bool,
    seed: int,
    rivals: dict[int, Floats] | None = None,
) -> list[float]:
    """Whether the top words are right; ties fall at random, from a generator of the question's own."""
    found = []
    for question in asked:
        key, row = question.pair.pair.id, question.target
        scores = matrices[key][row]
        if rivals:
            contrast = scores - rivals[key][row]
            scores = np.where(abs(contrast) > ROUNDING * abs(scores).max(), contrast, 0)
        rng = np.random.default_rng([seed, key, row])
        ((top, *_),) = orders(scores[None], _candidates(question, context), [0], rng)
        found.append(float(top in question.answer))
    return found
