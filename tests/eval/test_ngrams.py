"""n-gram models in ARPA format, against sums by hand and the probabilities of all words that can follow."""

from __future__ import annotations

import gzip
from math import log

import pytest

from data.errors import DataError
from eval.ngrams import NGrams, read_arpa

WORDS = ("a", "b", "\u00a0", "<unk>", "</s>")
# Discounted trigrams and bigrams over unigrams of 0.4, 0.3, 0.1, 0.1, 0.1; backing off keeps every sum at 1.
TRIGRAMS = {("<s>", "a", "b"): 0.5}
BIGRAMS = {("<s>", "a"): 0.6, ("a", "b"): 0.2, ("a", "</s>"): 0.5, ("b", "a"): 0.5}
UNIGRAMS = dict(zip(WORDS, (0.4, 0.3, 0.1, 0.1, 0.1), strict=True))
WEIGHTS = {("<s>",): 0.4 / 0.6, ("a",): 0.3 / 0.6, ("b",): 0.5 / 0.6, ("<s>", "a"): 0.5 / 0.8}


def backed_off(word: str, *history: str) -> float:
    """The probability of a word by the definition."""
    for table in (TRIGRAMS, BIGRAMS):
        if (*history, word) in table:
            return table[*history, word]
    if not history:
        return UNIGRAMS[word]
    return WEIGHTS.get(history, 1.0) * backed_off(word, *history[1:])


def log10(p: float) -> float:
    return log(p) / log(10)


@pytest.fixture
def arpa(tmp_path):
    def line(ngram, p):
        weight = f"\t{log10(WEIGHTS[ngram])!r}" if ngram in WEIGHTS else ""
        return f"{log10(p)!r}\t{' '.join(ngram)}{weight}\n"

    unigrams = {("<s>",): 1e-99, **{(word,): p for word, p in UNIGRAMS.items()}}
    sections = [
        f"\n\\{n}-grams:\n" + "".join(line(*item) for item in table.items())
        for n, table in enumerate((unigrams, BIGRAMS, TRIGRAMS), 1)
    ]
    path = tmp_path / "model.arpa.gz"
    text = "\\data\\\nngram 1=6\nngram 2=4\nngram 3=1\n" + "".join(sections) + "\n\\end\\\n"
    path.write_bytes(gzip.compress(text.encode()))
    return str(path)


def test_sentences_by_the_definition(arpa):
    model = read_arpa(arpa)
    assert model.order == 3
    for sentence in (["a", "b"], ["b", "a", "b", "a"], ["a", "unheard", "a"], ["\u00a0"], []):
        words = ["<s>", *(word if word in WORDS else "<unk>" for word in sentence), "</s>"]
        expected = [log(backed_off(words[n], *words[max(0, n - 2) : n])) for n in range(1, len(words))]
        assert model.log_prob(sentence) == pytest.approx(sum(expected) / len(expected))
    for history in ((), ("a",), ("b",), ("<s>", "a"), ("b", "a"), ("\u00a0", "b")):
        assert sum(10 ** model._log10((*history, word)) for word in WORDS) == pytest.approx(1)


def test_the_order_of_the_model_is_the_longest_section(tmp_path):
    path = tmp_path / "unigrams"
    path.write_text("\\data\\\n\\1-grams:\n-1 a\n-0.5 </s>\n-2 <unk>\n\\end\\\n")
    model = read_arpa(str(path))
    assert model == NGrams(1, {("a",): (-1, 0), ("</s>",): (-0.5, 0), ("<unk>",): (-2, 0)})
    assert model.log_prob(["a", "b"]) == pytest.approx(-3.5 * log(10) / 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b c\n", "no ARPA file"),
        ("\\1-grams:\n-1 a\n-1 <unk>\n", "without </s>"),
        ("\\1-grams:\n-1 a\n-1 </s>\n", "without <unk>"),
        ("\\1-grams:\nx a\n", ":2: no n-gram"),
        ("\\1-grams:\n-1 a b\n", ":2: no n-gram"),
        ("\\2-grams:\n-1 a\n", ":2: no n-gram"),
        ("\\1-grams:\n-1 a -1 -1\n", ":2: no n-gram"),
    ],
)
def test_other_files_are_refused(tmp_path, text, message):
    path = tmp_path / "model"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        read_arpa(str(path))
