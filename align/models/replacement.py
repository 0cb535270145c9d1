"""Other weights in place of a model's own cross-attention, for teacher forcing and for free translation alike.

What the heads carry stays the model's: a layer gives W_O [A'_1 V_1 ... A'_H V_H] + b with the new weights A'.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from align.models.inside import OpenModel, opened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from torch import Tensor, nn

    from align.models.base import TranslationModel
    from align.models.inside import Sublayer

    Replacement = Callable[[Tensor, int], Tensor]
    """From a layer's weights [B, H, Q, K] and the target position of their first row to the weights in their place."""


@contextmanager
def replaced_attention(model: TranslationModel, replacements: Mapping[int, Replacement]) -> Iterator[None]:
    """Let layers (from 0) attend by other weights while the context is open.

    Positions of rows are counted on from call to call, so that the steps of one search see theirs: open a context for
    each forward pass, or for each search of `translate` over sentences that it takes together. Weights of 0 prune a
    head. What a model returns as its weights stays as it was.

    Raises:
        ModelError: a model that does not show its insides.
        UsageError: a layer that does not exist.
    """
    source = opened(model)
    model.check_layers(list(replacements))
    cross = source.sublayers().cross
    handles: list[Any] = []
    try:
        for layer, replacement in replacements.items():
            hook = _replacing(source, cross[layer], replacement)
            handles.append(cross[layer].attention.register_forward_hook(hook, with_kwargs=True))
        yield
    finally:
        for handle in handles:
            handle.remove()


def _replacing(model: OpenModel, sublayer: Sublayer, replacement: Replacement) -> Callable[..., Any]:
    """A forward hook that attends again, by other weights."""
    seen = 0

    def attend(module: nn.Module, arguments: Any, options: Any, result: Any) -> Any:
        nonlocal seen
        weights, memory, _ = model.read_attention(module, arguments, options, result)
        chosen = replacement(weights, seen)
        seen += weights.shape[2]
        values = sublayer.value(memory if model.batch_first else memory.transpose(0, 1))
        values = values.unflatten(-1, (sublayer.heads, -1))  # [B, K, H, D / H]
        attended = sublayer.output(torch.einsum("bhqk,bkhe->bqhe", chosen, values).flatten(2))
        return (attended if model.batch_first else attended.transpose(0, 1), *result[1:])

    return attend


def real_positions(weights: Tensor) -> Tensor:
    """Which columns of weights [B, H, Q, K] are no padding: those that any head gives any weight. [B, K] bool"""
    return (weights != 0).flatten(1, 2).any(1)
