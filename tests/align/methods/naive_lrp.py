"""Layer-wise relevance propagation written out: relevance is handed down rule by rule, without any gradient.

The rules are those of AttnLRP (Achtibat et al. 2024, section 3 and appendix) on the Transformer of `naive`.
"""

from __future__ import annotations

import naive
import torch


def through_linear(x, contributions, out, relevance, rule, alpha):
    """R_i from z[j, i], the contribution of input i to output j, for one position; `out` is its sum with the bias."""
    handed = torch.zeros_like(x)
    for j in range(len(out)):
        z = contributions[j]
        if rule == "epsilon":
            handed = handed + z / out[j] * relevance[j]
        else:
            positive, negative = z.clamp(min=0), z.clamp(max=0)
            shares = [part / part.sum() for part in (positive, negative) if part.sum() != 0]
            weights = [alpha, 1 - alpha] if len(shares) == 2 else [1.0]
            handed = handed + sum(w * s for w, s in zip(weights, shares, strict=True)) * relevance[j]
    return handed


class Lrp:
    """Propagates the logits of one pair. `held`: attention weights take no relevance."""

    def __init__(self, model, pair, rule="epsilon", alpha=0.5, held=False):
        self.model, self.pair, self.rule, self.alpha, self.held = model, pair, rule, alpha, held
        self.trace = naive.run(model, pair)

    def linear(self, x, module, relevance, rows=slice(None)):
        """Back through rows of a linear layer, positions one by one. x [N, D], relevance [N, D']."""
        weight = module.weight[rows]
        bias = 0 if module.bias is None else module.bias[rows]
        return torch.stack(
            [
                through_linear(p, weight * p, weight @ p + bias, r, self.rule, self.alpha)
                for p, r in zip(x, relevance, strict=True)
            ]
        )

    def norm(self, x, module, relevance):
        """LayerNorm is linear once its standard deviation is held: z_ji = gamma_j (delta_ji - 1/D) x_i / sigma."""
        size = x.shape[-1]
        handed = []
        for p, r in zip(x, relevance, strict=True):
            sigma = (p.var(unbiased=False) + module.eps) ** 0.5
            matrix = module.weight[:, None] * (torch.eye(size) - 1 / size) / sigma
            handed.append(through_linear(p, matrix * p, matrix @ p + module.bias, r, "epsilon", None))
        return torch.stack(handed)

    @staticmethod
    def split(parts, relevance):
        """Back through a sum: in proportion to the summands."""
        total = sum(parts)
        return [part / total * relevance for part in parts]

    def attention(self, step, relevance):
        """Relevance of the query and of the memory, from that of the attended vectors."""
        module = step.module
        outputs = [linear_rows(step, head) for head in range(module.num_heads)]  # before the output projection
        joined = torch.cat([a @ v for _, _, v, a, _ in outputs], dim=-1)
        at_joined = self.linear(joined, module.out_proj, relevance)
        at_query, at_memory = torch.zeros_like(step.query), torch.zeros_like(step.memory)
        for part, (q, k, v, a, scores) in zip(naive.head_slices(module), outputs, strict=True):
            shares = a[:, :, None] * v[None] / (a @ v)[:, None] * at_joined[:, None, part]  # [Q, K, d]
            at_value = shares.sum(0) * (1 if self.held else 0.5)
            at_memory = at_memory + self.linear(step.memory, module.v_proj, at_value, part)
            if self.held:
                continue
            at_weights = shares.sum(-1) / 2
            seen = a > 0
            at_scores = torch.where(seen, scores, 0) * (at_weights - a * at_weights.sum(-1, keepdim=True))
            products = q[:, None] * k[None] / (part.stop - part.start) ** 0.5  # [Q, K, d]
            halves = torch.where(seen[..., None], products / scores[..., None] * at_scores[..., None] / 2, 0)
            at_query = at_query + self.linear(step.query, module.q_proj, halves.sum(1), part)
            at_memory = at_memory + self.linear(step.memory, module.k_proj, halves.sum(0), part)
        return at_query, at_memory

    def sublayer(self, step, relevance, own_memory):
        """Relevance of the stream before an attention sublayer, and of its memory."""
        if step.norm_after:
            relevance = self.norm(step.residual + step.attended, step.norm, relevance)
        at_residual, at_attended = self.split([step.residual, step.attended], relevance)
        at_query, at_memory = self.attention(step, at_attended)
        if own_memory:
            at_query = at_query + at_memory
        if not step.norm_after:
            at_query = self.norm(step.residual, step.norm, at_query)
        return at_residual + at_query, at_memory

    def feed_forward(self, key, layer, relevance):
        before, _ = self.trace.feeds[key]
        norm, first = layer.final_layer_norm, layer.normalize_before
        inner = naive.layer_norm(before, norm) if first else before
        hidden = naive.linear(inner, layer.fc1).relu()
        added = naive.linear(hidden, layer.fc2)
        if not first:
            relevance = self.norm(before + added, norm, relevance)
        at_before, at_added = self.split([before, added], relevance)
        at_inner = self.linear(inner, layer.fc1, self.linear(hidden, layer.fc2, at_added))
        return at_before + (self.norm(before, norm, at_inner) if first else at_inner)

    def row(self, t):
        """Relevance of each source piece, [S], and piece of the target prefix, [T], for the logit of target piece t."""
        trace, encoder, decoder = self.trace, self.model.module.encoder, self.model.module.decoder
        y = self.pair.target[t]
        relevance = torch.zeros_like(trace.features)
        weight = decoder.output_projection.weight[y]
        features = trace.features[t]
        logit = trace.logits[t, y]
        at_output = (weight[None] * features, logit[None], logit[None])
        relevance[t] = through_linear(features, *at_output, self.rule, self.alpha)
        if decoder.layer_norm is not None:
            relevance = self.norm(trace.before_final_norm["decoder"], decoder.layer_norm, relevance)
        at_states = torch.zeros_like(trace.states)
        for number in reversed(range(self.model.layers)):
            relevance = self.feed_forward(("decoder", number), decoder.layers[number], relevance)
            relevance, at_memory = self.sublayer(trace.cross[number], relevance, own_memory=False)
            at_states = at_states + at_memory
            relevance, _ = self.sublayer(trace.decoder[number], relevance, own_memory=True)
        at_prefix = self.split(list(trace.inputs["prefix"]), relevance)[0].sum(-1)
        relevance = at_states
        if encoder.layer_norm is not None:
            relevance = self.norm(trace.before_final_norm["encoder"], encoder.layer_norm, relevance)
        for number in reversed(range(len(encoder.layers))):
            relevance = self.feed_forward(("encoder", number), encoder.layers[number], relevance)
            relevance, _ = self.sublayer(trace.encoder[number], relevance, own_memory=True)
        return self.split(list(trace.inputs["source"]), relevance)[0].sum(-1), at_prefix


def linear_rows(step, head):
    """Query, key, value, weights and scores of one head."""
    module = step.module
    part = naive.head_slices(module)[head]
    q, k, v = (
        naive.linear(x, p)[:, part]
        for x, p in zip((step.query, step.memory, step.memory), naive.projections(module), strict=True)
    )
    return q, k, v, step.weights[head], q @ k.T / (part.stop - part.start) ** 0.5
