"""Tiny random models of every family against transformers itself, finite differences and naive loops."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch

pytest.importorskip("transformers")

from hf_tiny import FAMILIES, pairs

from align.methods.attention import Attention
from align.methods.rows import gradient_rows
from align.models.hf_loading import load_huggingface
from align.models.huggingface import HuggingFaceModel
from align.models.inside import insides
from align.models.subwords import NO_WORD
from data.bitext import Pair
from data.errors import ModelError, UsageError

Loaded = tuple[HuggingFaceModel, Path]


@pytest.fixture(autouse=True)
def _double_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let transformers compute in float64 where it would fall back to float32, or overflow in it."""
    from transformers.models.fsmt import modeling_fsmt
    from transformers.models.mt5.modeling_mt5 import MT5LayerNorm
    from transformers.models.t5.modeling_t5 import T5LayerNorm

    def root_mean_square(norm: Any, x: torch.Tensor) -> torch.Tensor:
        return norm.weight * x / (x.pow(2).mean(-1, keepdim=True) + norm.variance_epsilon).sqrt()

    monkeypatch.setattr(T5LayerNorm, "forward", root_mean_square)
    monkeypatch.setattr(MT5LayerNorm, "forward", root_mean_square)
    monkeypatch.setattr(modeling_fsmt, "fill_with_neg_inf", lambda t: torch.full_like(t, torch.finfo(t.dtype).min))


@pytest.fixture(scope="session")
def load(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Loaded]:
    """Tiny models by family, each made once."""
    made: dict[str, Loaded] = {}

    def make(family: str) -> Loaded:
        if family not in made:
            folder = tmp_path_factory.mktemp(family)
            languages = FAMILIES[family](folder)
            made[family] = load_huggingface(folder, **languages, dtype=torch.float64), folder
        return made[family]

    return make


@pytest.fixture(params=FAMILIES)
def model(request: pytest.FixtureRequest, load: Callable[[str], Loaded]) -> HuggingFaceModel:
    return load(request.param)[0]


def encoded_batch(model: HuggingFaceModel, count: int = 4):
    return model.batch([model.encode_pair(pair) for pair in pairs(count)])


def library_outputs(model: HuggingFaceModel, batch, **options: Any):
    """The whole model called as transformers' users call it."""
    return model.module(
        input_ids=batch.source,
        attention_mask=batch.source_mask.long(),
        decoder_input_ids=batch.prefix,
        use_cache=False,
        **options,
    )


# Numbers


def test_log_probs_are_the_loss_of_the_library(model: HuggingFaceModel) -> None:
    for pair in pairs():
        batch = model.batch([model.encode_pair(pair)])
        loss = library_outputs(model, batch, labels=batch.target).loss
        assert torch.allclose(-model.log_probs(batch, model.embed(batch)).mean(), loss, rtol=1e-9)


def test_embeddings_are_scaled_and_without_positions(model: HuggingFaceModel) -> None:
    batch = encoded_batch(model)
    scale = 1 if model.module.config.model_type in ("t5", "mt5") else 8**0.5
    table = model.module.get_encoder().embed_tokens.weight
    assert torch.allclose(model.embed(batch), table[batch.source] * scale)
    assert torch.allclose(model.baseline("mean"), table.mean(0) * scale)
    assert torch.equal(model.baseline("zero"), torch.zeros(8, dtype=torch.float64))
    assert torch.allclose(model.baseline("unk"), table[model.tokens.source.unknown] * scale)
    with pytest.raises(UsageError, match="did you mean 'mean'"):
        model.baseline("men")


def test_gradient_is_the_finite_difference(model: HuggingFaceModel) -> None:
    batch = model.batch([model.encode_pair(Pair(0, ("the", "walked", "我"), ("small", "house", "café")))])
    inputs = model.embed(batch)
    gradient, log_probs = gradient_rows(model, batch, inputs, lambda rows: rows.permute(3, 0, 1, 2))
    assert torch.allclose(log_probs, model.log_probs(batch, inputs))
    step = 1e-5
    cells = inputs[0].numel()
    moves = step * torch.eye(cells, dtype=torch.float64).view(cells, *inputs.shape[1:])  # [S * D, S, D]
    up, down = (model.log_probs(batch.repeat(cells), inputs + sign * moves) for sign in (1, -1))
    naive = ((up - down) / (2 * step)).view(*inputs.shape[1:], -1)  # [S, D, T]
    largest = float(naive.abs().max())
    assert torch.allclose(gradient[:, 0].permute(2, 0, 1), naive, rtol=1e-4, atol=1e-6 * largest)
    assert largest > 1e-3


