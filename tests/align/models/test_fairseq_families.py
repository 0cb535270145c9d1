"""fairseq's other architectures: gradients by finite differences, attention and log-probabilities of fairseq."""

from __future__ import annotations

import warnings
from argparse import Namespace
from types import SimpleNamespace

import pytest
import torch

from align.methods import make_method
from align.methods.rows import gradient_rows
from align.models.fairseq_loading import load_fairseq
from align.models.subwords import joined_bpe
from data.errors import ModelError, UsageError
from tests.tiny import SOURCE, TARGET, dictionary, tiny_module, tiny_pairs, tiny_settings

SMALL = {"encoder_embed_dim": 8, "decoder_embed_dim": 8, "max_source_positions": 64, "max_target_positions": 64}
CASES = {
    "lstm": {"encoder_hidden_size": 8, "decoder_hidden_size": 8, "decoder_out_embed_dim": 6, "encoder_layers": 2,
             "decoder_layers": 2, "encoder_bidirectional": True},
    "fconv": {"encoder_layers": "[(8, 3)] * 2", "decoder_layers": "[(8, 3)] * 2", "decoder_attention": "True",
              "decoder_out_embed_dim": 6},
    "lightconv": {"encoder_conv_dim": 8, "decoder_conv_dim": 8, "encoder_ffn_embed_dim": 12,
                  "decoder_ffn_embed_dim": 12, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2,
                  "decoder_attention_heads": 2, "encoder_kernel_size_list": [3, 3],
                  "decoder_kernel_size_list": [3, 3], "encoder_conv_type": "lightweight",
                  "decoder_conv_type": "lightweight", "weight_softmax": True},
    "transformer_align": vars(tiny_settings()) | {"alignment_heads": 1, "alignment_layer": 0},
}  # fmt: skip
CASES["dynamicconv"] = CASES["lightconv"] | {"encoder_conv_type": "dynamic", "decoder_conv_type": "dynamic"}
ARCHITECTURE = {"dynamicconv": "lightconv"}


