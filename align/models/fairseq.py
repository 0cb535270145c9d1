"""fairseq Transformers behind `TranslationModel`: fairseq's own classes, our own safe reading of the weights.

This is the only module that imports fairseq. Importing fairseq is slow and noisy, so it happens when a model is built.
"""

from __future__ import annotations

import logging
import warnings
from argparse import Namespace
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from align.models.base import BASELINES, Encoded, TranslationModel
from align.models.checkpoint import Checkpoint, check_embedding, check_finite, read_checkpoint
from align.models.subwords import NO_WORD
from data.errors import CheckpointError, ModelError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from torch import Tensor, nn

    from align.models.base import Batch
    from align.models.subwords import Segmented, Segmenter
    from data.bitext import Pair

SUPPORTED = ("transformer",)  # fairseq's model names, each with all its architectures
_DROPPED = ("version", "_float_tensor")  # buffers of older fairseq that no module has or needs


class FairseqModel(TranslationModel):
    """A fairseq encoder-decoder with multi-head cross-attention.

    Args:
        module: fairseq's model, in evaluation mode.
        source_dictionary, target_dictionary: fairseq dictionaries.
        segment_source, segment_target: words to pieces, one for each side.
        name, fingerprint: what signatures call it.
    """

    def __init__(
        self,
        module: nn.Module,
        source_dictionary: Any,
        target_dictionary: Any,
        segment_source: Segmenter,
        segment_target: Segmenter,
        name: str = "fairseq",
        fingerprint: str = "",
    ) -> None:
        module.eval().requires_grad_(False)
        self.module: Any = module
        self.source_dictionary, self.target_dictionary = source_dictionary, target_dictionary
        self.segment_source, self.segment_target = segment_source, segment_target
        self.name, self.fingerprint = name, fingerprint
        encoder: Any = self.module.encoder
        decoder: Any = self.module.decoder
        if decoder.adaptive_softmax is not None:
            raise ModelError(
                f"{name}: adaptive softmax is not supported, as it gives no scores of the whole vocabulary"
            )
        self.layers = len(decoder.layers)
        self.heads = decoder.layers[0].encoder_attn.num_heads
        table = encoder.embed_tokens.weight
        self.width, self.device, self.dtype = table.shape[1], table.device, table.dtype
        self.pad = encoder.padding_idx
        self.scale = float(encoder.embed_scale)
        self.max_source, self.max_target = int(encoder.max_positions()), int(decoder.max_positions())

    def encode_pair(self, pair: Pair) -> Encoded:
        source, target = self.segment_source(pair.source), self.segment_target(pair.target)
        source_ids = _ids(source, self.source_dictionary)
        target_ids = _ids(target, self.target_dictionary)
        status = "ok"
        if not source.pieces or not target.pieces:
            status = "empty"
        elif len(source_ids) + 1 > self.max_source or len(target_ids) + 1 > self.max_target:
            status = "too_long"
        eos = self.target_dictionary.eos()
        return Encoded(
            pair=pair,
            source_words=source.words,
            target_words=target.words,
            source=(*source_ids, self.source_dictionary.eos()),
            target=(*target_ids, eos),
            prefix=(eos, *target_ids),
            source_word_of=(*source.word_of, NO_WORD),
            target_word_of=(*target.word_of, NO_WORD),
            unknown=source_ids.count(self.source_dictionary.unk()) + target_ids.count(self.target_dictionary.unk()),
            status=status,
        )

    def embed(self, batch: Batch) -> Tensor:
        out: Tensor = self.scale * self.module.encoder.embed_tokens(batch.source)
        return out

    def encode(self, batch: Batch, embeddings: Tensor) -> Tensor:
        # Fused attention has no batching rule for its backward pass, which the methods need.
        with sdpa_kernel(SDPBackend.MATH):
            encoded = self.module.encoder(batch.source, token_embeddings=embeddings / self.scale)
        out: Tensor = encoded["encoder_out"][0].transpose(0, 1)
        return out

    def decode(self, batch: Batch, states: Tensor, rows: int | None = None) -> Tensor:
        encoded = {"encoder_out": [states.transpose(0, 1)], "encoder_padding_mask": [~batch.source_mask]}
        with sdpa_kernel(SDPBackend.MATH):
            features, _ = self.module.decoder(batch.prefix[:, :rows], encoded, features_only=True)
        out: Tensor = features
        return out

    def logits(self, batch: Batch, features: Tensor) -> Tensor:
        out: Tensor = self.module.decoder.output_layer(features)
        return out

    @torch.no_grad()
    def cross_attention(self, batch: Batch, layers: Sequence[int]) -> Tensor:
        self.check_layers(layers)
        states = self.encode(batch, self.embed(batch))
        with _head_weights(self.module.decoder, max(layers)) as weights:
            self.decode(batch, states)
        return torch.stack([weights[layer].transpose(0, 1) for layer in layers])

    def baseline(self, kind: str) -> Tensor:
        table = self.module.encoder.embed_tokens.weight
        rows: dict[str, Callable[[], Tensor]] = {
            "zero": lambda: torch.zeros_like(table[0]),
            "unk": lambda: table[self.source_dictionary.unk()],
            "pad": lambda: table[self.pad],
            "mean": lambda: table.mean(0),
        }
        if kind not in rows:
            raise unknown_name("baseline", kind, BASELINES)
        return self.scale * rows[kind]()


