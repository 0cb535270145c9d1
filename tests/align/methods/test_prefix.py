"""Saliency over the target prefix: against finite differences and prefixes blanked out by hand."""

from __future__ import annotations

import json
from contextlib import contextmanager

import pytest
import torch
from click.testing import CliRunner

from align.cli import cli
from align.methods import METHODS, make_method
from align.methods.prefix import explain_prefix
from align.models.prefix import PrefixView
from data.errors import ModelError, UsageError
from tests.tiny import SOURCE, TARGET, dictionary, tiny_model, tiny_module, tiny_pairs, tiny_settings

PAIRS = tiny_pairs(3, seed=5)


@pytest.fixture(scope="module")
def model():
    return tiny_model()


@contextmanager
def scaled(model, position, factor):
    """The decoder's word embedding at a position, times a factor."""

    def change(module, inputs, output):
        output = output.clone()
        output[:, position] *= factor
        return output

    handle = model.module.decoder.embed_tokens.register_forward_hook(change)
    yield
    handle.remove()


def log_probs(model, pair):
    batch = model.batch([pair])
    return model.log_probs(batch, model.embed(batch))[0].detach()


def test_gradient_x_input_is_the_slope_of_scaling_a_prefix_word(model):
    view = PrefixView(model)
    batch = view.batch([view.encode_pair(pair) for pair in PAIRS])
    found = make_method("gradient-x-input:sign=signed").scores(view, batch)
    step = 1e-5
    for row, pair in enumerate(PAIRS):
        encoded = model.encode_pair(pair)
        size = len(encoded.target)
        for position in range(size):
            ends = []
            for factor in (1 + step, 1 - step):
                with scaled(model, position, factor):
                    ends.append(log_probs(model, encoded))
            slope = (ends[0] - ends[1]) / (2 * step)  # [T]
            torch.testing.assert_close(found[row, :size, position], slope, atol=1e-6, rtol=1e-5)
        assert found[row, :size, :size].triu(1).abs().max() == 0
        assert found[row, :size, :size].any()


def test_occlusion_blanks_the_pieces_of_a_prefix_word(model):
    results = list(explain_prefix(model, PAIRS, make_method("occlusion:sign=signed"), 1000, 1.0))
    for pair, result in zip(PAIRS, results, strict=True):
        encoded = model.encode_pair(pair)
        whole = log_probs(model, encoded)
        words = len(encoded.target_words)
        assert result.matrix.shape == (words, words)
        for word in range(words):
            # The decoder input at t + 1 is target piece t.
            inputs = [t + 1 for t, w in enumerate(encoded.target_word_of[:-1]) if w == word]
            with scaled(model, inputs, 0.0):
                loss = whole - log_probs(model, encoded)
            for j in range(words):
                rows = [t for t, w in enumerate(encoded.target_word_of) if w == j]
                assert result.matrix[j, word] == pytest.approx(float(loss[rows].mean()), abs=1e-9)


EXPLAINING = [name for name, method in METHODS.items() if not method.source_only and name != "mean"]


def test_all_saliency_explains_from_the_prefix():
    assert {name for name, method in METHODS.items() if method.measures in ("saliency", "sensitivity")} <= {*EXPLAINING}


@pytest.mark.parametrize("name", [*EXPLAINING, "mean(2*lrp,omission,alti)", "occlusion:baseline=unk"])
def test_every_method_gives_scores_and_leaves_the_model_as_it_was(model, name):
    before = log_probs(model, model.encode_pair(PAIRS[0]))
    options = {"samples": ":samples=2", "steps": ":steps=2"}
    spec = name + "".join(text for key, text in options.items() if key in make_method(name).options())
    results = list(explain_prefix(model, PAIRS, make_method(spec), 1000, 1.0))
    assert any(result.matrix.any() for result in results)
    assert all(result.status == "ok" for result in results)
    assert torch.equal(log_probs(model, model.encode_pair(PAIRS[0])), before)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("attention", "cross-attention goes to the source"),
        ("vector-norm", "cross-attention goes to the source"),
        ("alti:scope=cross", "cross-attention goes to the source"),
        ("rollout:scope=cross", "cross-attention goes to the source"),
        ("flow", "flows end at the source"),
        ("mean(lrp,attention)", "attention does not explain from the target prefix: cross-attention"),
    ],
)
def test_what_cannot_explain_from_the_prefix_says_why(model, name, reason):
    with pytest.raises(UsageError, match=reason):
        explain_prefix(model, PAIRS, make_method(name), 1000, 1.0)


def test_the_view_refuses_what_it_has_not(model):
    view = PrefixView(model)
    batch = view.batch([view.encode_pair(PAIRS[0])])
    with pytest.raises(ModelError, match="cross-attention reads the source"):
        view.cross_attention(batch, [0])
    with pytest.raises(UsageError, match="unknown baseline 'blank'"):
        view.baseline("blank")
    with pytest.raises(ModelError, match="cut for another model"):
        view.batch([model.encode_pair(PAIRS[0])])


def test_run_writes_both(tmp_path):
    source, target = dictionary(SOURCE), dictionary(TARGET)
    module, *_ = tiny_module(0, source, target)
    cfg = {"model": tiny_settings(), "task": {"source_lang": "src", "target_lang": "tgt"}}
    torch.save({"cfg": cfg, "model": module.state_dict()}, tmp_path / "st.pt")
    source.save(str(tmp_path / "dict.src.txt"))
    target.save(str(tmp_path / "dict.tgt.txt"))
    (tmp_path / "text").write_text(
        "".join(f"{' '.join(p.source)} ||| {' '.join(p.target)}\n" for p in PAIRS) + " ||| t1\n"
    )
    base = ["run", "-m", tmp_path / "st.pt", "-i", tmp_path / "text", "--method", "gradient-x-input", "--overwrite"]

    def run(*more):
        return CliRunner().invoke(cli, [str(a) for a in (*base, "-o", tmp_path / "links", *more)])

    for over, keys in (("source", {"matrix"}), ("prefix", {"prefix"}), ("both", {"matrix", "prefix"})):
        done = run("--matrices", tmp_path / "m.jsonl", "--over", over)
        assert done.exit_code == 0, done.output
        records = [json.loads(line) for line in (tmp_path / "m.jsonl").read_text().splitlines()]
        assert len(records) == len(PAIRS) + 1
        assert all({"matrix", "prefix"} & set(record) == keys for record in records)
        for record in records[:-1]:
            words = len(record["tgt"])
            assert all(len(row) == words for row in record.get("prefix", []))
    error = run("--over", "both", "--matrices", tmp_path / "m.npz").exception
    assert isinstance(error, UsageError)
