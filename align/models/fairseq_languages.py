"""What stands around the words in fairseq's multilingual tasks: language tokens, `<s>`, another start symbol."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.errors import ModelError, UsageError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Languages = tuple[str | None, str | None]
_DATA_TAGS = ("<MINED_DATA>", "<MMT_BT_DATA>", "<SMT_BT_DATA>")  # of NLLB-200


@dataclass(frozen=True)
class Around:
    """Ids before and after the pieces of each side, and the symbol that the decoder starts from.

    fairseq's `translation` has `X </s>`, and the decoder reads `</s> Y` and predicts `Y </s>`.
    """

    source_before: tuple[int, ...]
    source_after: tuple[int, ...]
    target_before: tuple[int, ...]
    target_after: tuple[int, ...]
    start: int


def read_around(config: Mapping[str, Any], source: Any, target: Any, languages: Languages, folder: Path) -> Around:
    """What the task of a checkpoint puts around words; language tokens are added to the dictionaries.

    Args:
        config: settings of the checkpoint.
        source, target: fairseq dictionaries, as the files have them.
        languages: of source and target.
        folder: where a list of languages that the settings name may lie.

    Raises:
        UsageError: a language that is needed or unknown.
        ModelError: no list of languages.
    """
    task = config.get("task")
    if task == "translation_multi_simple_epoch":
        return _many_to_many(config, source, target, languages, folder)
    if task == "translation_from_pretrained_bart":
        return _tuned_mbart(config, source, target, languages, folder)
    return Around((), (source.eos(),), (), (target.eos(),), target.eos())


def _many_to_many(config: Mapping[str, Any], source: Any, target: Any, languages: Languages, folder: Path) -> Around:
    """M2M-100, NLLB-200, mBART-50: `[tag] X </s>`, the decoder reads `</s> [tag] Y`, each tag where the task has it.

    With `--lang-tok-replacing-bos-eos`: `X tag`, the decoder reads `tag Y`.
    """
    from fairseq.data.multilingual.multilingual_utils import augment_dictionary, get_lang_tok

    known = _languages(config, folder)
    style = config.get("lang_tok_style") or "multilingual"
    for dictionary in (source, target):
        augment_dictionary(dictionary, known, style, config.get("langtoks_specs") or ["main"])
        if config.get("add_data_source_prefix_tags"):
            for symbol in _DATA_TAGS:
                dictionary.add_symbol(symbol)
    source_lang, target_lang = _checked(languages, known)
    of_source, of_target = _specifications(config)

    def tag(dictionary: Any, spec: str | None) -> tuple[int, ...]:
        if not spec:
            return ()
        language = source_lang if spec.startswith("src") else target_lang
        return (int(dictionary.index(get_lang_tok(language, style, spec))),)

    source_tag, target_tag = tag(source, of_source), tag(target, of_target)
    if config.get("lang_tok_replacing_bos_eos"):
        start = target_tag or (target.eos(),)
        return Around((), source_tag or (source.eos(),), (), (target.eos(),), start[0])
    return Around(source_tag, (source.eos(),), target_tag, (target.eos(),), target.eos())


def _specifications(config: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Whose tag stands on each side, `src` or `tgt`, None for no tag; `--langtoks` goes before the simple options."""
    if (given := config.get("langtoks_main")) is not None:
        source, target = given
        return source, target
    return config.get("encoder_langtok"), "tgt" if config.get("decoder_langtok") else None


def _tuned_mbart(config: Mapping[str, Any], source: Any, target: Any, languages: Languages, folder: Path) -> Around:
    """mBART-25: `X </s> [tag]`, the decoder reads `[tag] Y </s>` and predicts `Y </s> [tag]`."""
    from fairseq.data.multilingual.multilingual_utils import augment_dictionary

    known = _languages(config, folder)
    for dictionary in (source, target):
        augment_dictionary(dictionary, known, "mbart")
    source_lang, target_lang = _checked(languages, known)
    source_tag, target_tag = source.index(f"[{source_lang}]"), target.index(f"[{target_lang}]")
    before = ((source.bos(),), (target.bos(),)) if config.get("prepend_bos") else ((), ())
    return Around(before[0], (source.eos(), source_tag), before[1], (target.eos(), target_tag), target_tag)


def _languages(config: Mapping[str, Any], folder: Path) -> list[str]:
    """The languages of a model in the order of their tokens, as fairseq finds them.

    `--lang-dict` names a file elsewhere; one of that name beside the checkpoint is read.
    """
    if langs := config.get("langs"):
        return langs.split(",") if isinstance(langs, str) else list(langs)
    if listed := config.get("lang_dict"):
        beside = folder / Path(listed).name
        if not beside.is_file():
            raise ModelError(f"the model takes its languages from a file: put {beside.name} into {folder}")
        return [line.strip() for line in beside.read_text("utf-8").splitlines() if line.strip()]
    pairs = config.get("lang_pairs") or ()
    pairs = pairs.split(",") if isinstance(pairs, str) else pairs
    if not pairs:
        raise ModelError("the checkpoint does not say its languages: it has neither langs, lang_dict nor lang_pairs")
    return sorted({language for pair in pairs for language in pair.split("-")})


def _checked(languages: Languages, known: Sequence[str]) -> tuple[str, str]:
    found = []
    for side, language in zip(("source", "target"), languages, strict=True):
        if language is None:
            raise UsageError(f"this model knows several languages: give --{side}-lang, one of {', '.join(known)}")
        if language not in known:
            raise unknown_name(f"{side} language", language, known)
        found.append(language)
    return found[0], found[1]
