"""The pointing game on the demo's models, by loops."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from align.cli import cli
from align.extract import Extraction, extract
from align.methods import make_method
from align.models.load import LoadOptions, load_model
from data.bitext import Pair
from data.demo import held_out
from data.demo.known import german
from data.errors import UsageError
from data.minimal_pairs import MinimalPair
from eval.pointing import HYBRID, Posed, Question, from_hybrids, from_minimal_pairs, score

MODEL = Path(str(files("data.demo") / "model"))
SHE = MinimalPair(
    "pronoun",
    tuple("sie kauft das Buch .".split()),
    tuple("sie kaufen das Buch .".split()),
    frozenset({"she", "they"}),
    0,
)
OTHER = MinimalPair(
    "pronoun", tuple("ich sehe den Mann .".split()), tuple("ich sehe den Hund .".split()), frozenset({"she", "they"})
)


@pytest.fixture(scope="module")
def model():
    return load_model(MODEL / "de-en.pt", LoadOptions())


def row_scores(model, method, pair, word, words):
    """Scores of the words of one pair alone, for one target word."""
    batch = model.batch([pair])
    return extract(method.scores(model, batch), batch, Extraction())[0].matrix[word, :words]


def test_questions_are_where_the_translations_part(model):
    posed = from_minimal_pairs(model, [SHE, OTHER])
    assert posed.possible == {"pronoun": 4}
    she, they = posed.questions  # the translations of the other pair part at other words
    assert (she.pair.target_words[0], they.pair.target_words[0]) == ("she", "they")
    assert (she.rival.target_words, they.rival.target_words) == (("they",), ("she",))
    assert she.pair.source_words == SHE.first
    assert they.rival.source_words == SHE.second
    for question in posed.questions:
        assert (question.target, question.answer, question.excused, question.group) == (0, {1}, 0, 0)


@pytest.mark.parametrize("spec", ["occlusion:sign=signed", "gradient-x-input:sign=signed"])
def test_scores_by_loops(model, spec):
    method = make_method(spec)
    posed = from_minimal_pairs(model, german()[:6])
    floor, row = score(model, [method], posed, 0, 1)
    hits = {"pointing": 0, "pointing_context": 0, "pointing_contrast": 0}
    for question in posed.questions:
        words = len(question.pair.source_words)
        own = row_scores(model, method, question.pair, question.target, words)
        rival = row_scores(model, method, question.rival, question.target, words)
        others = [word for word in range(words) if word != question.excused]
        hits["pointing"] += own.argmax() in question.answer
        hits["pointing_context"] += max(others, key=lambda word: own[word]) in question.answer
        hits["pointing_contrast"] += (own - rival).argmax() in question.answer
    for name, count in hits.items():
        assert row[name] == pytest.approx(count / len(posed.questions))
    assert floor["pointing"] == pytest.approx(np.mean([1 / len(q.pair.source_words) for q in posed.questions]))
    assert floor["pointing_context"] > floor["pointing"]


def test_attention_cannot_tell_two_forms_apart(model):
    """The step that predicts a word does not know it, so which cause is found is chance: one in five."""
    posed = from_minimal_pairs(model, german()[:35])
    method = make_method("attention:layer=1")
    question = posed.questions[0]
    own, rival = (row_scores(model, method, pair, 0, 5) for pair in (question.pair, question.rival))
    np.testing.assert_allclose(own, rival, atol=1e-5)
    rows = score(model, [method, make_method("gradient-norm")], posed, 200, 1)
    assert rows[1]["pointing_contrast_low"] < 0.2 < rows[1]["pointing_contrast_high"]
    assert rows[2]["pointing_contrast"] is None


def test_hybrids_point_into_their_own_half(model):
    pairs = [Pair(n, p.source, p.target) for n, p in enumerate(held_out(5))]
    posed = from_hybrids(model, pairs)
    assert posed.possible[HYBRID] == sum(len(p.target) * (1 if n in (0, 4) else 2) for n, p in enumerate(pairs))
    for question in posed.questions:
        border, target_border = len(pairs[question.group].source), len(pairs[question.group].target)
        assert question.pair.source_words == pairs[question.group].source + pairs[question.group + 1].source
        assert {word < border for word in question.answer} == {question.target < target_border}
        batch = model.batch([question.pair])
        rows = model.log_probs(batch, model.embed(batch))[0]
        pieces = [t for t, word in enumerate(question.pair.target_word_of) if word == question.target]
        assert float(rows[pieces].sum().exp()) >= 0.1 - 1e-6
    rows = score(model, [make_method("occlusion")], posed, 50, 1)
    assert rows[1]["pointing"] > 0.8 > rows[0]["pointing"]
    assert rows[1]["pointing_contrast"] is None


def test_nothing_followed_gives_no_row(model):
    assert score(model, [make_method("occlusion")], from_minimal_pairs(model, [OTHER]), 10, 1) == []


def test_ties_fall_at_random(model):
    encoded = model.encode_pair(Pair(0, SHE.first, ("she", "buys")))
    questions = [Question("x", encoded, 0, frozenset({0, 1, 2}), n) for n in range(1)]
    rows = score(model, [make_method("occlusion")], Posed(questions, {"x": 1}), 0, 1)
    assert rows[0]["pointing"] == pytest.approx(3 / 5)


def invoke(*arguments):
    return CliRunner().invoke(cli, [str(a) for a in arguments], catch_exceptions=False)


def test_commands(tmp_path, monkeypatch):
    import data.demo.known

    for side in ("german", "english"):
        pairs = getattr(data.demo.known, side)()[:2]
        monkeypatch.setattr(data.demo.known, side, lambda pairs=pairs: pairs)
    text = invoke("known-answers", "--methods", "occlusion", "--hybrids", 3, "--bootstrap", 10).stdout
    assert text.startswith("Asked: where the cause of a target word is known")
    assert HYBRID in text
    cases = tmp_path / "cases"
    cases.write_text("pronoun\tsie kauft das Buch .\tsie kaufen das Buch .\tshe they\t0\n")
    common = ["-m", MODEL / "de-en.pt", "--methods", "occlusion:sign=signed:baseline=zero", "--format", "json"]
    rows = json.loads(invoke("pointing", *common, "--cases", cases).stdout)["rows"]
    assert [(row["method"], row["questions"]) for row in rows] == [("random", 2), ("occlusion:sign=signed", 2)]
    (tmp_path / "joint").write_text(
        "ich sehe den Mann . ||| I see the man .\nsie kauft ein Auto . ||| she is buying a car .\n"
    )
    rows = json.loads(invoke("pointing", *common, "-i", tmp_path / "joint").stdout)["rows"]
    assert rows[1]["possible"] == 11
    assert f"questions:{rows[1]['questions']}|seed:12345" in rows[1]["signature"]
    for wrong in ([], ["--cases", cases, "-i", tmp_path / "joint"]):
        with pytest.raises(UsageError, match="either minimal pairs"):
            invoke("pointing", *common, *wrong)