def test_cross_attention_is_what_the_library_gives(model: HuggingFaceModel) -> None:
    batch = encoded_batch(model)
    library = library_outputs(model, batch, output_attentions=True).cross_attentions
    layers = range(model.layers)
    assert len(library) == model.layers
    assert torch.allclose(model.cross_attention(batch, layers), torch.stack(library))
    assert torch.allclose(model.cross_attention(batch, [1, 0, 1]), torch.stack([library[1], library[0], library[1]]))
    assert torch.allclose(model.cross_attention(batch, [0]), library[0][None])
    assert not torch.allclose(library[0], library[1])
    with pytest.raises(UsageError, match=f"layer {model.layers} does not exist"):
        model.cross_attention(batch, [model.layers])


def test_a_sentence_does_not_depend_on_its_batch(model: HuggingFaceModel) -> None:
    batch = encoded_batch(model)
    together = model.log_probs(batch, model.embed(batch))
    attention = model.cross_attention(batch, [0])
    gradient, _ = gradient_rows(model, batch, model.embed(batch), lambda rows: rows.sum(-1))
    for row, pair in enumerate(batch.pairs):
        alone = model.batch([pair])
        target, source = len(pair.target), len(pair.source)
        assert torch.allclose(together[row, :target], model.log_probs(alone, model.embed(alone))[0])
        assert not together[row, target:].any()
        assert torch.allclose(attention[:, row, :, :target, :source], model.cross_attention(alone, [0])[:, 0])
        lonely, _ = gradient_rows(model, alone, model.embed(alone), lambda rows: rows.sum(-1))
        assert torch.allclose(gradient[row, :target, :source], lonely[0])


def test_the_first_rows_can_be_decoded_alone(model: HuggingFaceModel) -> None:
    batch = encoded_batch(model)
    states = model.encode(batch, model.embed(batch))
    assert torch.allclose(model.decode(batch, states, 2), model.decode(batch, states)[:, :2])


@pytest.mark.parametrize("family", ["marian", "m2m_100", "mbart", "fsmt"])
def test_zero_embeddings_keep_their_positions(load: Callable[[str], Loaded], family: str) -> None:
    model, _ = load(family)
    batch = encoded_batch(model, 1)
    near = torch.full_like(model.embed(batch), 1e-9)
    assert torch.allclose(model.log_probs(batch, torch.zeros_like(near)), model.log_probs(batch, near), atol=1e-5)


def test_awi_is_the_step_that_reads_the_word(model: HuggingFaceModel) -> None:
    batch = encoded_batch(model, 1)
    pair = batch.pairs[0]
    rows = Attention(layer=1, position="awi").scores(model, batch)[0]
    library = library_outputs(model, batch, output_attentions=True).cross_attentions[1].mean(1)[0]
    for t, word in enumerate(pair.target_word_of):
        if word != NO_WORD:
            (step,) = [s for s in range(1, len(pair.prefix)) if s == t + 1 and pair.prefix[s] == pair.target[t]]
            assert torch.allclose(rows[t], library[step])


def test_what_attention_adds_is_the_sum_over_what_it_reads(model: HuggingFaceModel) -> None:
    batch = encoded_batch(model)
    found = insides(model, batch)
    assert torch.allclose(
        torch.stack([block.weights for block in found.cross]), model.cross_attention(batch, range(model.layers))
    )
    for block in (*found.encoder, *found.decoder, *found.cross):
        bias = block.sublayer.output.bias
        added = torch.einsum("bhqk,bhkd->bqd", block.weights, block.carried())
        assert torch.allclose(added if bias is None else added + bias, block.attended)
        expected = block.before if block.sublayer.norm_after else block.residual
        assert torch.allclose(block.sublayer.norm(expected), block.after)
    for first, second in zip(found.cross, found.decoder[1:], strict=False):
        assert first.result.shape == second.residual.shape