@pytest.fixture(scope="module", params=CASES)
def model(request, tmp_path_factory):
    """A tiny random model of the family, written as a checkpoint and read back."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from fairseq import models
    folder = tmp_path_factory.mktemp(request.param)
    arch = ARCHITECTURE.get(request.param, request.param)
    settings = Namespace(**SMALL | CASES[request.param] | {"arch": arch, "dropout": 0.1, "criterion": None})
    source, target = dictionary(SOURCE), dictionary(TARGET)
    torch.manual_seed(0)
    models.ARCH_CONFIG_REGISTRY[arch](settings)
    task = SimpleNamespace(source_dictionary=source, target_dictionary=target)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = models.ARCH_MODEL_REGISTRY[arch].build_model(settings, task)
        for name, parameter in module.named_parameters():
            if parameter.dim() > 1 and "weight_g" not in name:
                torch.nn.init.normal_(parameter, std=0.5)
        torch.save({"args": settings, "model": module.state_dict()}, folder / "model.pt")
    source.save(str(folder / "s"))
    target.save(str(folder / "t"))
    return load_fairseq(
        folder / "model.pt", (folder / "s", folder / "t"), lambda s, t: (joined_bpe, joined_bpe), torch.float64
    )


@pytest.fixture(scope="module")
def encoded(model):
    return [model.encode_pair(pair) for pair in tiny_pairs(3, longest=4)]


def test_log_probs_are_those_of_fairseq(model, encoded):
    batch = model.batch(encoded[:1])
    logits, _ = model.module(batch.source, batch.source_mask.sum(1), batch.prefix)
    expected = logits.log_softmax(-1).gather(-1, batch.target[..., None])[..., 0]
    assert torch.allclose(model.log_probs(batch, model.embed(batch)), expected, atol=1e-6)


def test_gradients_by_finite_differences(model, encoded):
    batch = model.batch(encoded[:1])
    x = model.embed(batch)
    g, _ = gradient_rows(model, batch, x, lambda chunk: chunk.permute(3, 0, 1, 2))  # [D, B, T, S]
    step = 1e-5
    for s in range(x.shape[1]):
        for d in range(x.shape[2]):
            moved = x.clone()
            moved[0, s, d] += step
            up = model.log_probs(batch, moved)
            moved[0, s, d] -= 2 * step
            slope = (up - model.log_probs(batch, moved))[0] / (2 * step)
            assert torch.allclose(g[d, 0, :, s], slope, atol=1e-5)


def test_attention_is_that_of_fairseq(model, encoded):
    batch = model.batch(encoded[:1])
    heads = model.cross_attention(batch, range(model.layers))  # [L, B, H, T, S]
    ours = heads.mean(2)
    _, extra = model.module(batch.source, batch.source_mask.sum(1), batch.prefix)
    theirs = extra["attn"][0] if isinstance(extra, dict) else extra
    expected = {"FConvModel": ours.mean(0), "TransformerAlignModel": heads[0][:, 0]}
    expected = expected.get(type(model.module).__name__, ours[-1])
    assert torch.allclose(expected, theirs.double(), atol=1e-6)
    with pytest.raises(UsageError, match="does not exist"):
        model.cross_attention(batch, [model.layers])


@pytest.mark.parametrize("spec", ["attention", "attention:position=awi", "gradient-x-input:sign=signed"])
def test_batching_changes_nothing(model, encoded, spec):
    method = make_method(spec)
    batch = model.batch(encoded)
    together = method.scores(model, batch)
    for row, pair in enumerate(encoded):
        alone = method.scores(model, model.batch([pair]))[0]
        real = together[row][batch.target_mask[row]][:, batch.source_mask[row]]
        assert torch.allclose(real, alone, atol=1e-6)


def test_what_a_family_lacks_is_said(model):
    if type(model.module).__name__ == "TransformerAlignModel":
        assert len(model.sublayers().cross) == 2
    else:
        with pytest.raises(ModelError, match="is no Transformer"):
            model.sublayers()


def multilingual(folder, **options):
    symbols = [*SOURCE, *TARGET]
    tagged = dictionary(symbols)
    for language in ("de", "en"):
        tagged.add_symbol(f"__{language}__")
    module, *_ = tiny_module(source=tagged, target=tagged)
    dictionary(symbols).save(str(folder / "dict"))
    task = {"_name": "translation_multi_simple_epoch", "langs": ["de", "en"], "lang_tok_style": "multilingual"}
    cfg = {"model": tiny_settings(), "task": task | options}
    torch.save({"cfg": cfg, "model": module.state_dict()}, folder / "model.pt")


def load_multilingual(folder, *languages):
    files = (folder / "dict", folder / "dict")
    return load_fairseq(folder / "model.pt", files, lambda s, t: (joined_bpe, joined_bpe), languages=languages)


@pytest.mark.parametrize(("encoder", "first"), [("src", "de"), ("tgt", "en"), (None, None)])
def test_language_tokens(tmp_path, encoder, first):
    multilingual(tmp_path, encoder_langtok=encoder, decoder_langtok=True)
    model = load_multilingual(tmp_path, "de", "en")
    pair = model.encode_pair(tiny_pairs(1)[0])
    tags = [model.source_dictionary.index(f"__{first}__")] if first else []
    assert list(pair.source[: len(tags)]) == tags
    assert pair.source_word_of[: len(tags)] == (-1,) * len(tags)
    assert pair.source_word_of[len(tags)] == 0
    assert pair.target[0] == pair.prefix[1] == model.target_dictionary.index("__en__")
    assert pair.target_word_of[:2] == (-1, 0)
    assert pair.prefix[1:] == pair.target[:-1]


def test_languages_of_a_multilingual_model(tmp_path):
    multilingual(tmp_path, encoder_langtok="src", decoder_langtok=True)
    with pytest.raises(UsageError, match="give --target-lang, one of de, en"):
        load_multilingual(tmp_path, "de", None)
    with pytest.raises(UsageError, match="unknown source language 'dd'"):
        load_multilingual(tmp_path, "dd", "en")
