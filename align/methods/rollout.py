"""Attention rollout and attention flow (Abnar and Zuidema 2020), carried from the encoder through cross-attention.

A residual connection counts as one half of what a position is made of. The paper treats one stack of self-attention;
here a decoder position is made, layer by layer, of one half cross-attention to the encoder's output and one half of
what self-attention left there, which is itself half self-attention and half the position's own past.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch

from align.methods.base import Evidence, Passes
from align.methods.layers import LayerMethod, check_scope, layer_index
from align.models.inside import insides
from align.models.prefix import PrefixView
from data.errors import UsageError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from align.models.base import Batch, Encoded, TranslationModel
    from align.models.inside import AttentionBlock, Insides

    Matrix = NDArray[np.float64]

SCOPES = ("decoder", "cross")
UNIT = 1 << 20  # capacities are whole numbers of this part of 1


@dataclass(frozen=True)
class Rollout(Evidence):
    """Rows of source pieces as they stand after each decoder layer.

    Keys, each [L, B, T, S]: `cross`, the cross-attention of a layer times the rollout of the encoder; `decoder`, the
    recursion through all layers so far, whose rows and those of the target prefix together sum to 1. Over the target
    prefix: `decoder` alone.
    """

    def compute(self, model: TranslationModel, batch: Batch) -> dict[str, Tensor]:
        inside = insides(model, batch)
        if isinstance(model, PrefixView):
            return {"decoder": _over_prefix(inside)}
        encoder = torch.eye(batch.source.shape[1]).to(batch.source_mask.device, model.dtype)  # [S, S]
        for block in inside.encoder:
            encoder = halves(block) @ encoder  # [B, S, S]
        cross, decoder = [], []
        rows = torch.zeros_like(inside.cross[0].weights[:, 0])  # [B, T, S]
        for own, other in zip(inside.decoder, inside.cross, strict=True):
            cross.append(other.weights.mean(1) @ encoder)
            rows = cross[-1] / 2 + halves(own) @ rows / 2
            decoder.append(rows)
        return {"cross": torch.stack(cross), "decoder": torch.stack(decoder)}

    def passes(self, pair: Encoded) -> Passes:
        return Passes(forward=1)


def _over_prefix(inside: Insides) -> Tensor:
    """What each decoder layer's positions are made of, counted by the positions of the target prefix. [L, B, T, T]"""
    rows, layers = torch.eye(inside.cross[0].weights.shape[-2]), []
    for own in inside.decoder:
        rows = halves(own) @ rows.to(own.weights) / 2
        layers.append(rows)
    return torch.stack(layers)


def halves(block: AttentionBlock) -> Tensor:
    """One half self-attention, heads merged, and one half the position itself. [B, Q, Q]"""
    weights = block.weights.mean(1)
    return (weights + torch.eye(weights.shape[-1]).to(weights)) / 2


