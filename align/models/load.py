"""From a path and what lies beside it to a model: which kind it is, its dictionaries, its subwords."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from align.models.checkpoint import read_checkpoint
from align.models.cutters import SentencePiece
from align.models.ensemble import Ensemble
from align.models.fairseq_loading import load_fairseq
from align.models.hf_loading import is_huggingface, load_huggingface
from align.models.subwords import SubwordNmt, presegmented, whole_words
from align.models.text import is_unspaced, plain, text_writer
from data.errors import ModelError, UsageError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from align.models.base import TranslationModel
    from align.models.subwords import Segmenter

CODES = ("codes.{lang}", "codes", "bpecodes", "code", "bpe.codes")
SENTENCEPIECE = ("sentencepiece.{lang}.model", "spm.{lang}.model", "sentencepiece.bpe.model", "spm.model")
RELEASED_SENTENCEPIECE = (
    "sentence.bpe.model",  # mBART
    "spm.128k.model",  # M2M-100
    "flores200_sacrebleu_tokenizer_spm.model",  # NLLB-200
)
DICTIONARIES = ("dict.{lang}.txt", "dict.txt", "model_dict.128k.txt", "dictionary.txt")
TASKS_OF_RAW_TEXT = ("translation_multi_simple_epoch", "translation_from_pretrained_bart")
DTYPES = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.bfloat16}


@dataclass(frozen=True)
class Side:
    """What the user named for one side of the text; None is looked for beside the model."""

    language: str | None = None
    dictionary: Path | None = None
    bpe_codes: Path | None = None
    bpe_vocabulary: Path | None = None
    sentencepiece: Path | None = None


@dataclass(frozen=True)
class LoadOptions:
    """How to read a model.

    `input_kind` is `words`, `@@` or `▁`: whether the text is in pieces already (fairseq only). `unspaced` names the
    sides written without spaces, `piece_ends` says whether their pieces end at words, `allow_download` lets a name on
    the Hugging Face hub stand for a folder.
    """

    source: Side = Side()
    target: Side = Side()
    bpe_threshold: int | None = None
    input_kind: str = "words"
    unspaced: str = "auto"
    piece_ends: str = "word"
    allow_download: bool = False
    device: str = "cpu"
    dtype: str = "float32"

    def swapped(self) -> LoadOptions:
        """The same for the model of the other direction."""
        unspaced = {"source": "target", "target": "source"}.get(self.unspaced, self.unspaced)
        return replace(self, source=self.target, target=self.source, unspaced=unspaced)


def load_model(path: Path, options: LoadOptions) -> TranslationModel:
    """Load the model at `path`: a checkpoint of `fairseq-train`, or the folder of a Hugging Face model.

    Several paths joined by `:` are an ensemble, whose probabilities are averaged.

    Raises:
        ModelError: nothing there that can be loaded, or companion files that cannot be found.
        CheckpointError: see `load_fairseq`.
        UsageError: an unknown dtype or device.
    """
    if options.dtype not in DTYPES:
        raise unknown_name("dtype", options.dtype, DTYPES)
    if ":" in str(path) and not path.exists():
        return Ensemble([load_model(Path(part), options) for part in str(path).split(":")])
    dtype, device = DTYPES[options.dtype], _device(options.device)
    if is_huggingface(path) or (options.allow_download and not path.exists()):
        languages = options.source.language, options.target.language
        return load_huggingface(
            path, *languages, options.unspaced, dtype, device, options.allow_download, options.piece_ends
        )
    if not path.exists():
        raise ModelError(f"{path}: no such file or folder (a name on the Hugging Face hub needs --allow-download)")
    if path.is_dir():
        found = sorted(p.name for p in path.glob("*.pt"))
        hint = f": name a checkpoint in it, such as {found[0]}" if found else ""
        raise ModelError(f"{path} is a folder without config.json, so not a Hugging Face model{hint}")
    checkpoint = read_checkpoint(path)
    source = replace(options.source, language=options.source.language or _language(checkpoint.config, "source_lang"))
    target = replace(options.target, language=options.target.language or _language(checkpoint.config, "target_lang"))
    folder = path.parent

    raw = checkpoint.config.get("task") in TASKS_OF_RAW_TEXT

    def sentencepiece(model: Path, which: str, language: str | None) -> Segmenter:
        unspaced = is_unspaced(which, language, options.unspaced)
        write = text_writer(language, unspaced) if raw or unspaced else plain
        return SentencePiece(model, write, unspaced, options.piece_ends)

    def segmenters(source_dictionary: Any, target_dictionary: Any) -> tuple[Segmenter, Segmenter]:
        return (
            _segmenter(source, "source", folder, options, source_dictionary.symbols, sentencepiece),
            _segmenter(target, "target", folder, options, target_dictionary.symbols, sentencepiece),
        )

    return load_fairseq(
        path,
        (_dictionary(source, folder, "source"), _dictionary(target, folder, "target")),
        segmenters,
        dtype=dtype,
        device=device,
        checkpoint=checkpoint,
        languages=(source.language, target.language),
    )


def _language(config: dict[str, Any], key: str) -> str | None:
    value = config.get(key)
    return value if isinstance(value, str) else None


def _device(name: str) -> str:
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise UsageError(f"unknown device {name!r}; use cpu, cuda or cuda:N") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise UsageError("no CUDA device is available; use --device cpu")
    return name


def _dictionary(side: Side, folder: Path, which: str) -> Path:
    if side.dictionary is not None:
        return side.dictionary
    if side.language is None:
        raise ModelError(f"the checkpoint does not say its {which} language: give --{which}-lang or --{which}-dict")
    beside = _beside(folder, DICTIONARIES, side.language)
    if beside is None:
        expected = folder / f"dict.{side.language}.txt"
        raise ModelError(f"the {which} dictionary {expected} is not there: give --{which}-dict")
    return beside


def _segmenter(
    side: Side,
    which: str,
    folder: Path,
    options: LoadOptions,
    symbols: Iterable[str],
    sentencepiece: Callable[[Path, str, str | None], Segmenter],
) -> Segmenter:
    """The user's files first, then what lies beside the model, else whole words."""
    if options.input_kind != "words":
        return presegmented(options.input_kind)
    language = side.language or ""
    if side.sentencepiece is not None:
        return sentencepiece(side.sentencepiece, which, side.language)
    codes = side.bpe_codes or _beside(folder, CODES, language)
    if codes is not None:
        vocabulary = side.bpe_vocabulary or _beside(folder, ("vocab.{lang}",), language)
        return SubwordNmt(codes, vocabulary, options.bpe_threshold, set(symbols))
    model = _beside(folder, (*SENTENCEPIECE, *RELEASED_SENTENCEPIECE), language)
    return whole_words if model is None else sentencepiece(model, which, side.language)


def _beside(folder: Path, names: Iterable[str], language: str) -> Path | None:
    files = (folder / name.format(lang=language) for name in names)
    return next((file for file in files if file.is_file()), None)
