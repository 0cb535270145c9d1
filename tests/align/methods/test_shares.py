"""Shares of the source: words against pieces, order, pairs that cannot go through the model, and the command."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from align.cli import cli
from align.methods.contributions import source_shares
from align.methods.shares import word_shares
from align.models import load
from data.bitext import Pair
from tests.tiny import tiny_model, tiny_pairs


@pytest.fixture(scope="module")
def model():
    return tiny_model()


def test_a_word_has_the_mean_share_of_its_pieces(model):
    pairs = [*tiny_pairs(5), Pair(5, (), ("t1",))]
    found = list(word_shares(model, pairs, batch_pieces=30))
    assert [pair.pair.id for pair, _ in found] == list(range(6))
    assert found[5][1] is None
    for pair, words in found[:5]:
        pieces = source_shares(model, model.batch([pair]))[0]
        for word, share in enumerate(words):
            own = [float(pieces[t]) for t, word_of in enumerate(pair.target_word_of) if word_of == word]
            assert share == pytest.approx(sum(own) / len(own))
            assert 0 < share <= 1


def test_the_first_word_has_only_the_start_symbol_before_it(model):
    """Without a prefix to speak of, what is not of the source is of the start symbol."""
    ((_, words),) = word_shares(model, [Pair(0, ("s1",), ("t1",))])
    assert len(words) == 1
    assert words[0] < 1


def test_the_command_writes_a_row_for_each_word(model, tmp_path, monkeypatch):
    monkeypatch.setattr(load, "load_model", lambda *arguments: model)
    pairs = tiny_pairs(2)
    (tmp_path / "in").write_text(
        "".join(f"{' '.join(p.source)} ||| {' '.join(p.target)}\n" for p in pairs) + " ||| t1\n"
    )
    output = tmp_path / "out.tsv"
    result = CliRunner().invoke(cli, ["shares", "-m", "tiny.pt", "-i", str(tmp_path / "in"), "-o", str(output)])
    assert result.exit_code == 0, result.output
    assert "1 pairs are empty or too long" in result.stderr
    head, *rows = [line.split("\t") for line in output.read_text().splitlines()]
    assert head == ["line", "position", "word", "source", "prefix"]
    expected = [
        (p.pair.id + 1, j, p.target_words[j]) for p, words in word_shares(model, pairs) for j in range(len(words))
    ]
    assert [(int(row[0]), int(row[1]), row[2]) for row in rows] == expected
    for row in rows:
        assert float(row[3]) + float(row[4]) == pytest.approx(1, abs=2e-4)