@dataclass(frozen=True)
class AttentionRollout(LayerMethod):
    """Attention weights multiplied through the layers, down to the source words themselves.

    `scope`: `decoder` goes through all decoder layers up to `layer`; `cross` takes the cross-attention of `layer` only.
    """

    scope: str = "decoder"

    name: ClassVar[str] = "rollout"
    summary: ClassVar[str] = "attention multiplied through the layers down to the source words"
    citation: ClassVar[str] = "Abnar and Zuidema 2020 (ACL)"
    compared: ClassVar[Mapping[str, Callable[[TranslationModel], Sequence[object]]]] = {
        **LayerMethod.compared,
        "scope": lambda model: SCOPES,
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scope not in SCOPES:
            raise unknown_name("scope", self.scope, SCOPES)

    @property
    def evidence(self) -> Rollout:
        return Rollout()

    def check_prefix(self) -> None:
        check_scope(self, self.scope)

    def read(self, evidence: Mapping[str, Tensor], batch: Batch) -> Tensor:
        return self.rows(evidence[self.scope], batch)


@dataclass(frozen=True)
class Flow(Evidence):
    """Maximum flows from each decoder position after `layer` to each source piece. `flow`: [B, T, S].

    Pairs of more than `longest` pieces on a side are not computed: their scores are NaN.
    """

    layer: int
    longest: int

    def compute(self, model: TranslationModel, batch: Batch) -> dict[str, Tensor]:
        inside = insides(model, batch)
        last = layer_index(self.layer, len(inside.cross))
        shape = (len(batch), *inside.cross[0].weights.shape[-2:])
        flows = torch.full(shape, torch.nan, dtype=torch.float64)
        for row, pair in enumerate(batch.pairs):
            if max(len(pair.source), len(pair.target)) > self.longest:
                continue
            source, target = batch.source_mask[row].cpu(), batch.target_mask[row].cpu()
            encoder = [_of_pair(block, row, source, source) for block in inside.encoder]
            own = [_of_pair(block, row, target, target) for block in inside.decoder[: last + 1]]
            cross = [_of_pair(block, row, target, source) for block in inside.cross[: last + 1]]
            flows[row] = 0
            flows[row][target[:, None] & source] = torch.from_numpy(attention_flow(encoder, own, cross)).flatten()
        return {"flow": flows.to(batch.source_mask.device, model.dtype)}

    def passes(self, pair: Encoded) -> Passes:
        return Passes(forward=1)


def _of_pair(block: AttentionBlock, row: int, queries: Tensor, keys: Tensor) -> Matrix:
    """Mean attention of one sentence without its padding."""
    weights: Matrix = block.weights[row].mean(0).cpu()[queries][:, keys].double().numpy()
    return weights


def attention_flow(encoder: Sequence[Matrix], own: Sequence[Matrix], cross: Sequence[Matrix]) -> Matrix:
    """Maximum flow from each of T positions at the top of the decoder to each of S source pieces.

    The graph has a node for every position after every sublayer; an edge carries at most what the position is made
    of: in the encoder half the attention weight, and half more to itself; in the decoder half the cross-attention
    weight, half to the same position before it, from there as in the encoder.

    Args:
        encoder: attention of each encoder layer, [S, S].
        own, cross: self-attention [T, T] and cross-attention [T, S] of each decoder layer.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import maximum_flow

    size_t, size_s = cross[0].shape
    edges: list[tuple[Matrix, int, int]] = []  # capacities [Q, K] from nodes first + 0..Q-1 to nodes first + 0..K-1
    below = 0  # source pieces are nodes 0..S-1
    nodes = size_s
    for weights in encoder:
        edges.append(((weights + np.eye(size_s)) / 2, nodes, below))
        below, nodes = nodes, nodes + size_s
    states, below = below, nodes  # the start symbol and target prefix as they enter the decoder
    nodes += size_t
    for self_weights, cross_weights in zip(own, cross, strict=True):
        middle, top = nodes, nodes + size_t
        edges.append(((self_weights + np.eye(size_t)) / 2, middle, below))
        edges.append((np.eye(size_t) / 2, top, middle))
        edges.append((cross_weights / 2, top, states))
        below, nodes = top, top + size_t
    rows, columns, capacities = [], [], []
    for weights, start, end in edges:
        at = weights.nonzero()
        rows.append(at[0] + start)
        columns.append(at[1] + end)
        capacities.append(np.rint(weights[at] * UNIT).astype(np.int32))
    cells = (np.concatenate(rows), np.concatenate(columns))
    graph = coo_array((np.concatenate(capacities), cells), shape=(nodes, nodes)).tocsr()
    flows = [[maximum_flow(graph, below + t, s).flow_value for s in range(size_s)] for t in range(size_t)]
    result: Matrix = np.array(flows, dtype=np.float64) / UNIT
    return result


@dataclass(frozen=True)
class AttentionFlow(LayerMethod):
    """Most that can flow from a decoder position to a source word where attention weights are the capacities.

    Pairs of more than `longest` pieces on a side are left out (their rows are not a number), as the time grows with
    the fourth power of the length.
    """

    longest: int = 40

    name: ClassVar[str] = "flow"
    summary: ClassVar[str] = "maximum flow through the attention of all layers, for short pairs"
    citation: ClassVar[str] = "Abnar and Zuidema 2020 (ACL)"
    compared: ClassVar[Mapping[str, Callable[[TranslationModel], Sequence[object]]]] = {
        "position": LayerMethod.compared["position"]
    }
    in_all: ClassVar[bool] = False
    source_only: ClassVar[str] = "its flows end at the source words"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.longest < 1:
            raise UsageError(f"longest must be at least 1, not {self.longest}")

    @property
    def evidence(self) -> Flow:
        return Flow(self.layer, self.longest)

    def read(self, evidence: Mapping[str, Tensor], batch: Batch) -> Tensor:
        return self.placed(evidence["flow"], batch)
