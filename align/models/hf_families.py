"""Families of Hugging Face translation models: where each has its languages, tags, prompts and start symbols."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from align.models.cutters import SentencePieceCutter, word_cutter
from align.models.hf_tokenizers import JsonCutter, MosesBpeCutter, Side
from align.models.text import is_unspaced, text_writer
from data.errors import ModelError, UsageError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

    from align.models.cutters import Cutter

_SENTENCEPIECE = ("sentencepiece.bpe.model", "spiece.model", "sentencepiece.model")
_LANGUAGE_TOKEN = re.compile(r"[a-z]{2,3}_[A-Z][A-Za-z]{1,3}")  # en_XX of mBART, eng_Latn of NLLB
_TARGET_TOKEN = re.compile(r"<2([A-Za-z_]+)>")  # <2de> of MADLAD


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; empty where there is no file. Raises ModelError for anything else."""
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise ModelError(f"{path} is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise ModelError(f"{path} does not hold a JSON object")
    return content


@dataclass(frozen=True)
class Tokens:
    """How a pair becomes ids: both sides, and the symbol that the decoder starts from."""

    source: Side
    target: Side
    start: int


@dataclass(frozen=True)
class Folder:
    """What a family reads: the folder, its configuration and tokenizer, and what the user said."""

    path: Path
    config: Any
    tokenizer: Any
    source_lang: str | None
    target_lang: str | None
    unspaced: str
    piece_ends: str

    @property
    def start(self) -> int:
        """The symbol the decoder starts from. Raises ModelError if the configuration has none."""
        start = getattr(self.config, "decoder_start_token_id", None)
        if start is None:
            start = read_json(self.path / "generation_config.json").get("decoder_start_token_id")
        if not isinstance(start, int):
            raise ModelError(f"{self.path}: config.json has no decoder_start_token_id")
        return start

    def side(self, name: str, language: str | None, cut: Cutter, **around: Any) -> Side:
        """A side whose words are joined with spaces or without, by what the user said or the language."""
        unspaced = is_unspaced(name, language, self.unspaced)
        around = {"unknown": self.tokenizer.unk_token_id, **around}
        ends = word_cutter(cut, unspaced, self.piece_ends)
        return Side(text_writer(language, unspaced), cut, unspaced=unspaced, ends=ends, **around)

    def language(self, name: str, known: Collection[str]) -> str:
        """The language of side `name`, one of `known`.

        Raises:
            UsageError: none given, or an unknown one.
        """
        given = self.source_lang if name == "source" else self.target_lang
        if given is None:
            raise UsageError(f"{self.path}: give --{name}-lang, one of {', '.join(sorted(known))}")
        if given not in known:
            raise unknown_name(f"{name} language", given, known)
        return given


def _marian(folder: Folder) -> Tokens:
    """Marian: `X </s>`, with `>>xxx<<` first where there are several target languages."""
    tokenizer = folder.tokenizer
    source, target = tokenizer.encoder, tokenizer.encoder
    if tokenizer.separate_vocabs:
        target = tokenizer.target_encoder
    tags = {piece[2:-2]: id_ for piece, id_ in source.items() if re.fullmatch(">>.+<<", piece)}
    before = (tags[folder.language("target", tags)],) if tags else ()
    source_lang = folder.source_lang or tokenizer.source_lang
    target_lang = folder.target_lang or tokenizer.target_lang

    def side(name: str, language: str | None, ids: Mapping[str, int], before: tuple[int, ...]) -> Side:
        unknown = ids[tokenizer.unk_token]
        cut = SentencePieceCutter(folder.path / f"{name}.spm", lambda piece: ids.get(piece, unknown))
        return folder.side(name, language, cut, unknown=unknown, before=before, after=(ids[tokenizer.eos_token],))

    return Tokens(side("source", source_lang, source, before), side("target", target_lang, target, ()), folder.start)


def _many_languages(folder: Folder) -> Tokens:
    """M2M-100, NLLB-200, mBART: the tokenizer says where its tag stands, before the words or after `</s>`.

    The decoder reads `</s> tag Y`. Only mBART-25, whose source tag stands after `</s>`, has the tag in the place of
    the start symbol.
    """
    tokenizer = folder.tokenizer
    if not hasattr(tokenizer, "prefix_tokens"):
        raise ModelError(f"{folder.path}: its tokenizer, {type(tokenizer).__name__}, knows no languages")
    tags = _language_tags(tokenizer)
    source_lang, target_lang = (folder.language(name, tags) for name in ("source", "target"))
    tokenizer.src_lang = source_lang
    before, after = tuple(tokenizer.prefix_tokens), tuple(tokenizer.suffix_tokens)
    tag = tags[target_lang]
    is_mbart_25 = folder.config.model_type == "mbart" and not before
    cut = _shared_cutter(folder)
    return Tokens(
        folder.side("source", source_lang, cut, before=before, after=after),
        folder.side("target", target_lang, cut, before=() if is_mbart_25 else (tag,), after=(tokenizer.eos_token_id,)),
        tag if is_mbart_25 else folder.start,
    )


def _language_tags(tokenizer: Any) -> dict[str, int]:
    if hasattr(tokenizer, "lang_token_to_id"):  # M2M-100, which writes __en__
        return {token.strip("_"): id_ for token, id_ in tokenizer.lang_token_to_id.items()}
    tokens = filter(_LANGUAGE_TOKEN.fullmatch, tokenizer.all_special_tokens)
    return {token: tokenizer.convert_tokens_to_ids(token) for token in tokens}


def _fsmt(folder: Folder) -> Tokens:
    """FSMT: `X </s>`, a vocabulary a side."""
    tokenizer = folder.tokenizer
    target = {piece: id_ for id_, piece in tokenizer.decoder.items()}

    def side(name: str, language: str, ids: Mapping[str, int]) -> Side:
        unknown = ids[tokenizer.unk_token]
        cut = MosesBpeCutter(tokenizer, language, ids, unknown)
        return folder.side(name, language, cut, unknown=unknown, after=(ids[tokenizer.sep_token],))

    return Tokens(
        side("source", tokenizer.src_lang, tokenizer.encoder), side("target", tokenizer.tgt_lang, target), folder.start
    )


def _t5(folder: Folder) -> Tokens:
    """T5, mT5, MADLAD-400: `X </s>`, after the prompt that config.json has for the languages, or after `<2xx>`."""
    tokenizer = folder.tokenizer
    vocabulary = tokenizer.get_vocab()
    tags = {found[1]: vocabulary[piece] for piece in vocabulary if (found := _TARGET_TOKEN.fullmatch(piece))}
    before = (tags[folder.language("target", tags)],) if tags else ()
    cut, after = _shared_cutter(folder), (tokenizer.eos_token_id,)
    return Tokens(
        folder.side("source", folder.source_lang, cut, before=before, after=after, prompt=_prompt(folder)),
        folder.side("target", folder.target_lang, cut, after=after),
        folder.start,
    )


def _prompt(folder: Folder) -> str:
    """What stands before the words for these languages; nothing where the model knows no translation task."""
    tasks = getattr(folder.config, "task_specific_params", None) or {}
    prompts = {
        (found[1], found[2]): str(task.get("prefix", ""))
        for name, task in tasks.items()
        if (found := re.fullmatch("translation_(.+)_to_(.+)", name))
    }
    if not prompts:
        return ""
    source = folder.language("source", {source for source, _ in prompts})
    target = folder.language("target", {target for start, target in prompts if start == source})
    return prompts[source, target]


def _shared_cutter(folder: Folder) -> Cutter:
    """The cutter of both sides: the SentencePiece model in the folder, else tokenizer.json."""
    unknown = folder.tokenizer.unk_token_id

    def id_of(piece: str) -> int:
        found = folder.tokenizer.convert_tokens_to_ids(piece)
        return int(unknown if found is None else found)

    for name in _SENTENCEPIECE:
        if (folder.path / name).is_file():
            return SentencePieceCutter(folder.path / name, id_of)
    if (folder.path / "tokenizer.json").is_file():
        return JsonCutter(folder.path / "tokenizer.json")
    raise ModelError(f"{folder.path}: neither {', '.join(_SENTENCEPIECE)} nor tokenizer.json is there")


# By `model_type` of config.json: the class in transformers, and how pairs become ids.
FAMILIES: dict[str, tuple[str, Callable[[Folder], Tokens]]] = {
    "fsmt": ("FSMTForConditionalGeneration", _fsmt),
    "m2m_100": ("M2M100ForConditionalGeneration", _many_languages),
    "marian": ("MarianMTModel", _marian),
    "mbart": ("MBartForConditionalGeneration", _many_languages),
    "mt5": ("MT5ForConditionalGeneration", _t5),
    "t5": ("T5ForConditionalGeneration", _t5),
}
