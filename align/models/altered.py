"""A model altered for a while: random weights, other weights that compute the same, shifted or disturbed inputs.

Everything comes off again when the context closes, also after an error.
"""

from __future__ import annotations

import re
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from align.models.inside import opened
from data.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from torch import Tensor

    from align.models.base import Batch, TranslationModel

    Slot = tuple[nn.Module, str]
    """A module and the name of one of its parameters; tied parameters have several slots."""

LAYER = re.compile(r"(encoder|decoder)\.(?:layers|block)\.([0-9]+)\.")
OUTPUT = re.compile(r"(output_projection|lm_head)\.|decoder\.(layer_norm|final_layer_norm)\.")


def blocks(model: TranslationModel) -> dict[str, list[tuple[str, Slot]]]:
    """The weights of a Transformer from the output down to the embeddings, each slot with its path.

    `output` (with the decoder's last norm), `decoder N` ... `decoder 0`, `encoder N` ... `encoder 0`, `embeddings`
    (and what else there is).

    Raises:
        ModelError: a model that is not one network with layers.
    """
    module = getattr(model, "module", None)
    found: dict[str, list[tuple[str, Slot]]] = {}
    if isinstance(module, nn.Module):
        for path, part in module.named_modules():
            for name, parameter in part.named_parameters(recurse=False):
                whole = f"{path}.{name}"
                layer = LAYER.search(whole)
                block = f"{layer[1]} {layer[2]}" if layer else "output" if OUTPUT.search(whole) else "embeddings"
                if parameter is not None:
                    found.setdefault(block, []).append((whole, (part, name)))
    if not {"encoder 0", "decoder 0"} <= set(found):
        raise ModelError(f"{model.name} has no encoder and decoder layers whose weights could be made random")
    return {name: found[name] for name in sorted(found, key=_depth)}


def _depth(block: str) -> tuple[int, int]:
    kind, _, number = block.partition(" ")
    return ("output", "decoder", "encoder", "embeddings").index(kind), -int(number or 0)


@contextmanager
def randomised(model: TranslationModel, names: Iterable[str], seed: int) -> Iterator[None]:
    """Draw the weights of some blocks anew, from normal distributions with each tensor's own mean and deviation.

    Tied weights come apart: where the output is drawn, the embeddings stay. A tensor's draw depends on nothing but the
    seed and its path.
    """
    every = blocks(model)
    changes = [
        (slot, _drawn(getattr(*slot), path, seed)) for name in names for path, slot in every[name]
    ]  # fmt: skip
    with _parameters(changes):
        yield


def _drawn(trained: Tensor, path: str, seed: int) -> Tensor:
    rng = np.random.default_rng([seed, zlib.crc32(path.encode())])
    mean, deviation = float(trained.mean()), float(trained.std(unbiased=False))
    return torch.from_numpy(rng.normal(mean, deviation, size=tuple(trained.shape))).to(trained)


@contextmanager
def _parameters(changes: Sequence[tuple[Slot, Tensor]]) -> Iterator[None]:
    """Put other tensors into slots."""
    before = [(module, name, module._parameters[name]) for (module, name), _ in changes]
    try:
        for (module, name), tensor in changes:
            module._parameters[name] = nn.Parameter(tensor, requires_grad=False)
        yield
    finally:
        for module, name, parameter in before:
            module._parameters[name] = parameter


@contextmanager
def rewired(model: TranslationModel, seed: int) -> Iterator[None]:
    """Another implementation of the same function: R_h W_V and W_O R_h^-1 in every head of every attention sublayer.

    R_h is a random well-conditioned matrix; nothing but the vectors between the two projections changes.

    Raises:
        ModelError: a model that does not show its attention sublayers.
    """
    parts = opened(model).sublayers()
    rng = np.random.default_rng(seed)
    changes: list[tuple[Slot, Tensor]] = []
    for sublayer in (*parts.encoder, *parts.decoder, *parts.cross):
        value, output = sublayer.value, sublayer.output
        size = value.weight.shape[0] // sublayer.heads
        mixing = torch.block_diag(*(_invertible(rng, size) for _ in range(sublayer.heads)))
        back = torch.linalg.inv(mixing)
        changes.append(((value, "weight"), (mixing @ value.weight.double().cpu()).to(value.weight)))
        changes.append(((output, "weight"), (output.weight.double().cpu() @ back).to(output.weight)))
        if value.bias is not None:
            changes.append(((value, "bias"), (mixing @ value.bias.double().cpu()).to(value.bias)))
    with _parameters(changes):
        yield


def _invertible(rng: np.random.Generator, size: int) -> Tensor:
    """Two rotations with a stretch of 1/2 to 2 between them. [size, size]"""
    first, second = (np.linalg.qr(rng.normal(size=(size, size)))[0] for _ in range(2))
    return torch.from_numpy(first @ np.diag(2 ** rng.uniform(-1, 1, size)) @ second)


@contextmanager
def _methods(model: TranslationModel, **changes: Callable[..., Any]) -> Iterator[None]:
    """Put functions in the place of methods of this one model."""
    attributes = vars(model)
    before = {name: attributes[name] for name in changes if name in attributes}
    attributes.update(changes)
    try:
        yield
    finally:
        for name in changes:
            del attributes[name]
        attributes.update(before)


@contextmanager
def shifted(model: TranslationModel, vector: Tensor) -> Iterator[None]:
    """The same function of the text with `vector` [D] added to every source embedding and taken off in the encoder.

    The shift is part of the table, so that baselines from it (`unk`, `pad`, `mean`) move along and `zero` stays.
    """
    embed, encode, baseline = model.embed, model.encode, model.baseline
    with _methods(
        model,
        embed=lambda batch: embed(batch) + vector,
        encode=lambda batch, embeddings: encode(batch, embeddings - vector),
        baseline=lambda kind: baseline(kind) if kind == "zero" else baseline(kind) + vector,
    ):
        yield


@contextmanager
def disturbed(model: TranslationModel, noise: Mapping[int, tuple[tuple[int, ...], Tensor]]) -> Iterator[None]:
    """Add noise to the source embeddings of sentences: by the number of a pair its pieces and their noise [S, D].

    Raises (when embeddings are asked for):
        ModelError: other pieces than these, as from methods that change the words themselves.
    """
    embed = model.embed

    def noisy(batch: Batch) -> Tensor:
        embeddings = embed(batch).clone()
        for row, pair in enumerate(batch.pairs):
            pieces, added = noise[pair.pair.id]
            real = batch.source_mask[row]
            if tuple(batch.source[row, real].tolist()) != pieces:
                raise ModelError("this method changes the words of the source, to which no noise can be added")
            embeddings[row, real] += added.to(embeddings)
        return embeddings

    with _methods(model, embed=noisy):
        yield