@pytest.mark.parametrize("family", ["marian_multi", "mbart", "mbart_50", "fsmt", "t5"])
def test_translating_with_beam_1_takes_the_likeliest_piece(load: Callable[[str], Loaded], family: str) -> None:
    model, _ = load(family)
    sources = [pair.source for pair in pairs(2)]
    for source, words in zip(sources, model.translate(sources, beam=1), strict=True):
        ids = model.tokens.source.encode(source)[0]
        target = list(model.tokens.target.before)
        for _ in range(10):
            prefix = [model.tokens.start, *target]
            step = model.module(
                input_ids=torch.tensor([ids]), decoder_input_ids=torch.tensor([prefix]), use_cache=False
            )
            target.append(int(step.logits[0, -1].argmax()))
        text = model.tokenizer.decode(target[len(model.tokens.target.before) :], skip_special_tokens=True)
        assert "".join(words).startswith(text.replace(" ", ""))


def test_words_of_an_unspaced_translation_can_be_linked(tmp_path: Path) -> None:
    FAMILIES["marian"](tmp_path)
    model = load_huggingface(tmp_path, target_lang="zh", dtype=torch.float64)
    text = "北京昨天我the house12キロ"
    ids = torch.tensor([[model.tokens.start, *model.tokens.target.cut(text).ids, *model.tokens.target.after]])
    with mock.patch.object(model.module, "generate", return_value=ids):
        (words,) = model.translate([("北京",)])
    assert "".join(words) == text.replace(" ", "")
    assert {"the", "house12"} < set(words)
    encoded = model.encode_pair(Pair(0, ("北京",), words))
    assert set(encoded.target_word_of) - {NO_WORD} == set(range(len(words)))


# What goes on the model comes off


def test_nothing_stays_on_the_model(model: HuggingFaceModel, monkeypatch: pytest.MonkeyPatch) -> None:
    def state() -> list[object]:
        modules = list(model.module.modules())
        hooks = [(len(m._forward_hooks), len(m._forward_pre_hooks), m.training) for m in modules]
        return [list(map(id, modules)), hooks, any(p.requires_grad for p in model.module.parameters())]

    batch = encoded_batch(model)
    before = state()
    assert before[-1] is False
    model.cross_attention(batch, [0])
    gradient_rows(model, batch, model.embed(batch), lambda rows: rows.sum(-1))
    assert state() == before

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(type(model._decoder.embed_tokens), "forward", broken)
    monkeypatch.setattr(torch.nn.Embedding, "forward", broken)
    for call in (
        lambda: model.cross_attention(batch, [0]),
        lambda: model.encode(batch, torch.zeros(4, 1, 8)),
        lambda: model.decode(batch, torch.zeros(4, batch.source.shape[1], 8)),
    ):
        with pytest.raises(RuntimeError, match="broken"):
            call()
    assert state() == before


def test_attention_without_weights_is_named(load: Callable[[str], Loaded]) -> None:
    model, folder = load("marian")
    from transformers import MarianMTModel

    fused = HuggingFaceModel(
        MarianMTModel.from_pretrained(folder, attn_implementation="sdpa"), model.tokens, None, "fused", ""
    )
    with pytest.raises(ModelError, match=r'fused gives no attention weights.*"eager"'):
        fused.cross_attention(encoded_batch(fused), [0])


# Limits


def test_lengths_and_empty_sides(load: Callable[[str], Loaded]) -> None:
    model, _ = load("marian")
    assert model.encode_pair(Pair(0, (), ("house",))).status == "empty"
    assert model.encode_pair(Pair(0, ("house",), ("\u200b",))).status == "empty"
    fits = model.encode_pair(Pair(0, ("house",) * 63, ("house",)))
    assert (fits.status, len(fits.source)) == ("ok", 64)
    assert model.encode_pair(Pair(0, ("house",) * 64, ("house",))).status == "too_long"
    assert model.encode_pair(Pair(0, ("house",), ("house",) * 64)).status == "too_long"
    batch = model.batch([fits])
    assert model.log_probs(batch, model.embed(batch)).isfinite().all()


def test_relative_positions_have_no_limit(load: Callable[[str], Loaded]) -> None:
    assert load("t5")[0].encode_pair(Pair(0, ("house",) * 900, ("house",))).status == "ok"
