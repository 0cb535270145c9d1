"""Replaced attention against a Transformer written out head by head, and leaving no trace."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from align.cli import cli
from align.methods import make_method
from align.models.hf_loading import load_huggingface
from align.models.replacement import real_positions, replaced_attention
from data.errors import UsageError
from eval.quality import translation_quality
from eval.sanity.attention import attention_rows, conclusions, replaced_quality, replacement_losses
from eval.sanity.patterns import KINDS, UNITS, Patterns, Variant, positional_mean, variants
from tests.align.models.hf_tiny import FAMILIES
from tests.align.models.hf_tiny import pairs as hf_pairs
from tests.tiny import tiny_model, tiny_pairs

HF = ["fsmt", "m2m_100", "t5"]


@pytest.fixture(scope="module", params=["fairseq", *HF])
def any_model(request, tmp_path_factory):
    """A model and text for it."""
    if request.param == "fairseq":
        return tiny_model(), tiny_pairs(3)
    folder = tmp_path_factory.mktemp(request.param)
    return load_huggingface(folder, **FAMILIES[request.param](folder), dtype=torch.float64), hf_pairs(3)


def log_probs(model, batch):
    return model.log_probs(batch, model.embed(batch))


def hooks(model):
    return [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.module.modules()]


def naive_layer(layer, x, memory, replace):
    """A post-norm fairseq decoder layer of one sentence; `replace` maps its cross-attention [H, T, S] to another."""

    def attend(attention, queries, keys, change):
        size = attention.head_dim
        parts = [slice(h * size, (h + 1) * size) for h in range(attention.num_heads)]
        own = []
        for part in parts:
            q = (queries @ attention.q_proj.weight[part].T + attention.q_proj.bias[part]) * size**-0.5
            k = keys @ attention.k_proj.weight[part].T + attention.k_proj.bias[part]
            own.append(q @ k.T)
        weights = change(torch.stack(own))
        total = attention.out_proj.bias.expand(len(queries), -1).clone()
        for h, part in enumerate(parts):
            v = keys @ attention.v_proj.weight[part].T + attention.v_proj.bias[part]
            for t in range(len(queries)):
                for s in range(len(keys)):
                    total[t] += weights[h, t, s] * (attention.out_proj.weight[:, part] @ v[s])
        return total

    def causal(scores):
        return (scores + torch.full_like(scores[0], -torch.inf).triu(1)).softmax(-1)

    x = layer.self_attn_layer_norm(x + attend(layer.self_attn, x, x, causal))
    x = layer.encoder_attn_layer_norm(x + attend(layer.encoder_attn, x, memory, lambda a: replace(a.softmax(-1))))
    return layer.final_layer_norm(x + layer.fc2(torch.relu(layer.fc1(x))))


def naive_pattern(kind, own, layer, seed, mean):
    """The weights in the place of `own` [H, T, S], by loops."""
    size_h, size_t, size_s = own.shape
    result = torch.zeros_like(own)
    for h in range(size_h):
        for t in range(size_t):
            row = {
                "uniform": lambda: np.ones(size_s),
                "random": lambda t=t, h=h: np.random.default_rng([seed, layer, t]).exponential(size=(size_s, size_h))[
                    :, h
                ],
                "row-mean": lambda h=h: sum(own[h, u].numpy() for u in range(size_t)),
                "corpus-mean": lambda t=t, h=h: mean[layer, h, t, :size_s].numpy(),
                "pruned": lambda: np.zeros(size_s),
            }[kind]()
            result[h, t] = torch.from_numpy(np.asarray(row / (row.sum() or 1))).to(own)
    return result


@pytest.mark.parametrize("kind", ["uniform", "random", "row-mean", "corpus-mean", "pruned"])
def test_losses_against_loops(model, encoded, kind):
    mean = positional_mean(model, [model.batch([pair]) for pair in encoded])
    chosen = [Variant(kind), Variant(kind, 1), Variant(kind, 0, 1)]
    found, _ = replacement_losses(model, encoded, chosen, 3, 60)
    decoder = model.module.decoder
    for number, pair in enumerate(encoded[:3]):
        batch = model.batch([pair])
        states = model.encode(batch, model.embed(batch))[0]
        positions = decoder.embed_positions(batch.prefix)[0]
        start = decoder.embed_scale * decoder.embed_tokens(batch.prefix)[0] + positions
        before = log_probs(model, batch)[0]
        for variant in chosen:
            x = start
            for number_of_layer, layer in enumerate(decoder.layers):

                def replace(own, here=number_of_layer, variant=variant):
                    if variant.layer not in (None, here):
                        return own
                    other = naive_pattern(kind, own, here, 3, mean)
                    return torch.stack([other[h] if variant.head in (None, h) else own[h] for h in range(2)])

                x = naive_layer(layer, x, states, replace)
            after = (x @ decoder.output_projection.weight.T).log_softmax(-1)
            after = after[torch.arange(len(x)), batch.target[0]]
            assert found[variant][number].loss == pytest.approx(float((before - after).sum()), abs=1e-6)


def test_positional_mean_by_loops(model, encoded, monkeypatch):
    expected = torch.zeros(2, 2, 20, 20)
    count = torch.zeros(20, 20)
    for pair in encoded:
        own = model.cross_attention(model.batch([pair]), range(2))[:, 0].float()
        for t in range(own.shape[2]):
            for s in range(own.shape[3]):
                expected[:, :, t, s] += own[:, :, t, s]
                count[t, s] += 1
    expected = expected / count.clamp(min=1)
    for left in (False, True):
        monkeypatch.setattr(model, "pad_left", left)
        mean = positional_mean(model, [model.batch(encoded[:3]), model.batch(encoded[3:])])
        torch.testing.assert_close(mean, expected[:, :, : mean.shape[2], : mean.shape[3]])


@pytest.mark.parametrize("pad_left", [False, True])
def test_batches_and_padding_change_nothing(model, encoded, pad_left, monkeypatch):
    chosen = variants(model, list(KINDS), UNITS)
    assert len(chosen) == len(KINDS) * (1 + 2 + 4)
    together, _ = replacement_losses(model, encoded, chosen, 0, 10_000)
    monkeypatch.setattr(model, "pad_left", pad_left)
    alone, _ = replacement_losses(model, encoded, chosen, 0, 1)
    for variant in chosen:
        for a, b in zip(together[variant], alone[variant], strict=True):
            assert a.loss == pytest.approx(b.loss, abs=1e-6)
            assert (a.kept, a.pieces) == (b.kept, b.pieces)


def test_shuffled_weights_move_and_keep_their_values(model, encoded):
    batch = model.batch(encoded)
    weights = model.cross_attention(batch, [0])[0]
    shuffled = Patterns(0).replacements(Variant("permuted", 0), model, batch)[0](weights, 0)
    torch.testing.assert_close(shuffled.sort(-1).values, weights.sort(-1).values)
    for row, size in enumerate(batch.source_mask.sum(1).tolist()):
        if size > 1:
            assert (shuffled[row, :, :, :size] != weights[row, :, :, :size]).all()
    assert torch.equal(real_positions(weights), batch.source_mask)


def test_own_weights_change_nothing_and_hooks_come_off(any_model):
    model, text = any_model
    batch = model.batch([model.encode_pair(pair) for pair in text])
    before, expected = hooks(model), log_probs(model, batch)
    same = {layer: lambda weights, first: weights for layer in range(model.layers)}
    with replaced_attention(model, same):
        torch.testing.assert_close(log_probs(model, batch), expected)
        assert hooks(model) != before

    def broken(weights, first):
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"), replaced_attention(model, {0: broken}):
        log_probs(model, batch)
    assert hooks(model) == before
    assert torch.equal(log_probs(model, batch), expected)
    with pytest.raises(UsageError, match="layer 9"), replaced_attention(model, {9: broken}):
        pass


def test_free_translation_sees_the_positions_of_its_steps(any_model):
    model, text = any_model
    sources = [pair.source for pair in text]
    seen = []

    def note(weights, first):
        seen.append((first, weights.shape[2]))
        return weights

    before = model.translate(sources)
    with replaced_attention(model, {0: note}):
        assert model.translate(sources) == before
    ends = [first + rows for first, rows in seen]
    assert [first for first, _ in seen] == [0, *ends[:-1]]
    assert len(seen) > 1
    assert model.translate(sources) == before


def test_random_rows_of_a_search_are_those_of_teacher_forcing(model, encoded):
    batch = model.batch(encoded)
    weights = model.cross_attention(batch, [1])[0]
    draw = Patterns(5).replacements(Variant("random", 1), model, None)[1]
    whole = draw(weights, 0)
    torch.testing.assert_close(whole.sum(-1), torch.ones_like(whole[..., 0]))
    for t in range(weights.shape[2]):
        torch.testing.assert_close(draw(weights[:, :, t : t + 1], t), whole[:, :, t : t + 1])


def test_rows_and_conclusions(model, encoded):
    chosen = variants(model, ["pruned", "row-mean"], ["all", "layer"])
    losses, patterns = replacement_losses(model, encoded, chosen, 0, 1000)
    text = [pair.pair for pair in encoded]
    clean = translation_quality(model, text)
    rows = attention_rows(model, encoded, losses, patterns, 0.01, 50, 1, clean)
    for row in rows:
        variant = Variant(row["attention"], row["layer"], row["head"])
        found = losses[variant]
        assert row["loss"] == pytest.approx(sum(o.loss for o in found) / sum(o.pieces for o in found))
        assert row["matters"] == (row["loss_low"] > 0.01)
        if variant.kind == "row-mean":
            assert row["bleu_loss"] is row["chrf_loss"] is None
        else:
            other = replaced_quality(model, text, variant, patterns)
            assert row["chrf_loss"] == pytest.approx(clean.chrf - other.chrf)
            assert row["bleu_loss"] == pytest.approx(clean.bleu - other.bleu)
            assert row["chrf_low"] <= row["chrf_high"]
    made = [
        {"attention": "pruned", "layer": None, "head": None, "matters": True},
        {"attention": "pruned", "layer": 0, "head": None, "matters": False},
        {"attention": "pruned", "layer": 1, "head": None, "matters": True},
        {"attention": "pruned", "layer": 1, "head": 3, "matters": True},
    ]
    assert conclusions(made, 0.5)[1:] == [
        "all layers together, pruned: matter",
        "layers, pruned: 1 of 2 matter: 1",
        "heads, pruned: 1 of 1 matter: 1.3",
    ]


def test_a_planted_head_is_found(model, encoded):
    """A head whose values are zero does not matter; switching the other off does."""
    layer = model.module.decoder.layers[1].encoder_attn
    weight = layer.out_proj.weight.clone()
    try:
        layer.out_proj.weight[:, :4] = 0
        chosen = variants(model, ["pruned", "uniform"], ["head"])
        losses, _ = replacement_losses(model, encoded, chosen, 0, 1000)
        for kind in ("pruned", "uniform"):
            assert all(abs(o.loss) < 1e-6 for o in losses[Variant(kind, 1, 0)])
            assert any(abs(o.loss) > 1e-3 for o in losses[Variant(kind, 1, 1)])
    finally:
        layer.out_proj.weight.copy_(weight)


def test_unknown_names_are_refused(model):
    with pytest.raises(UsageError, match="kind of attention"):
        variants(model, ["unifrom"], ["all"])
    with pytest.raises(UsageError, match="unit"):
        variants(model, ["uniform"], ["heads"])


@pytest.mark.parametrize("form", ["table", "json", "tsv"])
def test_command(checkpoint, form):
    arguments = ["sanity", "attention", "-m", checkpoint / "st.pt", "-i", checkpoint / "joint", "--format", form]
    more = ["--kinds", "uniform,pruned", "--for", "end-user", "--bootstrap", 20, "--limit", 8, "--translate"]
    result = CliRunner().invoke(cli, [str(a) for a in [*arguments, *more]], catch_exceptions=False)
    assert result.exit_code == 0
    assert "1 pairs are empty" in result.stderr
    if form == "json":
        report = json.loads(result.stdout)
        assert report["opening"][0].startswith("Asked: does the prediction rest")
        assert "end user" in report["opening"][1]
        assert len(report["rows"]) == 2 * 7
        assert "check:attention|pairs:7" in report["rows"][0]["signature"]
    elif form == "table":
        assert result.stdout.startswith("Asked: ")
        assert "heads, pruned:" in result.stdout
        assert "the model has BLEU" in result.stdout
    else:
        assert result.stdout.startswith("attention\tlayer\thead\tloss\t")


def test_make_method_still_reads_the_models_own_weights(model, encoded):
    batch = model.batch(encoded)
    before = make_method("attention").scores(model, batch)
    with replaced_attention(model, {0: lambda weights, first: torch.zeros_like(weights)}):
        pass
    assert torch.equal(make_method("attention").scores(model, batch), before)
