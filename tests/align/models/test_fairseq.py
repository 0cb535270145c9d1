"""The fairseq adapter against fairseq itself: log-probabilities, attention, padding, loading."""

from __future__ import annotations

import argparse

import pytest
import torch

from align.methods import compared_methods
from align.models.fairseq_loading import load_fairseq
from align.models.subwords import joined_bpe
from data.bitext import Pair
from data.errors import CheckpointError, ModelError, UsageError
from tests.tiny import SOURCE, TARGET, dictionary, tiny_model, tiny_module, tiny_pairs, tiny_settings


@pytest.fixture(scope="module")
def model():
    return tiny_model()


@pytest.fixture(scope="module")
def encoded(model):
    return [model.encode_pair(pair) for pair in tiny_pairs()]


def save(path, module, **cfg):
    state = {
        "args": None,
        "cfg": {"model": tiny_settings(**cfg), "task": {"source_lang": "src", "target_lang": "tgt"}},
        "model": module.state_dict(),
    }
    torch.save(state, path)


@pytest.fixture
def saved(tmp_path):
    module, source, target = tiny_module()
    save(tmp_path / "model.pt", module)
    source.save(str(tmp_path / "dict.src.txt"))
    target.save(str(tmp_path / "dict.tgt.txt"))
    return tmp_path


def load(folder, name="model.pt"):
    files = (folder / "dict.src.txt", folder / "dict.tgt.txt")
    return load_fairseq(folder / name, files, lambda source, target: (joined_bpe, joined_bpe), dtype=torch.float64)


def test_log_probs_are_those_of_fairseq(model, encoded):
    for pair in encoded:
        batch = model.batch([pair])
        logits, _ = model.module(batch.source, torch.tensor([len(pair.source)]), batch.prefix)
        expected = logits.log_softmax(-1)[0].gather(-1, batch.target[0, :, None])[:, 0]
        assert torch.allclose(model.log_probs(batch, model.embed(batch))[0], expected, atol=1e-6)


def test_last_layer_attention_is_what_fairseq_returns(model, encoded):
    batch = model.batch(encoded)
    _, extra = model.module(batch.source, None, batch.prefix)
    ours = model.cross_attention(batch, [model.layers - 1])[0].mean(1)
    assert torch.allclose(ours, extra["attn"][0].double(), atol=1e-12)


def test_attention_of_each_layer_and_head_is_what_fairseq_returns(model, encoded):
    batch = model.batch(encoded)
    ours = model.cross_attention(batch, [1, 0])
    for row, layer in enumerate([1, 0]):
        _, extra = model.module(batch.source, None, batch.prefix, alignment_layer=layer, alignment_heads=1)
        assert torch.allclose(ours[row][:, 0], extra["attn"][0].double(), atol=1e-12)
    assert not torch.allclose(ours[0], ours[1])


def test_attention_leaves_the_model_as_it_was(model, encoded):
    layers = list(model.module.decoder.layers)
    before = [len(layer.encoder_attn._forward_hooks) for layer in layers]
    with pytest.raises(UsageError, match="layer 2 does not exist"):
        model.cross_attention(model.batch(encoded), [2])
    model.cross_attention(model.batch(encoded), [0])
    assert list(model.module.decoder.layers) == layers
    assert [len(layer.encoder_attn._forward_hooks) for layer in layers] == before
    assert not any(parameter.requires_grad for parameter in model.module.parameters())
    assert not model.module.training


def test_nothing_runs_after_the_deepest_attention(model, encoded):
    ran: list[int] = []
    layers = model.module.decoder.layers
    handles = [
        part.register_forward_hook(lambda *_, depth=depth: ran.append(depth))
        for depth, layer in enumerate(layers)
        for part in (layer.self_attn, layer.fc1)
    ]
    try:
        model.cross_attention(model.batch(encoded), [1, 0])
        assert ran == [0, 0, 1]  # both parts of layer 0, and what comes before the cross-attention of layer 1
        ran.clear()
        model.log_probs(model.batch(encoded), model.embed(model.batch(encoded)))
        assert ran == [0, 0, 1, 1]
    finally:
        for handle in handles:
            handle.remove()


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize(
    "spec", ["attention", "gradient-norm", "gradient-x-input", "smoothgrad:samples=2", "integrated-gradients:steps=3"]
)
def test_batching_and_padding_side_change_nothing(model, encoded, spec, left, monkeypatch):
    for method in compared_methods(spec, model):
        alone = [method.scores(model, model.batch([pair]))[0] for pair in encoded]
        monkeypatch.setattr(type(model), "pad_left", left)
        batch = model.batch(encoded)
        together = method.scores(model, batch)
        monkeypatch.setattr(type(model), "pad_left", False)
        for row, expected in enumerate(alone):
            real = together[row][batch.target_mask[row]][:, batch.source_mask[row]]
            assert torch.allclose(real, expected, atol=1e-9)


