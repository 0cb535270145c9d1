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

from align.models.checkpoint import Checkpoint, check_embedding, check_finite, check_shapes, read_checkpoint
from align.models.fairseq import FairseqModel
from align.models.fairseq_families import ConvolutionalModel, LightConvolutionModel, RecurrentModel
from align.models.fairseq_languages import read_around
from data.errors import CheckpointError, ModelError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from torch import Tensor, nn

    from align.models.subwords import Segmenter

# fairseq's model names, each with all its architectures
FAMILIES: dict[str, type[FairseqModel]] = {
    "bart": FairseqModel,
    "fconv": ConvolutionalModel,
    "lightconv": LightConvolutionModel,
    "lstm": RecurrentModel,
    "transformer": FairseqModel,
    "transformer_align": FairseqModel,
}
_DROPPED = ("version", "_float_tensor")  # buffers of older fairseq that no module has or needs


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
        around = read_around(checkpoint.config, source, target, languages, path.parent)
        family, module = _build(checkpoint, source, target, dictionaries)
    module = module.to(device=device, dtype=dtype)
    pair = segmenters(source, target)
    return family(module, source, target, *pair, path.name, checkpoint.sha256, around)


def _read_dictionary(path: Path) -> Any:
    from fairseq.data import Dictionary

    try:
        return Dictionary.load(str(path))
    except (OSError, ValueError, RuntimeError, UnicodeError) as error:
        raise CheckpointError(f"{path} is not a fairseq dictionary: {error}") from error


def _build(
    checkpoint: Checkpoint, source: Any, target: Any, files: tuple[Path, Path]
) -> tuple[type[FairseqModel], nn.Module]:
    """fairseq's model with the weights in it; strict, so that no tensor is left out or made up."""
    from fairseq import models

    weights = checkpoint.weights
    if checkpoint.config.get("moe_freq") or any(".moe_layer." in name for name in weights):
        raise ModelError(f"{checkpoint.path}: mixtures of experts (NLLB-MoE) are not supported; take a dense NLLB-200")
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
        _load_weights(module, weights, checkpoint.path)
    except (RuntimeError, KeyError, ValueError, TypeError, AttributeError, AssertionError) as error:
        raise CheckpointError(f"{checkpoint.path}: weights and settings do not fit together: {error}") from error
    return FAMILIES[family], module


def _load_weights(module: Any, weights: Mapping[str, Tensor], path: Path) -> None:
    weights = dict(weights)
    # fairseq's own renaming of old parameters; whether a stack ends in LayerNorm it tells by the `version` of the file.
    module.upgrade_state_dict(weights)
    # Buffers of older fairseq are constants of the code, not weights of the file.
    kept = {name: tensor for name, tensor in weights.items() if name.rpartition(".")[2] not in _DROPPED}
    expected = {name: tensor.shape for name, tensor in module.state_dict().items()}
    expected = {name: shape for name, shape in expected.items() if name.rpartition(".")[2] not in _DROPPED}
    check_shapes(kept, expected, path)
    torch.nn.Module.load_state_dict(module, kept, strict=False)


def _import_fairseq() -> None:
    """Import fairseq, whose modules turn on debug logging of the whole process: that is taken back."""
    root, logger = logging.getLogger(), logging.getLogger("fairseq")
    before = root.level, root.handlers[:], logger.level
    logger.setLevel(logging.ERROR)
    try:
        import fairseq.models.transformer  # noqa: F401 (registers the architectures)
    except (ImportError, ValueError) as error:
        raise ModelError(
            f"fairseq cannot be imported ({error}); on Python 3.11 and later install the distribution "
            "fairseq-fixed==0.12.3.1, which gives the module fairseq"
        ) from error
    finally:
        root.setLevel(before[0])
        root.handlers[:] = before[1]
        logger.setLevel(before[2])
