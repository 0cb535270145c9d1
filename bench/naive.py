"""Saliency as it is usually written: one sentence at a time, one backward pass for each target piece."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor

    from align.models.base import Encoded, TranslationModel


def gradient_x_input(model: TranslationModel, pair: Encoded) -> Tensor:
    """Signed gradient x input of one pair, [T, S]: the graph is kept, parameters are frozen."""
    batch = model.batch([pair])
    embeddings = model.embed(batch).requires_grad_()  # [1, S, D]
    log_probs = model.log_probs(batch, embeddings)[0]  # [T]
    rows = []
    for log_prob in log_probs:
        (gradient,) = torch.autograd.grad(log_prob, embeddings, retain_graph=True)
        rows.append((gradient * embeddings).sum(-1)[0].detach())
    return torch.stack(rows)
