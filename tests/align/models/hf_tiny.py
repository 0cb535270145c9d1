"""Tiny random Hugging Face models with tokenizers trained on the spot, as folders on disk."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from data.bitext import Pair

WORDS = "the house is small big gardens street walk walking 12 2024 fine fish flat 北京 我 昨天 キロ naïve café".split()
SIZE = {"d_model": 8, "encoder_layers": 2, "decoder_layers": 2, "max_position_embeddings": 64}
SIZE |= {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 12, "decoder_ffn_dim": 12}
SIZE |= {"dropout": 0.1, "scale_embedding": True}
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]

PROMPT = "translate English to German: "

Languages = dict[str, str]


def train_sentencepiece(path: Path, **options: Any) -> list[str]:
    """Train a SentencePiece model of about 90 pieces and give its pieces."""
    rng = random.Random(0)
    lines = [" ".join(rng.choices(WORDS, k=8)) for _ in range(300)] + [PROMPT] * 20
    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        hard_vocab_limit=False,
        minloglevel=2,
        **{"vocab_size": 90, **options},
    )
    path.write_bytes(model.getvalue())
    processor = SentencePieceProcessor(model_file=str(path))
    return [processor.id_to_piece(i) for i in range(processor.vocab_size())]


def write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False), "utf-8")


def save_model(folder: Path, class_name: str, **settings: Any) -> None:
    """Save a random model, with weights large enough that attention and gradients are not flat."""
    import transformers

    model_class = getattr(transformers, class_name)
    torch.manual_seed(0)
    module = model_class(model_class.config_class(**settings)).double()
    for name, parameter in module.named_parameters():
        if parameter.dim() > 1 and "embed_positions" not in name:
            torch.nn.init.normal_(parameter, std=0.5)
        elif name.endswith("bias"):
            torch.nn.init.normal_(parameter, std=0.3)
    if hasattr(module, "final_logits_bias"):
        torch.nn.init.normal_(module.final_logits_bias, std=0.3)
    module.save_pretrained(folder)


def marian(folder: Path, tags: tuple[str, ...] = (), separate: bool = False) -> Languages:
    sides = ("source", "target")
    pieces = [
        train_sentencepiece(folder / f"{side}.spm", seed_sentencepiece_size=1000 + i) for i, side in enumerate(sides)
    ]
    # As in the models of OPUS: ids of their own, <pad> last, which starts the decoder.
    vocabulary = ["</s>", "<unk>", *tags, *sorted({*pieces[0], *pieces[1]} - {"<s>", "</s>", "<unk>"}), "<pad>"]
    target = ["</s>", "<unk>", *sorted(set(pieces[1]) - {"<s>", "</s>", "<unk>"})[:-5], "<pad>"]
    write_json(folder / "vocab.json", {piece: i for i, piece in enumerate(vocabulary)})
    settings: dict[str, Any] = {"source_lang": "zh", "target_lang": "en", "separate_vocabs": separate}
    if separate:
        write_json(folder / "target_vocab.json", {piece: i for i, piece in enumerate(target)})
        settings["target_vocab_file"] = "target_vocab.json"
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "MarianTokenizer", **settings})
    size = len(vocabulary)
    save_model(
        folder,
        "MarianMTModel",
        vocab_size=size,
        decoder_vocab_size=len(target) if separate else size,
        share_encoder_decoder_embeddings=not separate,
        tie_word_embeddings=True,
        eos_token_id=0,
        pad_token_id=(len(target) if separate else size) - 1,
        decoder_start_token_id=(len(target) if separate else size) - 1,
        activation_function="swish",
        **SIZE,
    )
    return {}


def marian_multi(folder: Path) -> Languages:
    marian(folder, tags=(">>deu<<", ">>fra<<"))
    return {"target_lang": "fra"}


def marian_separate(folder: Path) -> Languages:
    return marian(folder, separate=True)


def m2m_100(folder: Path) -> Languages:
    from transformers import M2M100Tokenizer

    pieces = train_sentencepiece(folder / "sentencepiece.bpe.model")
    vocabulary = [*SPECIAL, *(piece for piece in pieces if piece not in SPECIAL)]
    write_json(folder / "vocab.json", {piece: i for i, piece in enumerate(vocabulary)})
    tokenizer = M2M100Tokenizer(str(folder / "vocab.json"), str(folder / "sentencepiece.bpe.model"))
    tokenizer.save_pretrained(folder)
    save_model(folder, "M2M100ForConditionalGeneration", vocab_size=len(vocabulary) + 108, **SIZE)
    return {"source_lang": "en", "target_lang": "de"}


def nllb(folder: Path, legacy: bool = False) -> Languages:
    from transformers import NllbTokenizer

    train_sentencepiece(folder / "sentencepiece.bpe.model", model_type="bpe", vocab_size=150)
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "NllbTokenizer"})
    tags = ["deu_Latn", "eng_Latn", "zho_Hans"]
    tokenizer = NllbTokenizer.from_pretrained(folder, legacy_behaviour=legacy, extra_special_tokens=tags)
    tokenizer.save_pretrained(folder)
    save_model(folder, "M2M100ForConditionalGeneration", vocab_size=len(tokenizer), **SIZE)
    return {"source_lang": "eng_Latn", "target_lang": "deu_Latn"}


def nllb_legacy(folder: Path) -> Languages:
    return nllb(folder, legacy=True)


def mbart(folder: Path, class_name: str = "MBartTokenizer", **settings: Any) -> Languages:
    import transformers

    train_sentencepiece(folder / "sentencepiece.bpe.model")
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": class_name})
    tokenizer = getattr(transformers, class_name).from_pretrained(folder)
    tokenizer.save_pretrained(folder)
    save_model(folder, "MBartForConditionalGeneration", vocab_size=len(tokenizer), **settings, **SIZE)
    return {"source_lang": "en_XX", "target_lang": "ro_RO"}


def mbart_50(folder: Path) -> Languages:
    return mbart(folder, "MBart50Tokenizer", decoder_start_token_id=2)


def fsmt(folder: Path) -> Languages:
    merges = ["t h", "th e</w>", "h o", "ho u", "s e</w>", "w a", "wa l", "i n", "in g</w>", "g a", "f i", "& a"]
    (folder / "merges.txt").write_text("".join(f"{merge} 1\n" for merge in merges), "utf-8")
    characters = sorted({*"".join(WORDS), *"abcdefghijklmnopqrstuvwxyz0123456789.,'\"!?-@&;()äöü"})
    pieces = [*characters, *(c + "</w>" for c in characters), *(merge.replace(" ", "") for merge in merges)]
    for side, some in (("src", pieces), ("tgt", pieces[3:])):
        write_json(folder / f"vocab-{side}.json", {piece: i for i, piece in enumerate([*SPECIAL, *some])})
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "FSMTTokenizer", "langs": ["en", "de"]})
    sizes = {"src_vocab_size": len(pieces) + 4, "tgt_vocab_size": len(pieces) + 1}
    save_model(folder, "FSMTForConditionalGeneration", langs=["en", "de"], activation_function="relu", **sizes, **SIZE)
    return {}


def t5(folder: Path) -> Languages:
    from transformers import T5Tokenizer

    train_sentencepiece(folder / "spiece.model", pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    tokenizer = T5Tokenizer.from_pretrained(folder)
    tokenizer.save_pretrained(folder)
    tasks = {
        "summarization": {"prefix": "summarize: "},
        "translation_en_to_de": {"prefix": PROMPT},
    }
    save_t5(folder, "T5ForConditionalGeneration", len(tokenizer), task_specific_params=tasks, num_decoder_layers=2)
    return {"source_lang": "en", "target_lang": "de"}


def save_t5(folder: Path, class_name: str, pieces: int, tied: bool = True, **settings: Any) -> None:
    size = {"d_model": 8, "d_kv": 3, "d_ff": 12, "num_layers": 2, "num_heads": 2}
    ids = {"pad_token_id": 0, "decoder_start_token_id": 0, "eos_token_id": 1, "tie_word_embeddings": tied}
    save_model(folder, class_name, vocab_size=pieces, **size, **ids, **settings)
    if not tied:  # as from version 1.1 on, with an output layer of its own
        weights = load_file(folder / "model.safetensors")
        save_file({**weights, "lm_head.weight": torch.randn(pieces, 8).double()}, folder / "model.safetensors")
        write_json(
            folder / "config.json", json.loads((folder / "config.json").read_text()) | {"tie_word_embeddings": False}
        )


def mt5(folder: Path) -> Languages:
    t5(folder)
    (folder / "spiece.model").unlink()  # what save_pretrained writes is tokenizer.json alone
    from transformers import AutoTokenizer

    pieces = len(AutoTokenizer.from_pretrained(folder))
    save_t5(
        folder, "MT5ForConditionalGeneration", pieces, tied=False, num_decoder_layers=3, feed_forward_proj="gated-gelu"
    )
    return {}


def madlad(folder: Path) -> Languages:
    from transformers import T5Tokenizer

    tags = {"user_defined_symbols": ["<2de>", "<2zh>"], "byte_fallback": True, "vocab_size": 350}
    train_sentencepiece(folder / "spiece.model", unk_id=0, bos_id=-1, eos_id=2, pad_id=1, **tags)
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "T5Tokenizer", "extra_ids": 0})
    tokenizer = T5Tokenizer.from_pretrained(folder)
    tokenizer.save_pretrained(folder)
    save_t5(
        folder,
        "T5ForConditionalGeneration",
        len(tokenizer),
        tied=False,
        num_decoder_layers=3,
        feed_forward_proj="gated-gelu",
    )
    return {"target_lang": "de"}


FAMILIES: dict[str, Callable[[Path], Languages]] = {
    f.__name__: f
    for f in (marian, marian_multi, marian_separate, m2m_100, nllb, nllb_legacy, mbart, mbart_50, fsmt, t5, mt5, madlad)
}


def pairs(count: int = 4, seed: int = 1, longest: int = 5) -> list[Pair]:
    """Random pairs of 1..`longest` words."""
    rng = random.Random(seed)

    def side() -> tuple[str, ...]:
        return tuple(rng.choices([*WORDS, "unheard", "walked"], k=rng.randint(1, longest)))

    return [Pair(n, side(), side()) for n in range(count)]
