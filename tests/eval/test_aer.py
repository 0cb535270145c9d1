"""AER and its kin against a slow twin, by hand on small cases, and by their algebra."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.errors import DataError, UsageError
from data.links import GoldAlignment, Links, parse_gold, parse_links, read_gold
from eval.aer import AlignmentStats, Scores, corpus_stats, scores, sentence_stats, total

Corpus = list[tuple[Links, GoldAlignment]]

CELLS = [(i, j) for i in range(3) for j in range(3)]
links = st.integers(0, 2**9 - 1).map(lambda bits: frozenset(c for n, c in enumerate(CELLS) if bits >> n & 1))
corpora = st.lists(st.tuples(links, st.builds(GoldAlignment, links, links)), max_size=5)


def score(corpus: Corpus, alpha: float = 0.5) -> Scores:
    return scores(total(sentence_stats(a, gold) for a, gold in corpus), alpha)


def twin(corpus: Corpus) -> dict[str, Fraction | None]:
    """The definitions, counted link by link in exact arithmetic."""
    sure_hits = possible_hits = found = sure = 0
    for hypothesis, gold in corpus:
        for link in hypothesis:
            found += 1
            if link in gold.sure:
                sure_hits += 1
            if link in gold.sure or link in gold.possible:
                possible_hits += 1
        for _ in gold.sure:
            sure += 1
    precision = Fraction(possible_hits, found) if found else None
    recall = Fraction(sure_hits, sure) if sure else None
    aer = 1 - Fraction(sure_hits + possible_hits, found + sure) if found + sure else None
    f1 = None
    if precision is not None and recall is not None:
        f1 = 2 * precision * recall / (precision + recall) if precision and recall else Fraction(0)
    return {"aer": aer, "precision": precision, "recall": recall, "f1": f1}


@settings(deadline=None)
@given(corpora)
def test_equals_its_slow_twin(corpus: Corpus) -> None:
    result = score(corpus)
    for name, expected in twin(corpus).items():
        value = getattr(result, name)
        assert value == (None if expected is None else pytest.approx(float(expected), abs=1e-12)), name
    assert result.f_alpha == result.f1


@settings(deadline=None)
@given(corpora)
def test_aer_is_a_fraction_and_zero_exactly_between_sure_and_possible(corpus: Corpus) -> None:
    aer = score(corpus).aer
    if aer is None:
        assert not any(a or gold.sure for a, gold in corpus)
    else:
        assert 0 <= aer <= 1
        assert (aer == 0) == all(gold.sure <= a <= gold.possible for a, gold in corpus)


@settings(deadline=None)
@given(corpora, corpora)
def test_statistics_add_up(first: Corpus, second: Corpus) -> None:
    def summed(corpus: Corpus) -> AlignmentStats:
        return total(corpus_stats([a for a, _ in corpus], [gold for _, gold in corpus]))

    assert summed(first) + summed(second) == summed(first + second)


@settings(deadline=None)
@given(corpora, links)
def test_more_possible_links_never_raise_aer(corpus: Corpus, more: Links) -> None:
    before = score(corpus).aer
    after = score([(a, GoldAlignment(gold.sure, gold.possible | more)) for a, gold in corpus]).aer
    assert (before is None and after is None) or (after is not None and before is not None and after <= before)


@settings(deadline=None)
@given(corpora)
def test_f1_is_one_minus_aer_where_all_links_are_sure(corpus: Corpus) -> None:
    result = score([(a, GoldAlignment(gold.sure, gold.sure)) for a, gold in corpus])
    if result.f1 is not None:
        assert result.aer == pytest.approx(1 - result.f1, abs=1e-12)


# One sentence by hand: A = {00, 11, 12, 33}, S = {00, 11, 22}, P = S and {12, 32}.

HYPOTHESIS = "0-0 1-1 1-2 3-3"
GOLD = "0-0 1-1 2-2 1p2 3p2"


def by_hand(hypothesis: str, gold: GoldAlignment, alpha: float = 0.5) -> Scores:
    return score([(parse_links(hypothesis), gold)], alpha)


def test_worked_case() -> None:
    result = by_hand(HYPOTHESIS, parse_gold(GOLD), alpha=0.25)
    assert result.precision == 3 / 4
    assert result.recall == 2 / 3
    assert result.aer == pytest.approx(1 - (2 + 3) / (4 + 3))
    assert result.f1 == pytest.approx(2 * (3 / 4) * (2 / 3) / (3 / 4 + 2 / 3))
    assert result.f_alpha == pytest.approx(1 / (0.25 / (3 / 4) + 0.75 / (2 / 3)))


def test_what_possible_links_and_the_base_do() -> None:
    gold = parse_gold(GOLD)
    ignored = by_hand(HYPOTHESIS, GoldAlignment(gold.sure, gold.sure))
    all_sure = by_hand(HYPOTHESIS, GoldAlignment(gold.possible, gold.possible))
    assert ignored.aer == pytest.approx(1 - (2 + 2) / (4 + 3))
    assert all_sure.aer == pytest.approx(1 - (3 + 3) / (4 + 5))
    one_based = by_hand("1-1 2-2 2-3 4-4", gold)  # only 1-1 and 2-2 happen to be links
    assert one_based.aer == pytest.approx(1 - (2 + 2) / (4 + 3))
    swapped = by_hand("0-0 1-1 2-1 3-3", gold)
    assert swapped.aer == pytest.approx(1 - (2 + 2) / (4 + 3))


def test_corpus_figures_are_not_means_of_sentences() -> None:
    corpus = [
        (parse_links("0-0"), parse_gold("0-0")),
        (parse_links("0-1 1-0 2-2"), parse_gold("0-0 1-1 2-2")),
    ]
    assert score(corpus).aer == pytest.approx(1 - 4 / 8)


@pytest.mark.parametrize(
    ("hypothesis", "gold", "expected"),
    [
        ("", "", Scores(None, None, None, None, None)),
        ("", "0p0", Scores(None, None, None, None, None)),
        ("", "0-0", Scores(1.0, None, 0.0, None, None)),
        ("0-0", "", Scores(1.0, 0.0, None, None, None)),
        ("0-0", "0p0", Scores(0.0, 1.0, None, None, None)),
        ("0-0", "1-1", Scores(1.0, 0.0, 0.0, 0.0, 0.0)),
        ("0-0", "0p0 1-1", Scores(0.5, 1.0, 0.0, 0.0, 0.0)),
        ("0-0", "0-0", Scores(0.0, 1.0, 1.0, 1.0, 1.0)),
    ],
)
def test_undefined_is_none(hypothesis: str, gold: str, expected: Scores) -> None:
    assert by_hand(hypothesis, parse_gold(gold)) == expected


def test_a_corpus_without_sentences_has_no_scores() -> None:
    assert score([]) == Scores(None, None, None, None, None)


def test_counts_must_match() -> None:
    with pytest.raises(DataError, match="2 hypothesis lines against 1 gold"):
        corpus_stats([frozenset(), frozenset()], [parse_gold("0-0")])


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, float("nan")])
def test_alpha_lies_between_0_and_1(alpha: float) -> None:
    with pytest.raises(UsageError, match="alpha must lie between 0 and 1"):
        scores(AlignmentStats(1, 1, 1, 1), alpha)


# Real gold


@pytest.fixture(scope="module")
def hansards() -> list[GoldAlignment]:
    default = Path(__file__).resolve().parents[2].parent / "shared"
    path = Path(os.environ.get("NMT_ALIGN_SHARED", default)) / "gold" / "hansards-en-fr-test" / "gold"
    if not path.exists():
        pytest.skip(f"no Hansards gold at {path}; NMT_ALIGN_SHARED names the folder that holds gold/")
    return list(read_gold(path))


def test_on_hansards(hansards: list[GoldAlignment]) -> None:
    """Sure and possible links and the base matter on this set, as they do for real aligners."""
    assert (len(hansards), sum(len(gold.sure) for gold in hansards)) == (447, 4038)
    assert sum(len(gold.possible) for gold in hansards) == 4038 + 13400

    def aer(hypotheses: list[Links], gold: list[GoldAlignment]) -> float:
        corpus = list(zip(hypotheses, gold, strict=True))
        value = score(corpus).aer
        assert value == pytest.approx(float(twin(corpus)["aer"] or 0), abs=1e-12)
        assert value is not None
        return value

    sure = [gold.sure for gold in hansards]
    assert aer(sure, hansards) == 0
    assert aer([gold.possible for gold in hansards], hansards) == 0
    # A good aligner: most sure links and some of the possible ones.
    good = [
        frozenset((i, j) for i, j in gold.possible if (i + j) % 5 and ((i, j) in gold.sure or (3 * i + j) % 7 == 0))
        for gold in hansards
    ]
    right = aer(good, hansards)
    possible_ignored = aer(good, [GoldAlignment(gold.sure, gold.sure) for gold in hansards])
    all_sure = aer(good, [GoldAlignment(gold.possible, gold.possible) for gold in hansards])
    off_by_one = aer([frozenset((i + 1, j + 1) for i, j in links) for links in good], hansards)
    assert right < 0.2 < possible_ignored < off_by_one < all_sure