def _ids(side: Segmented, dictionary: Any) -> list[int]:
    return [dictionary.index(piece) for piece in side.pieces]


@contextmanager
def _head_weights(decoder: Any, deepest: int) -> Iterator[dict[int, Tensor]]:
    """Collect the cross-attention of layers 0..deepest, [H, B, T, S] each, and run no layer beyond."""
    weights: dict[int, Tensor] = {}
    layers = decoder.layers
    handles = []

    def ask(module: nn.Module, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        return args, {**kwargs, "need_weights": True, "need_head_weights": True}

    try:
        for index, layer in enumerate(layers[: deepest + 1]):

            def keep(module: nn.Module, args: Any, output: tuple[Tensor, Tensor], index: int = index) -> None:
                weights[index] = output[1]

            handles.append(layer.encoder_attn.register_forward_pre_hook(ask, with_kwargs=True))
            handles.append(layer.encoder_attn.register_forward_hook(keep))
        decoder.layers = layers[: deepest + 1]
        yield weights
    finally:
        decoder.layers = layers
        for handle in handles:
            handle.remove()


def load_fairseq(
    path: Path,
    dictionaries: tuple[Path, Path],
    segmenters: Callable[[Any, Any], tuple[Segmenter, Segmenter]],
    dtype: torch.dtype = torch.float32,
    device: str = "cpu",
    checkpoint: Checkpoint | None = None,
) -> FairseqModel:
    """Build the model of a `fairseq-train` checkpoint.

    Args:
        path: the `.pt` file; nothing in it is executed, and no path inside it is followed.
        dictionaries: the `dict.LANG.txt` files of source and target.
        segmenters: given the two dictionaries, the segmenters of both sides.
        dtype, device: where and in what precision it runs.
        checkpoint: the content of `path` where the caller has read it already.

    Raises:
        CheckpointError: a file that is damaged, unsafe, or does not fit the dictionaries.
        ModelError: an architecture that is not supported.
    """
    checkpoint = checkpoint or read_checkpoint(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fairseq's own imports warn about much that is not ours
        source, target = (_read_dictionary(file) for file in dictionaries)
        module = _build(checkpoint, source, target, dictionaries)
    module = module.to(device=device, dtype=dtype)
    pair = segmenters(source, target)
    return FairseqModel(module, source, target, *pair, name=path.name, fingerprint=checkpoint.sha256)


def _read_dictionary(path: Path) -> Any:
    from fairseq.data import Dictionary

    try:
        return Dictionary.load(str(path))
    except (OSError, ValueError, RuntimeError, UnicodeError) as error:
        raise CheckpointError(f"{path} is not a fairseq dictionary: {error}") from error


def _build(checkpoint: Checkpoint, source: Any, target: Any, files: tuple[Path, Path]) -> nn.Module:
    """fairseq's model with the weights in it; strict, so that no tensor is left out or made up."""
    _import_fairseq()
    from fairseq import models

    weights = {k: v for k, v in checkpoint.weights.items() if k.rpartition(".")[2] not in _DROPPED}
    check_finite(weights, checkpoint.path)
    check_embedding("encoder.embed_tokens.weight", weights, len(source), files[0], checkpoint.path)
    check_embedding("decoder.embed_tokens.weight", weights, len(target), files[1], checkpoint.path)
    arch = str(checkpoint.config.get("arch"))
    if models.ARCH_MODEL_NAME_REGISTRY.get(arch) not in SUPPORTED:
        raise ModelError(
            f"{checkpoint.path}: architecture {arch!r} is not supported; supported are the fairseq architectures of "
            + ", ".join(SUPPORTED)
        )
    config = Namespace(**checkpoint.config)
    # Old files lack settings that newer code asks for; the architecture's own function fills them in.
    models.ARCH_CONFIG_REGISTRY[arch](config)
    task = SimpleNamespace(source_dictionary=source, target_dictionary=target)
    try:
        module: nn.Module = models.ARCH_MODEL_REGISTRY[arch].build_model(config, task)
        _load_weights(module, weights)
    except (RuntimeError, KeyError, ValueError, TypeError, AttributeError, AssertionError) as error:
        raise CheckpointError(f"{checkpoint.path}: weights and settings do not fit together: {error}") from error
    return module


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
