"""Tiny random fairseq Transformers, and pairs for them."""

from __future__ import annotations

import random
import warnings
from argparse import Namespace
from types import SimpleNamespace

import torch

from align.models.fairseq import FairseqModel
from align.models.subwords import joined_bpe
from data.bitext import Pair

SOURCE = [f"s{n}" for n in range(12)] + [f"s{n}@@" for n in range(6)]
TARGET = [f"t{n}" for n in range(13)] + [f"t{n}@@" for n in range(6)]


def dictionary(symbols: list[str]):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from fairseq.data import Dictionary

    result = Dictionary()
    for symbol in symbols:
        result.add_symbol(symbol, n=10)
    result.finalize()
    return result


def tiny_settings(**changes) -> Namespace:
    """Arguments of a small `transformer`, as a checkpoint would hold them."""
    settings = {
        "arch": "transformer",
        "encoder_embed_dim": 8,
        "encoder_ffn_embed_dim": 12,
        "encoder_layers": 2,
        "encoder_attention_heads": 2,
        "decoder_embed_dim": 8,
        "decoder_ffn_embed_dim": 12,
        "decoder_layers": 2,
        "decoder_attention_heads": 2,
        "dropout": 0.1,
        "max_source_positions": 64,
        "max_target_positions": 64,
        "share_all_embeddings": False,
        "source_lang": "src",
        "target_lang": "tgt",
    }
    return Namespace(**{**settings, **changes})


def tiny_module(seed: int = 0, source=None, target=None, **changes):
    """A random fairseq Transformer with weights large enough that attention and gradients are not flat."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from fairseq.models.transformer import TransformerModel, base_architecture

        source, target = source or dictionary(SOURCE), target or dictionary(TARGET)
        settings = tiny_settings(**changes)
        base_architecture(settings)
        torch.manual_seed(seed)
        task = SimpleNamespace(source_dictionary=source, target_dictionary=target)
        module = TransformerModel.build_model(settings, task)
    for parameter in module.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.5)
    for table in (module.encoder.embed_tokens, module.decoder.embed_tokens):
        torch.nn.init.zeros_(table.weight.data[table.padding_idx])
    return module, source, target


def tiny_model(dtype: torch.dtype = torch.float64, seed: int = 0, **changes) -> FairseqModel:
    """The same as a `TranslationModel` that reads text in `@@` pieces. `changes` are fairseq settings."""
    module, source, target = tiny_module(seed, **changes)
    return FairseqModel(module.to(dtype), source, target, joined_bpe, joined_bpe, name="tiny", fingerprint="0" * 64)


def tiny_pairs(count: int = 6, seed: int = 1, longest: int = 7) -> list[Pair]:
    """Random pairs of 1..`longest` words, some of two pieces."""
    rng = random.Random(seed)

    def side(mark: str) -> tuple[str, ...]:
        tokens: list[str] = []
        for _ in range(rng.randint(1, longest)):
            if rng.random() < 0.4:
                tokens.append(f"{mark}{rng.randrange(6)}@@")
            tokens.append(f"{mark}{rng.randrange(12)}")
        return tuple(tokens)

    return [Pair(n, side("s"), side("t")) for n in range(count)]
