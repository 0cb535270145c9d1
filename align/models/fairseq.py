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
from align.models.inside import Sublayer, Sublayers
from align.models.subwords import BPE_MARK, NO_WORD, SPM_MARK
from data.errors import CheckpointError, ModelError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
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
            # fairseq turns [B, S, D] to [S, B, D]; that layout in memory spares copies in every product.
            embeddings = embeddings.transpose(0, 1).contiguous().transpose(0, 1)
            encoded = self.module.encoder(batch.source, token_embeddings=embeddings / self.scale)
        out: Tensor = encoded["encoder_out"][0].transpose(0, 1)
        return out

    def decode(self, batch: Batch, states: Tensor, rows: int | None = None) -> Tensor:
        with _cross_attention_arguments(self.module.decoder, static_kv=False, need_weights=False):
            return self._features(batch, states, rows)

    def _features(self, batch: Batch, states: Tensor, rows: int | None = None) -> Tensor:
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
        decoder = self.module.decoder
        with _deepest_layer(decoder, max(layers)), _head_weights(decoder) as weights:
            self._features(batch, states)
        return torch.stack([weights[layer].transpose(0, 1) for layer in layers]).to(self.dtype)

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

    # What methods need from inside (`align.models.inside.OpenModel`)

    batch_first = False

    def sublayers(self) -> Sublayers:
        return _sublayers(self.module, self.name)

    def read_attention(
        self, module: nn.Module, arguments: tuple[Any, ...], options: Mapping[str, Any], result: Any
    ) -> tuple[Tensor, Tensor, Tensor]:
        return _attention_weights(module, options), options["value"], result[0]

    def word_counts(self) -> dict[str, float]:
        return _word_counts(self.source_dictionary)


def _ids(side: Segmented, dictionary: Any) -> list[int]:
    return [dictionary.index(piece) for piece in side.pieces]


@contextmanager
def _deepest_layer(decoder: Any, deepest: int) -> Iterator[None]:
    """Run no decoder layer beyond `deepest`."""
    layers = decoder.layers
    decoder.layers = layers[: deepest + 1]
    try:
        yield
    finally:
        decoder.layers = layers


@contextmanager
def _cross_attention_arguments(decoder: Any, **changes: Any) -> Iterator[None]:
    """Call cross-attention with other arguments than the decoder gives.

    `static_kv=False` takes torch's attention instead of fairseq's own, which computes its softmax in float32 whatever
    the model's precision.
    """

    def change(module: nn.Module, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        return args, {**kwargs, **changes}

    handles = [layer.encoder_attn.register_forward_pre_hook(change, with_kwargs=True) for layer in decoder.layers]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def _head_weights(decoder: Any) -> Iterator[list[Tensor]]:
    """Collect the cross-attention weights of every layer that runs, [H, B, T, S] each."""
    weights: list[Tensor] = []

    def keep(module: nn.Module, args: Any, output: tuple[Tensor, Tensor]) -> None:
        weights.append(output[1])

    handles = [layer.encoder_attn.register_forward_hook(keep) for layer in decoder.layers]
    try:
        with _cross_attention_arguments(decoder, need_weights=True, need_head_weights=True):
            yield weights
    finally:
        for handle in handles:
            handle.remove()


# What methods need from inside


def _sublayers(module: Any, name: str) -> Sublayers:
    """The attention sublayers of a Transformer whose layers are those of the paper."""

    def sublayer(layer: Any, attention: str) -> Sublayer:
        for extra in ("c_attn", "attn_ln", "w_resid"):  # NormFormer
            if getattr(layer, extra, None) is not None:
                raise ModelError(f"{name}: {extra} changes what attention adds, which this method cannot follow")
        found = getattr(layer, attention, None)
        if found is None or not hasattr(found, "out_proj"):
            raise ModelError(f"{name}: {type(layer).__name__} has no multi-head {attention}, which this method needs")
        norm = getattr(layer, f"{attention}_layer_norm")
        return Sublayer(found, norm, not layer.normalize_before, found.v_proj, found.out_proj, found.num_heads)

    return Sublayers(
        tuple(sublayer(layer, "self_attn") for layer in module.encoder.layers),
        tuple(sublayer(layer, "self_attn") for layer in module.decoder.layers),
        tuple(sublayer(layer, "encoder_attn") for layer in module.decoder.layers),
    )


def _word_counts(dictionary: Any) -> dict[str, float]:
    """Counts of the pieces of a dictionary that can be words: no `@@` after them; with SentencePiece, `▁` before."""
    pieces = dict(zip(dictionary.symbols[dictionary.nspecial :], dictionary.count[dictionary.nspecial :], strict=True))
    if any(piece.startswith(SPM_MARK) for piece in pieces):
        words = {piece[1:]: count for piece, count in pieces.items() if piece.startswith(SPM_MARK)}
    else:
        words = {piece: count for piece, count in pieces.items() if not piece.endswith(BPE_MARK)}
    return {word: float(count) for word, count in words.items() if word and count > 0}


@torch.no_grad()
def _attention_weights(attention: Any, call: Mapping[str, Any]) -> Tensor:
    """Weights of every head, which torch's attention does not give: softmax of scaled q k. [B, H, Q, K]"""
    heads = attention.num_heads
    query = attention.q_proj(call["query"]).unflatten(-1, (heads, -1)) * attention.scaling  # [Q, B, H, D / H]
    key = attention.k_proj(call["key"]).unflatten(-1, (heads, -1))
    scores = torch.einsum("qbhd,kbhd->bhqk", query, key)
    if call.get("attn_mask") is not None:
        scores = scores + call["attn_mask"]
    if call.get("key_padding_mask") is not None:
        scores = scores.masked_fill(call["key_padding_mask"][:, None, None, :].bool(), -torch.inf)
    return scores.softmax(-1)


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
