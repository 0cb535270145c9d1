"""Gradients of every target piece with respect to every source word embedding, in few wide backward passes.

The gradient of log p(y_t) at the decoder's features is zero but at position t and has a closed form, so one backward
pass through the output layer serves all rows. From there K rows at a time go back together through the decoder, cut
off after the last of them (later positions cannot matter under the causal mask), and then through the encoder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch import Tensor

    from align.models.base import Batch, TranslationModel

CELLS = 1_000_000  # K x B x S x D of one chunk of gradients: what lies between layers stays in a processor's cache
MAX_ROWS = 16  # wider chunks waste the triangle below the causal mask
SCORED_ROWS = 256  # B x K decoder positions whose vocabulary is scored at once


def gradient_rows(
    model: TranslationModel,
    batch: Batch,
    embeddings: Tensor,
    reduce: Callable[[Tensor], Tensor],
) -> tuple[Tensor, Tensor]:
    """Reduce g[b, t, s] = d log p(y_t) / d x_s, chunk by chunk, without holding all of [B, T, S, D].

    Args:
        embeddings: the point of the gradient, [B, S, D].
        reduce: maps a chunk of gradients [K, B, S, D] to [..., K, B, S].

    Returns:
        The reduced gradients [..., B, T, S] and log p [B, T], detached.
    """
    with torch.enable_grad():
        inputs = embeddings.detach().requires_grad_()
        states = model.encode(batch, inputs)
        leaf = states.detach().requires_grad_()
        chunks, log_probs = [], []
        for start, features in _feature_chunks(model, batch, leaf):
            seed, log_prob = feature_gradients(model, batch, features[:, start:], start)
            rows = _one_row_each(seed, start)
            at_states = _products(features, leaf, rows, model.batched_rows)
            at_inputs = _products(states, inputs, at_states, model.batched_rows)
            chunks.append(reduce(at_inputs))  # [..., K, B, S]
            log_probs.append(log_prob)
    return torch.cat(chunks, dim=-3).transpose(-3, -2), torch.cat(log_probs, dim=1)


def _feature_chunks(model: TranslationModel, batch: Batch, states: Tensor) -> Iterator[tuple[int, Tensor]]:
    """Decoder features [B, end, D'] of growing prefixes, with the first row that the chunk adds."""
    total = batch.target.shape[1]
    size = max(1, min(MAX_ROWS, CELLS // (len(batch) * batch.source.shape[1] * model.width)))
    for start in range(0, total, size):
        yield start, model.decode(batch, states, min(total, start + size))


def _products(outputs: Tensor, inputs: Tensor, cotangents: Tensor, batched: bool) -> Tensor:
    """Vector-Jacobian products for K cotangents [K, ...], in one batched pass or one after the other. [K, ...]"""
    if batched:
        return torch.autograd.grad(outputs, inputs, cotangents, retain_graph=True, is_grads_batched=True)[0]
    return torch.stack([torch.autograd.grad(outputs, inputs, row, retain_graph=True)[0] for row in cotangents])


def feature_gradients(model: TranslationModel, batch: Batch, features: Tensor, start: int = 0) -> tuple[Tensor, Tensor]:
    """d log p(y_t) / d features_t at the features [B, T', D'] of the positions from `start` on, and log p [B, T'].

    The vocabulary is scored for few positions at a time, so that [B, K, V] stays small.
    """
    size = max(1, SCORED_ROWS // len(batch))
    gradients: list[Tensor] = []
    log_probs: list[Tensor] = []
    for first in range(0, features.shape[1], size):
        leaf = features[:, first : first + size].detach().requires_grad_()
        log_prob = model.token_log_probs(batch, leaf, start + first)
        gradients += torch.autograd.grad(log_prob.sum(), leaf)
        log_probs.append(log_prob.detach())
    return torch.cat(gradients, dim=1), torch.cat(log_probs, dim=1)


def _one_row_each(seed: Tensor, start: int) -> Tensor:
    """[B, K, D'] to [K, B, start + K, D']: cotangent k is `seed` of row k at its position and zero elsewhere."""
    size_b, size_k, width = seed.shape
    rows = seed.new_zeros(size_k, size_b, start + size_k, width)
    index = torch.arange(size_k, device=seed.device)
    rows[index, :, start + index] = seed.transpose(0, 1)
    return rows
