"""From a fairseq checkpoint and its dictionaries to a model: our own safe reading, fairseq's own classes.

Importing fairseq is slow and noisy, so it happens here, when a model is built, and nowhere else before.
"""

from __future__ import annotations

import logging
import warnings
from argparse import Namespace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch

from align.models.checkpoint import Checkpoint, check_embedding, check_finite, read_checkpoint
from align.models.fairseq import FairseqModel
from align.models.fairseq_families import ConvolutionalModel, LightConvolutionModel, RecurrentModel
from data.errors import CheckpointError, ModelError, UsageError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from torch import Tensor, nn

    from align.models.subwords import Segmenter

# fairseq's model names, each with all its architectures
FAMILIES: dict[str, type[FairseqModel]] = {
    "fconv": ConvolutionalModel,
    "lightconv": LightConvolutionModel,
    "lstm": RecurrentModel,
    "transformer": FairseqModel,
    "transformer_align": FairseqModel,
}
_DROPPED = ("version", "_float_tensor")  # buffers of older fairseq that no module has or needs
_TAG_STYLES = {"multilingual": "__{}__", "mbart": "[{}]"}


def load_fairseq(
    path: Path,
    dictionaries: tuple[Path, Path],
    segmenters: Callable[[Any, Any], tuple[Segmenter, Segmenter]],
    dtype: torch.dtype = torch.float32,
    device: str = "cpu",
    checkpoint: Checkpoint | None = None,
    languages: tuple[str | None, str | None] = (None, None),
) -> FairseqModel:
    """Build the model of a `fairseq-train` checkpoint.

    Args:
        path: the `.pt` file; nothing in it is executed, and no path inside it is followed.
        dictionaries: the `dict.LANG.txt` files of source and target.
        segmenters: given the two dictionaries, the segmenters of both sides.
        dtype, device: where and in what precision it runs.
        checkpoint: the content of `path` where the caller has read it already.
        languages: of source and target, for a model with language tokens.

    Raises:
        CheckpointError: a file that is damaged, unsafe, or does not fit the dictionaries.
        ModelError: an architecture that is not supported.
        UsageError: a language that a model with language tokens needs or does not have.
    """
    checkpoint = checkpoint or read_checkpoint(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fairseq's own imports warn about much that is not ours
        _import_fairseq()
        source, target = (_read_dictionary(file) for file in dictionaries)
        tags = _language_tags(checkpoint.config, source, target, languages)
        family, module = _build(checkpoint, source, target, dictionaries)
    module = module.to(device=device, dtype=dtype)
    pair = segmenters(source, target)
    return family(module, source, target, *pair, path.name, checkpoint.sha256, *tags)


def _read_dictionary(path: Path) -> Any:
    from fairseq.data import Dictionary

    try:
        return Dictionary.load(str(path))
    except (OSError, ValueError, RuntimeError, UnicodeError) as error:
        raise CheckpointError(f"{path} is not a fairseq dictionary: {error}") from error


def _language_tags(
    config: dict[str, Any], source: Any, target: Any, languages: tuple[str | None, str | None]
) -> tuple[int | None, int | None]:
    """Add the language tokens of `translation_multi_simple_epoch` to the dictionaries; the ids that are put first."""
    if config.get("task") != "translation_multi_simple_epoch":
        return None, None
    known = config.get("langs") or ()
    known = known.split(",") if isinstance(known, str) else list(known)
    style = _TAG_STYLES[config.get("lang_tok_style") or "multilingual"]
    for dictionary in (source, target):
        for language in known:
            dictionary.add_symbol(style.format(language))
        if config.get("lang_tok_style") == "mbart":
            dictionary.add_symbol("<mask>")
    for side, language in zip(("source", "target"), languages, strict=True):
        if language is None:
            raise UsageError(f"this model knows several languages: give --{side}-lang, one of {', '.join(known)}")
        if language not in known:
            raise unknown_name(f"{side} language", language, known)
    encoder, decoder = config.get("encoder_langtok"), config.get("decoder_langtok")
    first = {"src": languages[0], "tgt": languages[1]}.get(encoder or "")
    return (
        source.index(style.format(first)) if first else None,
        target.index(style.format(languages[1])) if decoder else None,
    )


def _build(
    checkpoint: Checkpoint, source: Any, target: Any, files: tuple[Path, Path]
) -> tuple[type[FairseqModel], nn.Module]:
    """fairseq's model with the weights in it; strict, so that no tensor is left out or made up."""
    from fairseq import models

    weights = {k: v for k, v in checkpoint.weights.items() if k.rpartition(".")[2] not in _DROPPED}
    check_finite(weights, checkpoint.path)
    check_embedding("encoder.embed_tokens.weight", weights, len(source), files[0], checkpoint.path)
    check_embedding("decoder.embed_tokens.weight", weights, len(target), files[1], checkpoint.path)
    arch = str(checkpoint.config.get("arch"))
    family = models.ARCH_MODEL_NAME_REGISTRY.get(arch)
    if family not in FAMILIES:
        raise ModelError(
            f"{checkpoint.path}: architecture {arch!r} is not supported; supported are the fairseq architectures of "
            + ", ".join(FAMILIES)
        )
    config = Namespace(**{"criterion": None, **checkpoint.config})  # some architectures ask for it
    # Old files lack settings that newer code asks for; the architecture's own function fills them in.
    models.ARCH_CONFIG_REGISTRY[arch](config)
    task = SimpleNamespace(source_dictionary=source, target_dictionary=target)
    try:
        module: nn.Module = models.ARCH_MODEL_REGISTRY[arch].build_model(config, task)
        _load_weights(module, weights)
    except (RuntimeError, KeyError, ValueError, TypeError, AttributeError, AssertionError) as error:
        raise CheckpointError(f"{checkpoint.path}: weights and settings do not fit together: {error}") from error
    return FAMILIES[family], module


def _load_weights(module: Any, weights: dict[str, Tensor]) -> None:
    module.upgrade_state_dict(weights)  # fairseq's own renaming of old parameters
    absent, unexpected = torch.nn.Module.load_state_dict(module, weights, strict=False)
    # The dropped buffers are constants of the code, not weights of the file.
    absent = [name for name in absent if name.rpartition(".")[2] not in _DROPPED]
    unexpected = [name for name in unexpected if name.rpartition(".")[2] not in _DROPPED]
    if absent or unexpected:
        raise ValueError(f"missing tensors {absent or 'none'}, unexpected tensors {unexpected or 'none'}")


def _import_fairseq() -> None:
    logger = logging.getLogger("fairseq")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        import fairseq.models.transformer  # noqa: F401 (registers the architectures)
    except (ImportError, ValueError) as error:
        raise ModelError(
            f"fairseq cannot be imported ({error}); on Python 3.11 and later install the distribution "
            "fairseq-fixed==0.12.3.1, which gives the module fairseq"
        ) from error
    finally:
        logger.setLevel(level)
