"""Lists of words that may be aligned badly."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from align.lexicon import NULL, Entry
from align.lexicon_input import LinkedPair
from align.lexicon_reports import (
    REPORTS,
    Disagreement,
    PunctuationWord,
    disagreements,
    punctuation_words,
    report_lines,
    unaligned_words,
)
from tests.align.linked import linked_pairs


@given(st.lists(linked_pairs(), max_size=5))
@settings(deadline=None)
def test_unaligned_rates(corpus: list[LinkedPair]) -> None:
    rows = unaligned_words(corpus)
    for row in rows:
        occurrences = unaligned = 0
        for linked in corpus:
            for k, word in enumerate(linked.pair.source if row.side == "source" else linked.pair.target):
                linked_here = any(link[row.side == "target"] == k for link in linked.weights)
                occurrences += word == row.word
                unaligned += word == row.word and not linked_here
        assert (row.count, row.unaligned, row.rate) == (occurrences, unaligned, unaligned / occurrences)
    assert {(row.side, row.word) for row in rows} == {
        (side, word)
        for linked in corpus
        for side, text in (("source", linked.pair.source), ("target", linked.pair.target))
        for word in text
    }
    assert rows == sorted(rows, key=lambda row: (-row.rate, -row.count, row.side, row.word))


def test_words_linked_to_punctuation_only() -> None:
    entries = [
        Entry(NULL, "the", 3, 3, 4),
        Entry(",", "the", 1, 3, 4),
        Entry(",", ",", 2, 3, 2),
        Entry("ja", "!", 2, 4, 2),
        Entry("ja", ".", 2, 4, 2),
        Entry("nein", "!", 1, 2, 2),
        Entry("nein", "no", 1, 2, 1),
    ]
    found = punctuation_words(entries, lambda word: word in ",.!")
    assert found == [PunctuationWord("source", "ja", 4, "! ."), PunctuationWord("target", "the", 1, ",")]


def test_source_words_with_different_best_translations() -> None:
    first = [
        Entry(NULL, "x", 1, 1, 1),
        Entry("a", "x", 3, 4, 4),
        Entry("a", "y", 1, 4, 4),
        Entry("b", NULL, 2, 2, 2),
        Entry("c", "z", 9, 9, 9),
    ]
    second = [
        Entry(NULL, "y", 1, 1, 1),
        Entry("a", "y", 3, 5, 4),
        Entry("b", "y", 1, 2, 2),
        Entry("c", "z", 1, 1, 1),
        Entry("d", "y", 1, 1, 1),
    ]
    assert disagreements(first, second) == [
        Disagreement("a", 4, "x", 0.75, "y", 0.6),
        Disagreement("b", 2, NULL, 1, "y", 0.5),
    ]


def test_lines_have_names_and_leave_out_rare_words() -> None:
    rows = [Disagreement("a", 4, "x", 0.75, NULL, 1 / 3), Disagreement("b", 1, "x", 1, "y", 1)]
    assert list(report_lines(REPORTS["disagreement"], rows, min_count=2)) == [
        "source\tcount\tfirst\tfirst_p\tsecond\tsecond_p\n",
        "a\t4\tx\t0.75\t\t0.3333333\n",
    ]
