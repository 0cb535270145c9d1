"""Marian models with random weights, for timing: what a step costs does not depend on what was learnt."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from data.bitext import Pair

PIECES = 1000  # of each side; the vocabulary may be larger
SIDES = ("source", "target")
SPECIAL = ("</s>", "<unk>", "<pad>")


class Size(NamedTuple):
    """Layers of encoder and decoder each, width, width inside the feed-forward layers, heads, vocabulary."""

    layers: int
    width: int
    inner: int
    heads: int
    vocabulary: int


# `small` is as large as the Hansards model of the README.
SIZES = {"tiny": Size(2, 64, 128, 4, 2500), "small": Size(3, 256, 1024, 4, 7704)}


def save_random_marian(folder: Path, pairs: Sequence[Pair], size: Size) -> None:
    """Write a Marian folder for `transformers`: SentencePiece models learnt from the pairs, random weights."""
    from transformers import MarianConfig, MarianMTModel

    pieces = [_learn(folder / f"{side}.spm", [" ".join(getattr(pair, side)) for pair in pairs]) for side in SIDES]
    vocabulary = {piece: number for number, piece in enumerate(dict.fromkeys([*SPECIAL, *pieces[0], *pieces[1]]))}
    vocabulary["<pad>"] = size.vocabulary - 1  # Marian's decoder starts with it, and its embedding is the last
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    settings = {"tokenizer_class": "MarianTokenizer", "source_lang": "src", "target_lang": "tgt"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    shape: dict[str, Any] = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in (("layers", size.layers), ("ffn_dim", size.inner), ("attention_heads", size.heads))
    }
    pad = vocabulary["<pad>"]
    torch.manual_seed(0)
    config = MarianConfig(
        vocab_size=size.vocabulary,
        d_model=size.width,
        activation_function="relu",
        max_position_embeddings=512,
        scale_embedding=True,
        pad_token_id=pad,
        decoder_start_token_id=pad,
        eos_token_id=0,
        forced_eos_token_id=0,
        **shape,
    )
    MarianMTModel(config).save_pretrained(folder)


def _learn(file: Path, lines: Sequence[str]) -> list[str]:
    """Pieces of a SentencePiece model learnt from `lines` and written to `file`."""
    import sentencepiece

    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_prefix=str(file.with_suffix("")),
        vocab_size=PIECES,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    file.with_suffix(".model").rename(file)
    file.with_suffix(".vocab").unlink()
    reader = sentencepiece.SentencePieceProcessor(model_file=str(file))
    return [reader.id_to_piece(number) for number in range(reader.get_piece_size())]
