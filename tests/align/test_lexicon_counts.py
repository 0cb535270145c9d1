"""Counts, probabilities and measures of lexicons."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from itertools import chain

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import chi2_contingency

from align.lexicon import (
    MEASURES,
    NULL,
    Entry,
    Lexicon,
    MemoryTable,
    Table,
    count,
    linked_phrases,
    linked_words,
    lowercased,
    recounted,
    select,
)
from align.lexicon_examples import Examples, examples_on_disk
from align.lexicon_input import UNIT, LinkedPair
from align.phrases import phrase_pairs
from data.bitext import Pair
from data.errors import DataError, UsageError
from tests.align.linked import linked_pairs

Corpus = list[LinkedPair]


CORPORA = st.lists(linked_pairs((UNIT, 1, 333_333)), max_size=6)


def naive_counts(corpus: Corpus, null: bool) -> dict[tuple[str, str], float]:
    """c(s, t) for all words, from its definition."""
    sources = {word for linked in corpus for word in linked.pair.source} | {NULL}
    targets = {word for linked in corpus for word in linked.pair.target} | {NULL}
    counts = {}
    for s in sources:
        for t in targets:
            c = 0.0
            for linked in corpus:
                for i, left in enumerate(linked.pair.source):
                    for j, right in enumerate(linked.pair.target):
                        if (left, right) == (s, t):
                            c += linked.weights.get((i, j), 0) / UNIT
                    if null and left == s and t == NULL and not any(link[0] == i for link in linked.weights):
                        c += 1
                for j, right in enumerate(linked.pair.target):
                    if null and right == t and s == NULL and not any(link[1] == j for link in linked.weights):
                        c += 1
            if c:
                counts[s, t] = c
    return counts


def counted(corpus: Corpus, null: bool = True, shard: int = 1000) -> Lexicon:
    table = MemoryTable()
    count(chain.from_iterable(linked_words(linked, null=null) for linked in corpus), table, shard)
    return table.lexicon()


@given(CORPORA, st.booleans())
@settings(deadline=None, max_examples=50)
def test_counts_are_those_of_the_definition(corpus: Corpus, null: bool) -> None:
    expected = naive_counts(corpus, null)
    lexicon = counted(corpus, null)
    entries = list(lexicon.entries)
    assert {entry.key: entry.count for entry in entries} == pytest.approx(expected)
    assert lexicon.total == pytest.approx(sum(expected.values()))
    for entry in entries:
        assert entry.source_count == pytest.approx(sum(c for (s, _), c in expected.items() if s == entry.source))
        assert entry.target_count == pytest.approx(sum(c for (_, t), c in expected.items() if t == entry.target))


@given(CORPORA)
@settings(deadline=None, max_examples=50)
def test_order_is_source_then_count_then_target(corpus: Corpus) -> None:
    entries = list(counted(corpus).entries)
    assert entries == sorted(entries, key=lambda entry: (entry.source, -entry.count, entry.target))


@given(CORPORA, st.booleans())
@settings(deadline=None, max_examples=50)
def test_probabilities_of_a_word_sum_to_1(corpus: Corpus, null: bool) -> None:
    entries = list(counted(corpus, null).entries)
    for word in {entry.source for entry in entries}:
        assert sum(e.p_target_given_source for e in entries if e.source == word) == pytest.approx(1)
    for word in {entry.target for entry in entries}:
        assert sum(e.p_source_given_target for e in entries if e.target == word) == pytest.approx(1)


@given(CORPORA)
@settings(deadline=None, max_examples=50)
def test_exchanging_languages_exchanges_the_tables(corpus: Corpus) -> None:
    turned = [
        LinkedPair(
            Pair(linked.pair.id, linked.pair.target, linked.pair.source),
            {(j, i): weight for (i, j), weight in linked.weights.items()},
        )
        for linked in corpus
    ]
    assert {
        Entry(entry.target, entry.source, entry.count, entry.target_count, entry.source_count)
        for entry in counted(turned).entries
    } == set(counted(corpus).entries)


@given(CORPORA, st.integers(1, 5), st.integers(0, 6))
@settings(deadline=None, max_examples=50)
def test_shards_sum_to_the_whole_exactly(corpus: Corpus, shard: int, cut: int) -> None:
    whole = list(counted(corpus).entries)
    assert list(counted(corpus, shard=shard).entries) == whole

    merged = MemoryTable()
    for part in (corpus[cut:], corpus[:cut]):
        count(recounted(counted(part).entries, "part"), merged)
    assert list(merged.lexicon().entries) == whole


@given(CORPORA, st.integers(1, 5))
@settings(deadline=None, max_examples=10)
def test_duckdb_gives_the_same(corpus: Corpus, shard: int) -> None:
    pytest.importorskip("duckdb", reason="the extra duckdb is not installed")
    from align.lexicon_duckdb import duckdb_table

    memory = counted(corpus)
    with duckdb_table() as table:
        count(chain.from_iterable(map(linked_words, corpus)), table, shard)
        disk = table.lexicon()
        assert (list(disk.entries), disk.total) == (list(memory.entries), memory.total)


def test_duckdb_orders_by_code_point_and_keeps_odd_characters() -> None:
    pytest.importorskip("duckdb", reason="the extra duckdb is not installed")
    from align.lexicon_duckdb import duckdb_table

    words = ["Z", "a", "é", "\U0001d400", "￿", "a\0b", "\u2028", "'; --", NULL]
    events = [((word, other), UNIT) for word in words for other in words if word or other]
    memory = MemoryTable()
    count(events, memory)
    with duckdb_table() as table:
        count(events, table)
        assert list(table.lexicon().entries) == list(memory.lexicon().entries)


@st.composite
def tables(draw: st.DrawFn) -> tuple[Entry, float]:
    """An entry of a 2 x 2 table with no empty row or column."""
    a, b, c, d = (draw(st.integers(0, 200)) for _ in range(4))
    assume(a and a + b < a + b + c + d and a + c < a + b + c + d)
    return Entry("s", "t", a, a + b, a + c), a + b + c + d


@given(tables())
@settings(deadline=None, max_examples=50)
def test_log_likelihood_ratio_and_significance(case: tuple[Entry, float]) -> None:
    entry, total = case
    a, b, c = entry.count, entry.source_count - entry.count, entry.target_count - entry.count
    table = [[a, b], [c, total - a - b - c]]
    outside = chi2_contingency(table, correction=False, lambda_="log-likelihood")
    naive = 0.0
    for row in (0, 1):
        for column in (0, 1):
            observed = table[row][column]
            expected = sum(table[row]) * (table[0][column] + table[1][column]) / total
            if observed:
                naive += 2 * observed * math.log(observed / expected)
    llr = MEASURES["llr"](entry, total)
    assert llr == pytest.approx(naive, abs=1e-9)
    assert llr == pytest.approx(float(outside.statistic), abs=1e-9)
    assert MEASURES["llr_p_value"](entry, total) == pytest.approx(float(outside.pvalue), rel=1e-6, abs=1e-12)


def test_measures_of_an_example() -> None:
    entry, total = Entry("Haus", "house", 2, 4, 3), 12
    assert entry.p_target_given_source == 2 / 4
    assert entry.p_source_given_target == pytest.approx(2 / 3)
    assert MEASURES["dice"](entry, total) == pytest.approx(4 / 7)
    assert MEASURES["pmi"](entry, total) == pytest.approx(math.log2((2 / 12) / (4 / 12 * 3 / 12)))
    # independent: observed as expected
    assert MEASURES["llr"](Entry("a", "b", 1, 2, 6), 12) == pytest.approx(0)
    assert MEASURES["llr_p_value"](Entry("a", "b", 1, 2, 6), 12) == pytest.approx(1)


def test_a_word_that_is_all_there_is_has_no_association() -> None:
    assert MEASURES["llr"](Entry("a", "b", 3, 3, 3), 3) == 0


def test_an_unknown_measure_is_refused_with_a_suggestion() -> None:
    with pytest.raises(UsageError, match="did you mean 'dice'"):
        Lexicon([], 0, ("dise",))


def test_phrases_are_counted_once_each() -> None:
    linked = LinkedPair(Pair(0, ("a", "b", "a"), ("x", "y", "x")), {(0, 0): UNIT, (1, 1): 1, (2, 2): UNIT})
    counts = dict.fromkeys((key for key, _ in linked_phrases(linked, 3)), 0)
    for key, weight in linked_phrases(linked, 3):
        counts[key] += weight // UNIT
    assert counts == {("a", "x"): 2, ("b", "y"): 1, ("a b", "x y"): 1, ("b a", "y x"): 1, ("a b a", "x y x"): 1}


@given(linked_pairs(), st.integers(1, 3))
@settings(deadline=None, max_examples=50)
def test_phrases_are_those_that_fit_the_links(linked: LinkedPair, longest: int) -> None:
    source, target = linked.pair.source, linked.pair.target
    spans = phrase_pairs(linked.weights, len(source), len(target), longest)
    words = sorted((" ".join(source[slice(*s)]), " ".join(target[slice(*t)])) for s, t in spans)
    assert sorted(key for key, _ in linked_phrases(linked, longest)) == words


def test_lower_case() -> None:
    pairs = lowercased([Pair(3, ("Das", "HAUS"), ("The", "House"))])
    assert list(pairs) == [Pair(3, ("das", "haus"), ("the", "house"))]


ENTRIES = [
    Entry(NULL, "the", 1, 1, 4),
    Entry("das", "the", 3, 8, 4),
    Entry("das", NULL, 2, 8, 2),
    Entry("das", "that", 2, 8, 2),
    Entry("das", "it", 1, 8, 1),
    Entry("das Haus", "the house", 1, 1, 1),
]


def test_select_by_count_and_rank() -> None:
    assert list(select(ENTRIES)) == ENTRIES
    assert list(select(ENTRIES, min_count=2)) == ENTRIES[1:4]
    assert list(select(ENTRIES, top=1)) == [ENTRIES[0], ENTRIES[1], ENTRIES[2], ENTRIES[5]]
    assert list(select(ENTRIES, top=2)) == [*ENTRIES[:4], ENTRIES[5]]


def test_stop_words_go_and_phrases_made_of_them() -> None:
    stopped = select(ENTRIES, source_stop=frozenset({"das"}))
    assert list(stopped) == [ENTRIES[0], ENTRIES[5]]
    stopped = select(ENTRIES, source_stop=frozenset({"das", "Haus"}), target_stop=frozenset({"the"}))
    assert list(stopped) == []


def test_a_stopped_word_does_not_count_for_the_rank() -> None:
    assert list(select(ENTRIES[1:5], top=1, target_stop=frozenset({"the"}))) == [ENTRIES[2], ENTRIES[3]]


@pytest.mark.parametrize("gone", range(3))
def test_filtered_lexicons_are_not_merged(gone: int) -> None:
    whole = [Entry("a", "x", 2, 3, 2), Entry("a", "y", 1, 3, 2), Entry("b", "y", 1, 1, 2)]
    assert dict(recounted(whole, "f")) == {("a", "x"): 2 * UNIT, ("a", "y"): UNIT, ("b", "y"): UNIT}
    del whole[gone]
    with pytest.raises(DataError, match=r"f: the entries of the (source|target) word '[aby]' count [0-9], not [0-9]"):
        list(recounted(whole, "f"))


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
@given(CORPORA, st.integers(1, 5), st.integers(1, 3))
@settings(deadline=None, max_examples=10)
def test_examples_are_the_first_pairs_of_an_entry(engine: str, corpus: Corpus, shard: int, most: int) -> None:
    numbered = [LinkedPair(Pair(k, one.pair.source, one.pair.target), one.weights) for k, one in enumerate(corpus)]
    with examples_on_disk(most) as examples, table_of(engine, examples) as table:
        count(chain.from_iterable(map(linked_words, examples.watch(numbered))), table, shard, examples)
        lexicon = table.lexicon()
        for entry in lexicon.entries:
            expected = [linked for linked in numbered if any(key == entry.key for key, _ in linked_words(linked))][
                :most
            ]
            found = lexicon.examples_of(entry)
            assert [(e.line - 1, e.source, e.target, e.links) for e in found] == [
                (one.pair.id, one.pair.source, one.pair.target, one.weights.keys()) for one in expected
            ]


def table_of(engine: str, examples: Examples) -> AbstractContextManager[Table]:
    if engine == "memory":
        return nullcontext(MemoryTable(examples))
    pytest.importorskip("duckdb", reason="the extra duckdb is not installed")
    from align.lexicon_duckdb import duckdb_table

    return duckdb_table(examples)