def test_piece_and_word_indices(model):
    pair = model.encode_pair(Pair(0, ("s1@@", "s2", "s3"), ("t1", "t2@@", "t3@@", "t4")))
    assert pair.source_words == ("s1s2", "s3")
    assert pair.source_word_of == (0, 0, 1, -1)
    assert pair.target_word_of == (0, 1, 1, 1, -1)
    assert pair.prefix[1:] == pair.target[:-1]
    assert pair.unknown == 0
    assert model.encode_pair(Pair(0, ("s1", "nobody"), ("t1",))).unknown == 1


def test_statuses(model):
    assert model.encode_pair(Pair(0, (), ("t1",))).status == "empty"
    assert model.encode_pair(Pair(0, ("s1",) * 63, ("t1",))).status == "ok"
    assert model.encode_pair(Pair(0, ("s1",) * 64, ("t1",))).status == "too_long"


def test_baselines(model):
    table = model.module.encoder.embed_tokens.weight * 8**0.5
    assert torch.equal(model.baseline("zero"), torch.zeros(8).double())
    assert torch.allclose(model.baseline("unk"), table[3])
    assert torch.allclose(model.baseline("mean"), table.mean(0))
    with pytest.raises(UsageError, match="did you mean 'zero'"):
        model.baseline("zeros")


def test_loading_gives_the_same_model(saved):
    loaded, original = load(saved), tiny_model()
    pairs = [original.encode_pair(pair) for pair in tiny_pairs()]
    assert [loaded.encode_pair(pair) for pair in tiny_pairs()] == pairs
    batch = original.batch(pairs)
    ours, theirs = (m.log_probs(batch, m.embed(batch)) for m in (loaded, original))
    assert torch.allclose(ours, theirs, atol=1e-5)


def stacked(weights):
    """q, k and v in one matrix, as attention had them before 0.9."""
    for name in [n for n in weights if ".self_attn.q_proj." in n or ".encoder_attn.q_proj." in n]:
        kind = "in_proj_" + name.rpartition(".")[2]
        parts = [weights.pop(name.replace("q_proj", f"{letter}_proj")) for letter in "qkv"]
        weights[name.partition("q_proj")[0] + kind] = torch.cat(parts)


def numbered(weights):
    """LayerNorms by number: two in an encoder layer, three in a decoder layer."""
    names = {"encoder": ("self_attn", "final"), "decoder": ("self_attn", "encoder_attn", "final")}
    for stack, norms in names.items():
        for number, norm in enumerate(norms):
            for name in [n for n in weights if n.startswith(stack) and f".{norm}_layer_norm." in n]:
                weights[name.replace(f"{norm}_layer_norm", f"layer_norms.{number}")] = weights.pop(name)


def embedded_output(weights):
    """The output matrix under its old name."""
    weights["decoder.embed_out"] = weights.pop("decoder.output_projection.weight")


def tied_output(weights):
    """No output matrix, as it is the embedding."""
    del weights["decoder.output_projection.weight"]


def buffers(weights):
    for stack in ("encoder", "decoder"):
        weights[f"{stack}.embed_positions._float_tensor"] = torch.zeros(1)


@pytest.mark.parametrize(
    ("age", "settings"),
    [
        ([stacked], {}),
        ([numbered], {}),
        ([embedded_output], {}),
        ([tied_output], {"share_decoder_input_output_embed": True}),
        ([buffers], {}),
        ([stacked, numbered, embedded_output, buffers], {"encoder_normalize_before": True}),
    ],
)
def test_old_files_with_args(saved, age, settings):
    module, *_ = tiny_module(**settings)
    weights = dict(module.state_dict())
    for change in age:
        change(weights)
    args = tiny_settings(**settings)
    args.task = "translation"
    torch.save({"args": args, "model": weights}, saved / "old.pt")
    save(saved / "model.pt", module, **settings)
    old, new = load(saved, "old.pt"), load(saved)
    batch = new.batch([new.encode_pair(pair) for pair in tiny_pairs()])
    assert torch.allclose(old.log_probs(batch, old.embed(batch)), new.log_probs(batch, new.embed(batch)), atol=1e-12)


