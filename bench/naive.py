"""Saliency as it is usually written: one sentence at a time, one backward pass for each target piece."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from align.models.base import Encoded, TranslationModel
    from data.links import Link, Links


def gradient_x_input(model: TranslationModel, pair: Encoded) -> Tensor:
    """Signed gradient x input of one pair, [T, S]: one forward pass, whose graph is kept for T backward passes."""
    batch = model.batch([pair])
    embeddings = model.embed(batch).requires_grad_()  # [1, S, D]
    log_probs = model.log_probs(batch, embeddings)[0]  # [T]
    rows = []
    for log_prob in log_probs:
        (gradient,) = torch.autograd.grad(log_prob, embeddings, retain_graph=True)
        rows.append((gradient * embeddings).sum(-1)[0].detach())
    return torch.stack(rows)


def prefix_by_prefix(model: TranslationModel, pair: Encoded) -> Tensor:
    """The same as a generation loop has it: a forward and a backward pass for each prefix of the target. [T, S]"""
    batch = model.batch([pair])
    rows = []
    for row in range(len(pair.target)):
        embeddings = model.embed(batch).requires_grad_()
        features = model.decode(batch, model.encode(batch, embeddings), row + 1)
        log_prob = model.token_log_probs(batch, features[:, row:], row)[0, 0]
        (gradient,) = torch.autograd.grad(log_prob, embeddings)
        rows.append((gradient * embeddings).sum(-1)[0].detach())
    return torch.stack(rows)


def aer(hypotheses: Sequence[Links], golds: Sequence[tuple[Links, Links]]) -> float:
    """AER with a loop over links, as scripts have it; gold is (sure, possible), sure among possible."""
    sure_hits = possible_hits = links = total = 0
    for found, (sure, possible) in zip(hypotheses, golds, strict=True):
        for link in found:
            links += 1
            if link in sure:
                sure_hits += 1
            if link in possible:
                possible_hits += 1
        total += len(sure)
    return 1 - (sure_hits + possible_hits) / (links + total)


def grow_diag_final_and(forward: Links, reverse: Links) -> Links:
    """The pseudo-code of Koehn's tutorial, with loops over the whole grid until nothing is added."""
    union, found = forward | reverse, set(forward & reverse)
    around = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))
    width = 1 + max((i for i, _ in union), default=-1)
    height = 1 + max((j for _, j in union), default=-1)

    def free(link: Link) -> tuple[bool, bool]:
        return all(i != link[0] for i, _ in found), all(j != link[1] for _, j in found)

    changed = True
    while changed:
        changed = False
        for j in range(height):
            for i in range(width):
                for dj, di in around if (i, j) in found else ():
                    near = (i + di, j + dj)
                    if near in union and near not in found and any(free(near)):
                        found.add(near)
                        changed = True
    for links in (forward, reverse):
        for link in sorted(links, key=lambda link: (link[1], link[0])):
            if link not in found and all(free(link)):
                found.add(link)
    return frozenset(found)
