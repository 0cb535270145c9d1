"""A Transformer written out head by head for one sentence pair, with everything that explanation methods look at.

It takes nothing from fairseq's classes but their weights and tables; the tests first hold its log-probabilities against
the model's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch


@dataclass
class Sublayer:
    """An attention sublayer: weights [H, Q, K], vectors carried by each head [H, K, D], the stream [Q, D]."""

    module: Any
    norm: Any
    norm_after: bool
    residual: torch.Tensor
    query: torch.Tensor
    memory: torch.Tensor
    weights: torch.Tensor
    carried: torch.Tensor
    attended: torch.Tensor
    result: torch.Tensor


@dataclass
class Trace:
    encoder: list[Sublayer] = field(default_factory=list)
    decoder: list[Sublayer] = field(default_factory=list)
    cross: list[Sublayer] = field(default_factory=list)
    feeds: dict = field(default_factory=dict)  # (side, layer) -> stream before and after the feed-forward sublayer
    inputs: dict = field(default_factory=dict)  # side -> word embeddings and positions, [., D] each
    before_final_norm: dict = field(default_factory=dict)
    states: torch.Tensor = None
    features: torch.Tensor = None
    logits: torch.Tensor = None


def layer_norm(x, module):
    mean = x.mean(-1, keepdim=True)
    deviation = (((x - mean) ** 2).mean(-1, keepdim=True) + module.eps) ** 0.5
    return (x - mean) / deviation * module.weight + module.bias


def linear(x, module):
    return x @ module.weight.T + (0 if module.bias is None else module.bias)


def head_slices(module):
    size = module.embed_dim // module.num_heads
    return [slice(h * size, (h + 1) * size) for h in range(module.num_heads)]


def attend(module, query, memory, causal, nudge):
    """Weights and carried vectors of each head, and their sum with the bias."""
    weights, carried, attended = [], [], module.out_proj.bias
    for head, part in enumerate(head_slices(module)):
        q, k, v = (linear(x, p)[:, part] for x, p in zip((query, memory, memory), projections(module), strict=True))
        scores = q @ k.T / (part.stop - part.start) ** 0.5
        if causal:
            scores = scores + torch.full_like(scores, -torch.inf).triu(1)
        a = scores.softmax(-1)
        if nudge is not None:
            a = a + nudge[head]
        f = v @ module.out_proj.weight[:, part].T
        weights.append(a)
        carried.append(f)
        attended = attended + a @ f
    return torch.stack(weights), torch.stack(carried), attended


def projections(module):
    return module.q_proj, module.k_proj, module.v_proj


def sublayer(x, module, norm, norm_after, memory=None, causal=False, nudge=None):
    query = x if norm_after else layer_norm(x, norm)
    memory = query if memory is None else memory
    weights, carried, attended = attend(module, query, memory, causal, nudge)
    result = layer_norm(x + attended, norm) if norm_after else x + attended
    return Sublayer(module, norm, norm_after, x, query, memory, weights, carried, attended, result)


def feed_forward(x, layer):
    inner = x if not layer.normalize_before else layer_norm(x, layer.final_layer_norm)
    out = x + linear(linear(inner, layer.fc1).relu(), layer.fc2)
    return out if layer.normalize_before else layer_norm(out, layer.final_layer_norm)


def run(model, pair, source=None, prefix=None, nudges=None) -> Trace:
    """One forced pass over a pair; `source` [S, D] replaces the source embeddings, `prefix` [T, D] those of the prefix.

    `nudges`: for (`encoder`, `decoder` or `cross`, layer), what is added to the attention weights, [H, Q, K].
    """
    trace, nudges, batch = Trace(), nudges or {}, model.batch([pair])
    encoder, decoder = model.module.encoder, model.module.decoder
    x = model.embed(batch)[0] if source is None else source
    trace.inputs["source"] = (x, encoder.embed_positions(batch.source)[0])
    x = sum(trace.inputs["source"])
    for number, layer in enumerate(encoder.layers):
        after = not layer.normalize_before
        step = sublayer(x, layer.self_attn, layer.self_attn_layer_norm, after, nudge=nudges.get(("encoder", number)))
        trace.encoder.append(step)
        x = feed_forward(step.result, layer)
        trace.feeds["encoder", number] = (step.result, x)
    trace.before_final_norm["encoder"] = x
    trace.states = x if encoder.layer_norm is None else layer_norm(x, encoder.layer_norm)
    x = decoder.embed_scale * (decoder.embed_tokens(batch.prefix)[0] if prefix is None else prefix)
    trace.inputs["prefix"] = (x, decoder.embed_positions(batch.prefix)[0])
    x = sum(trace.inputs["prefix"])
    for number, layer in enumerate(decoder.layers):
        after = not layer.normalize_before
        own = sublayer(
            x, layer.self_attn, layer.self_attn_layer_norm, after, causal=True, nudge=nudges.get(("decoder", number))
        )
        cross = sublayer(
            own.result,
            layer.encoder_attn,
            layer.encoder_attn_layer_norm,
            after,
            memory=trace.states,
            nudge=nudges.get(("cross", number)),
        )
        trace.decoder.append(own)
        trace.cross.append(cross)
        x = feed_forward(cross.result, layer)
        trace.feeds["decoder", number] = (cross.result, x)
    trace.before_final_norm["decoder"] = x
    trace.features = x if decoder.layer_norm is None else layer_norm(x, decoder.layer_norm)
    trace.logits = trace.features @ decoder.output_projection.weight.T
    return trace


def log_probs(trace, pair):
    """log p of each target piece. [T]"""
    return trace.logits.log_softmax(-1)[torch.arange(len(pair.target)), torch.tensor(pair.target)]


def rows_of(scores, batch, row):
    """One sentence of [..., B, T, S] without padding."""
    return scores[..., row, :, :][..., batch.target_mask[row], :][..., batch.source_mask[row]]


def lively(model, seed=0):
    """The model with random biases and LayerNorm weights, which fresh models have at 0 and 1."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.module.parameters():
        if parameter.dim() == 1:
            parameter.data += 0.3 * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
    return model
