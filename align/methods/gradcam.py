"""Attention x gradient: how much each attention weight matters to a prediction, times the weight.

The gradient at a weight, taken as a free variable after the softmax, needs no graph through the weight itself: by
linearity it is the gradient at the attended vector times what the head carries from that position.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch

from align.methods.base import FEW_PASSES, Evidence, Method, Passes
from align.methods.layers import layer_index
from align.methods.rows import feature_gradients
from align.models.inside import opened, recorded
from align.models.prefix import PrefixView
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
    """Cross-attention weights A times the gradients G of log p(y_t) at them, of the last `layer` (-1) or of all (None).

    Another layer stands for what `on` makes of it. Keys, each [L, B, T, S]: `positive`, mean over heads of max(0, G A)
    in row t (Chefer et al. 2021); `signed`, sum over heads of G A in row t; `cam`, max(0, mean over heads of w_h A_h),
    where w_h is the mean of G_h over all rows and columns (Grad-CAM). Over the target prefix, A is the decoder's own
    attention, and w_h the mean over what a row may attend to.
    """

    layer: int | None

    @property
    def batch_factor(self) -> int:
        return 1 if self.layer is None else FEW_PASSES

    def on(self, model: TranslationModel) -> AttentionGradients:
        """Layers but the last share their passes, which are those of all layers."""
        last = self.layer is not None and layer_index(self.layer, model.layers) == model.layers - 1
        return AttentionGradients(-1 if last else None)

    def compute(self, model: TranslationModel, batch: Batch) -> dict[str, Tensor]:
        states = model.encode(batch, model.embed(batch))
        causal = isinstance(model, PrefixView)
        with torch.enable_grad(), recorded(model) as inside:
            log_probs = with_gradients_of_log_probs(model, batch, model.decode(batch, states))
            blocks = inside.decoder if causal else inside.cross
            if self.on(model).layer is not None:
                # Positions do not meet after the last attention, so one backward pass has the rows of all.
                (own,) = torch.autograd.grad(log_probs.sum(), blocks[-1].attended)
                carried = blocks[-1].carried().detach()
                importance = torch.einsum("btd,bhtd->bht", own, _reach(carried, batch, causal))
                layers = [_readings(blocks[-1].weights, carried, own, importance)]
            else:
                layers = [
                    _readings(block.weights, block.carried().detach(), *gradients)
                    for block, gradients in zip(blocks, _all_layers(log_probs, blocks, batch, causal), strict=True)
                ]
        return dict(zip(RULES, torch.stack(layers, dim=1), strict=True))

    def passes(self, pair: Encoded) -> Passes:
        return Passes(forward=1, backward=1 if self.layer == -1 else len(pair.target))


def _all_layers(
    log_probs: Tensor, blocks: Sequence[AttentionBlock], batch: Batch, causal: bool
) -> list[tuple[Tensor, Tensor]]:
    """For each layer, the gradient of log p(y_t) at attended vector t, [B, T, D], and w_h of row t, [B, H, T]."""
    own: list[list[Tensor]] = [[] for _ in blocks]
    importance: list[list[Tensor]] = [[] for _ in blocks]
    reach = [_reach(block.carried().detach(), batch, causal) for block in blocks]
    for rows, gradients in row_gradients(log_probs, [block.attended for block in blocks]):
        for layer, gradient in enumerate(gradients):  # [K, B, T, D]
            own[layer].append(gradient[torch.arange(len(gradient)), :, torch.arange(rows.start, rows.stop)])
            importance[layer].append(torch.einsum("kbqd,bhqd->kbh", gradient, reach[layer]))
    return [(torch.cat(a).transpose(0, 1), torch.cat(b).permute(1, 2, 0)) for a, b in zip(own, importance, strict=True)]


def _reach(carried: Tensor, batch: Batch, causal: bool) -> Tensor:
    """Of each position, what heads carry from all that it may attend to, by the number of such cells. [B, H, Q, D]"""
    carried = carried * batch.source_mask[:, None, :, None]
    size_s, size_t = batch.source_mask.sum(1), batch.target_mask.sum(1)  # [B]
    if causal:
        return carried.cumsum(2) / (size_t * (size_t + 1) / 2)[:, None, None, None]
    total = carried.sum(2, keepdim=True) / (size_s * size_t)[:, None, None, None]
    return total.expand(-1, -1, batch.target.shape[1], -1)


def _readings(weights: Tensor, carried: Tensor, own: Tensor, importance: Tensor) -> Tensor:
    """The three rules from gradients [B, T, D] at the attended vectors and w_h of each row [B, H, T]. [3, B, T, S]"""
    product = weights * torch.einsum("btd,bhsd->bhts", own, carried)
    cam = (importance[..., None] * weights).mean(1).clamp(min=0)
    return torch.stack([product.clamp(min=0).mean(1), product.sum(1), cam])


def with_gradients_of_log_probs(model: TranslationModel, batch: Batch, features: Tensor) -> Tensor:
    """A tensor [B, T] that has the gradients of log p of the target pieces, though not its values.

    The gradient at the features has a closed form, so the backward passes need not go through the output layer.
    """
    seed, _ = feature_gradients(model, batch, features)
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
        return AttentionGradients(self.layer)

    def read(self, evidence: Mapping[str, Tensor], batch: Batch) -> Tensor:
        layers = evidence[self.rule]  # all of them, or the last alone where that is the one
        return layers[0 if len(layers) == 1 else layer_index(self.layer, len(layers))]
