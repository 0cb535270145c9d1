"""Attention x gradient: how much each attention weight matters to a prediction, times the weight.

The gradient at a weight, taken as a free variable after the softmax, needs no graph through the weight itself: by
linearity it is the gradient at the attended vector times what the head carries from that position.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch

from align.methods.base import Evidence, Method, Passes
from align.methods.layers import layer_index
from align.models.inside import opened, recorded
from data.errors import unknown_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from torch import Tensor

    from align.models.base import Batch, Encoded, TranslationModel
    from align.models.inside import AttentionBlock

RULES = ("positive", "signed", "cam")
CELLS = 1_000_000  # K x B x T x D of one chunk of gradients at one layer, which should stay in the cache


@dataclass(frozen=True)
class AttentionGradients(Evidence):
    """Cross-attention weights A times the gradients G of log p(y_t) at them, of all layers or of the `last` only.

    Keys, each [L, B, T, S]: `positive`, mean over heads of max(0, G A) in row t (Chefer et al. 2021); `signed`, sum
    over heads of G A in row t; `cam`, max(0, mean over heads of w_h A_h), where w_h is the mean of G_h over all rows
    and columns (Grad-CAM).
    """

    last: bool

    def compute(self, model: TranslationModel, batch: Batch) -> dict[str, Tensor]:
        states = model.encode(batch, model.embed(batch))
        with torch.enable_grad(), recorded(model) as inside:
            log_probs = with_gradients_of_log_probs(model, batch, model.decode(batch, states))
            if self.last:
                # Positions do not meet after the last cross-attention, so one backward pass has the rows of all.
                (gradient,) = torch.autograd.grad(log_probs.sum(), inside.cross[-1].attended)
                layers = [_readings(inside.cross[-1], gradient, gradient, batch)]
            else:
                layers = [
                    _readings(block, own, summed, batch)
                    for block, (own, summed) in zip(inside.cross, _all_layers(log_probs, inside.cross), strict=True)
                ]
        return dict(zip(RULES, torch.stack(layers, dim=1), strict=True))

    def passes(self, pair: Encoded) -> Passes:
        return Passes(forward=1, backward=1 if self.last else len(pair.target))


def _all_layers(log_probs: Tensor, blocks: Sequence[AttentionBlock]) -> list[tuple[Tensor, Tensor]]:
    """For each layer, the gradient of log p(y_t) at attended vector t, and summed over all of them. [B, T, D] each"""
    own: list[list[Tensor]] = [[] for _ in blocks]
    summed: list[list[Tensor]] = [[] for _ in blocks]
    for rows, gradients in row_gradients(log_probs, [block.attended for block in blocks]):
        for layer, gradient in enumerate(gradients):  # [K, B, T, D]
            own[layer].append(gradient[torch.arange(len(gradient)), :, torch.arange(rows.start, rows.stop)])
            summed[layer].append(gradient.sum(2))
    return [(torch.cat(a).transpose(0, 1), torch.cat(b).transpose(0, 1)) for a, b in zip(own, summed, strict=True)]


def _readings(block: AttentionBlock, own: Tensor, summed: Tensor, batch: Batch) -> Tensor:
    """The three rules from gradients [B, T, D] at the attended vectors. [3, B, T, S]"""
    carried = block.carried().detach()  # [B, H, S, D]
    product = block.weights * torch.einsum("btd,bhsd->bhts", own, carried)
    cells = batch.source_mask.sum(1) * batch.target_mask.sum(1)  # [B]
    total = (carried * batch.source_mask[:, None, :, None]).sum(2)  # [B, H, D]
    importance = torch.einsum("btd,bhd->bht", summed, total) / cells[:, None, None]
    cam = (importance[..., None] * block.weights).mean(1).clamp(min=0)
    return torch.stack([product.clamp(min=0).mean(1), product.sum(1), cam])


def with_gradients_of_log_probs(model: TranslationModel, batch: Batch, features: Tensor) -> Tensor:
    """A tensor [B, T] that has the gradients of log p of the target pieces, though not its values.

    The gradient at the features has a closed form, so the backward passes need not go through the output layer.
    """
    leaf = features.detach().requires_grad_()
    (seed,) = torch.autograd.grad(model.token_log_probs(batch, leaf).sum(), leaf)
    return (features * seed).sum(-1)


def row_gradients(log_probs: Tensor, points: Sequence[Tensor]) -> Iterator[tuple[slice, Sequence[Tensor]]]:
    """Gradients of each row of `log_probs` [B, T] at the tensors `points` [B, Q, D] of its graph.

    Yields a chunk of K rows at a time and, for each point, [K, B, Q, D].
    """
    size, total = log_probs.shape
    most = max(1, CELLS // max(point.numel() for point in points))
    for start in range(0, total, most):
        rows = slice(start, min(total, start + most))
        chosen = torch.eye(total).to(log_probs)[rows, None].expand(-1, size, -1)  # [K, B, T]
        yield rows, torch.autograd.grad(log_probs, points, chosen, retain_graph=True, is_grads_batched=True)


@dataclass(frozen=True)
class AttentionXGradient(Method):
    """Cross-attention of one layer weighted by how much the prediction depends on it.

    `layer` counts decoder layers from 0, negative from the last. `rule`: `positive` (Chefer et al.), `signed`, or
    `cam` (Grad-CAM). There is only the step that predicts a word: the one it is fed into cannot influence it.
    """

    layer: int = -1
    rule: str = "positive"

    name: ClassVar[str] = "attention-x-gradient"
    family: ClassVar[str] = "attention"
    measures: ClassVar[str] = "saliency"
    summary: ClassVar[str] = "cross-attention weights times the gradient of log p at them"
    citation: ClassVar[str] = "Selvaraju et al. 2017 (Grad-CAM); Chefer et al. 2021 (ICCV)"
    compared: ClassVar[Mapping[str, Callable[[TranslationModel], Sequence[object]]]] = {
        "layer": lambda model: range(model.layers),
        "rule": lambda model: RULES,
    }

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise unknown_name("rule", self.rule, RULES)

    def check(self, model: TranslationModel) -> None:
        opened(model).sublayers()

    @property
    def evidence(self) -> AttentionGradients:
        return AttentionGradients(last=self.layer == -1)

    def read(self, evidence: Mapping[str, Tensor], batch: Batch) -> Tensor:
        layers = evidence[self.rule]
        return layers[layer_index(self.layer, len(layers))]