def test_pre_norm_files_end_in_a_norm_unless_they_are_very_old(saved):
    settings = {"encoder_normalize_before": True, "decoder_normalize_before": True}
    module, *_ = tiny_module(**settings)
    save(saved / "model.pt", module, **settings)
    assert load(saved).module.decoder.layer_norm is not None
    weights = {name: w for name, w in module.state_dict().items() if "coder.layer_norm" not in name}
    weights |= {"encoder.version": torch.tensor([1.0]), "decoder.version": torch.tensor([1.0])}
    torch.save({"args": tiny_settings(**settings), "model": weights}, saved / "model.pt")
    assert load(saved).module.decoder.layer_norm is None


def test_wrong_dictionary_is_named(saved):
    dictionary(SOURCE + ["extra"] * 1 + [f"x{n}" for n in range(9)]).save(str(saved / "dict.src.txt"))
    with pytest.raises(CheckpointError, match=r"encoder\.embed_tokens\.weight.*dict\.src\.txt"):
        load(saved)


def test_missing_layer_is_named(saved):
    module, *_ = tiny_module()
    weights = {n: w for n, w in module.state_dict().items() if "encoder.layers.1.fc1" not in n}
    torch.save({"cfg": {"model": tiny_settings()}, "model": weights}, saved / "model.pt")
    with pytest.raises(CheckpointError, match=r"encoder\.layers\.1\.fc1"):
        load(saved)


def test_width_that_does_not_fit_is_named(saved):
    module, *_ = tiny_module(encoder_ffn_embed_dim=16)
    save(saved / "model.pt", module)
    with pytest.raises(CheckpointError, match="fc1"):
        load(saved)


def test_other_architectures_and_activations_are_refused(saved):
    module, *_ = tiny_module()
    save(saved / "model.pt", module, arch="swoosh")
    with pytest.raises(ModelError, match="'swoosh' is not supported"):
        load(saved)
    save(saved / "model.pt", module, activation_fn="swoosh")
    with pytest.raises(CheckpointError, match="swoosh"):
        load(saved)


def test_user_dir_and_data_are_never_followed(saved):
    trap = saved / "plugin"
    trap.mkdir()
    (trap / "__init__.py").write_text(f"open({str(saved / 'canary')!r}, 'w').close()")
    module, *_ = tiny_module()
    save(saved / "model.pt", module, user_dir=str(trap), data=str(trap))
    load(saved)
    assert not (saved / "canary").exists()


def test_weights_that_are_not_finite_are_refused(saved):
    module, *_ = tiny_module()
    module.decoder.layers[0].fc2.bias.data[0] = float("nan")
    save(saved / "model.pt", module)
    with pytest.raises(CheckpointError, match=r"decoder\.layers\.0\.fc2\.bias"):
        load(saved)


def test_translation_is_no_worse_than_any_single_piece():
    """Beam search against the enumeration of every output of one piece."""
    model = tiny_model(max_target_positions=4)
    sources = [("s1", "s2@@", "s3"), ("s4",)]
    words = model.translate(sources, beam=12)
    assert len(words) == 2
    for source, target in zip(sources, words, strict=True):
        ours = score_of(model, source, target)
        one_piece = max(score_of(model, source, (piece,)) for piece in TARGET)
        assert ours >= one_piece - 1e-9
    assert all(layer.encoder_attn.beam_size == 1 for layer in model.module.decoder.layers)
    batched = model.translate(sources, beam=1)
    assert batched == [model.translate([source], beam=1)[0] for source in sources]


def score_of(model, source, target):
    """Log-probability of an output, divided by its length as the search does."""
    encoded = model.encode_pair(Pair(0, source, target))
    batch = model.batch([encoded])
    return float(model.log_probs(batch, model.embed(batch)).sum()) / len(encoded.target)


def test_settings_are_inert():
    assert isinstance(tiny_settings(), argparse.Namespace)
    assert len(dictionary(TARGET)) % 8 == 0
