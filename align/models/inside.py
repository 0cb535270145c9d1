"""What methods need from inside a model: every attention sublayer, what it read and what it added to the stream.

A model that offers it has `sublayers` and `read_attention` (see `OpenModel`); everything else is here. Hooks go on for
one forward pass and always come off again; they change no number.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import torch
from torch import nn

from data.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from torch import Tensor

    from align.models.base import Batch, TranslationModel


@dataclass(frozen=True)
class Sublayer:
    """The modules of an attention sublayer that turns the stream x into norm(x + attention(x)), or, unless
    `norm_after`, into x + attention(norm(x)). `heads`: H. `value` and `output`: the projections W_V and W_O.
    """

    attention: nn.Module
    norm: nn.Module
    norm_after: bool
    value: nn.Linear
    output: nn.Linear
    heads: int


@dataclass(frozen=True)
class Sublayers:
    """The attention sublayers of a model, layer by layer; `cross` reads the encoder states from the decoder."""

    encoder: tuple[Sublayer, ...]
    decoder: tuple[Sublayer, ...]
    cross: tuple[Sublayer, ...]


@runtime_checkable
class OpenModel(Protocol):
    """A model whose insides can be read. `batch_first`: whether its hidden states are [B, S, D] or [S, B, D]."""

    batch_first: bool

    def sublayers(self) -> Sublayers:
        """Where its attention is. Raises ModelError where the model does something that methods cannot follow."""

    def read_attention(
        self, module: nn.Module, arguments: tuple[Any, ...], options: Mapping[str, Any], result: Any
    ) -> tuple[Tensor, Tensor, Tensor]:
        """From the call of an attention module and its result: weights [B, H, Q, K], what the keys and values were
        made from, and the result, these two in the layout of the model."""


@dataclass
class AttentionBlock:
    """One attention sublayer of one forward pass: Q positions of the stream read K positions.

    `weights` [B, H, Q, K], `memory` [B, K, D] (what values are made from), `attended` [B, Q, D] (the output projection
    with its bias; gradients can be taken at it), `before` and `after` [B, Q, D] (in and out of LayerNorm).
    """

    sublayer: Sublayer
    weights: Tensor = field(init=False)
    memory: Tensor = field(init=False)
    attended: Tensor = field(init=False)
    before: Tensor = field(init=False)
    after: Tensor = field(init=False)

    @property
    def residual(self) -> Tensor:
        """The stream before the sublayer. [B, Q, D]"""
        return self.before - self.attended if self.sublayer.norm_after else self.before

    @property
    def result(self) -> Tensor:
        """The stream after the sublayer. [B, Q, D]"""
        return self.after if self.sublayer.norm_after else self.before + self.attended

    def carried(self) -> Tensor:
        """What each head would add if it attended to one position only: f_h(x) = (x W_V^h + b_V^h) W_O^h.

        Kobayashi et al. 2020 (EMNLP), section 3. Not kept, being H times larger than the stream. [B, H, K, D]
        """
        heads = self.sublayer.heads
        memory = self.memory.contiguous()  # rows that follow each other are one product
        values = self.sublayer.value(memory).reshape(*memory.shape[:2], heads, -1)  # [B, K, H, D / H]
        output = self.sublayer.output.weight.reshape(-1, heads, values.shape[-1])  # [D, H, D / H]
        return torch.einsum("bkhe,dhe->bhkd", values, output)

    def normalised(self, vectors: Tensor, rows: slice = slice(None)) -> Tensor:
        """The sublayer's LayerNorm as a linear map, with its standard deviation held at what it was.

        `vectors` [B, q, ..., D] are summands of its input at the positions `rows`; where no LayerNorm follows the sum
        they stay as they are.
        """
        norm = self.sublayer.norm
        if not self.sublayer.norm_after:
            return vectors
        if not isinstance(norm, nn.LayerNorm):
            raise ModelError(f"{type(norm).__name__} after attention is not LayerNorm, which contributions need")
        deviation = (self.before[:, rows].var(-1, unbiased=False) + norm.eps).sqrt()  # [B, q]
        deviation = deviation.reshape(*deviation.shape, *(1,) * (vectors.dim() - 2))
        centred = (vectors - vectors.mean(-1, keepdim=True)) / deviation
        return centred if norm.weight is None else centred * norm.weight


@dataclass(frozen=True)
class Insides:
    """The attention of one forward pass, layer by layer."""

    encoder: Sequence[AttentionBlock]
    decoder: Sequence[AttentionBlock]
    cross: Sequence[AttentionBlock]


def insides(model: TranslationModel, batch: Batch) -> Insides:
    """Run the model over a batch and keep its insides. Raises ModelError if the model does not offer them."""
    with recorded(model) as blocks, torch.no_grad():
        model.decode(batch, model.encode(batch, model.embed(batch)))
    return blocks


def opened(model: TranslationModel) -> OpenModel:
    """The model as one that shows its insides. Raises ModelError if it does not."""
    if not isinstance(model, OpenModel):
        raise ModelError(
            f"{model.name} does not show its attention sublayers (encoder, decoder and cross-attention with value and "
            "output projections), which this method needs; gradient and occlusion methods work with every model"
        )
    return model


@contextmanager
def recorded(model: TranslationModel) -> Iterator[Insides]:
    """Keep the attention of the forward passes that run inside; a later pass takes the place of an earlier one."""
    source = opened(model)
    parts = source.sublayers()
    blocks = Insides(*([AttentionBlock(s) for s in part] for part in (parts.encoder, parts.decoder, parts.cross)))
    handles: list[Any] = []
    try:
        for block in (*blocks.encoder, *blocks.decoder, *blocks.cross):
            handles += _record(source, block)
        yield blocks
    finally:
        for handle in handles:
            handle.remove()


def _record(model: OpenModel, block: AttentionBlock) -> list[Any]:
    """Hooks that fill `block`."""

    def batch_first(tensor: Tensor) -> Tensor:
        return tensor if model.batch_first else tensor.transpose(0, 1)

    def keep_attention(module: nn.Module, arguments: Any, options: Any, result: Any) -> Any:
        weights, memory, attended = model.read_attention(module, arguments, options, result)
        block.weights, block.memory = weights, batch_first(memory)
        # The model goes on from the tensor that is kept, so that gradients reach it in this layout, also where nothing
        # before it asks for any.
        attended = batch_first(attended)
        asked = not torch.is_grad_enabled() or attended.requires_grad
        block.attended = attended if asked else attended.requires_grad_()
        return (batch_first(block.attended), *result[1:])

    def keep_norm(module: nn.Module, arguments: Any, result: Tensor) -> None:
        block.before, block.after = batch_first(arguments[0]), batch_first(result)

    sublayer = block.sublayer
    return [
        sublayer.attention.register_forward_hook(keep_attention, with_kwargs=True),
        sublayer.norm.register_forward_hook(keep_norm),
    ]


class _EnoughError(Exception):
    """Not an error: it leaves a forward pass early."""


@contextmanager
def stopped_after(module: nn.Module) -> Iterator[None]:
    """The forward pass inside ends once `module` has answered, and the hooks that were set before have seen it."""

    def stop(*_: object) -> None:
        raise _EnoughError

    handle = module.register_forward_hook(stop)
    try:
        with suppress(_EnoughError):
            yield
    finally:
        handle.remove()


@runtime_checkable
class CountsWords(Protocol):
    """A model that brings the frequencies of its source words."""

    def word_counts(self) -> dict[str, float]:
        """Source words of the training text and their counts."""


def word_counts(model: TranslationModel) -> dict[str, float]:
    """The frequencies of the model's source words. Raises ModelError if it has none."""
    if not isinstance(model, CountsWords):
        raise no_word_counts(model)
    return model.word_counts()


def no_word_counts(model: TranslationModel) -> ModelError:
    """The error of a model that brings no frequencies."""
    return ModelError(f"{model.name} brings no word frequencies; give a list of words and counts by words=FILE")
