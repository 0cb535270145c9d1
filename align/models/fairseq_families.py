"""fairseq's encoder-decoders other than the Transformer: light convolutions, convolutions, LSTMs.

Their encoders take no embeddings, so the embedding table answers with ours for the length of a call.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from align.models.fairseq import FairseqModel
from data.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import Tensor

    from align.models.base import Batch
    from align.models.inside import Sublayers


class _Answer(nn.Module):
    """A module that gives the same tensor whatever it is asked."""

    def __init__(self, tensor: Tensor, padding_idx: int | None = None) -> None:
        super().__init__()
        self.tensor, self.padding_idx = tensor, padding_idx

    def forward(self, *_: object) -> Tensor:
        return self.tensor


@contextmanager
def _replaced(module: Any, **attributes: Any) -> Iterator[None]:
    """Other attributes for a while."""
    before = {name: getattr(module, name) for name in attributes}
    try:
        for name, value in attributes.items():
            setattr(module, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)


def _padding(real: Tensor) -> Tensor | None:
    """A mask of padding where there is some; without one, attention keeps the model's precision."""
    return None if bool(real.all()) else ~real


class _OtherModel(FairseqModel):
    """What the other architectures share."""

    def sublayers(self) -> Sublayers:
        raise ModelError(
            f"{self.name}: {type(self.module).__name__} is no Transformer, whose insides this method needs"
        )

    @contextmanager
    def _given(self, embeddings: Tensor) -> Iterator[None]:
        encoder = self.module.encoder
        with _replaced(encoder, embed_tokens=_Answer(embeddings / self.scale, encoder.padding_idx)):
            yield


class LightConvolutionModel(_OtherModel):
    """`lightconv` and `dynamicconv` (Wu et al. 2019): convolutions for self-attention, ordinary cross-attention."""

    batched_rows = False  # dynamic kernels are written through strided views, which batched backward passes lack

    def encode(self, batch: Batch, embeddings: Tensor) -> Tensor:
        with self._given(embeddings):
            encoded = self.module.encoder(batch.source)
        out: Tensor = encoded["encoder_out"][0].transpose(0, 1)
        return out

    def _features(self, batch: Batch, states: Tensor, rows: int | None = None) -> Tensor:
        decoder = self.module.decoder
        encoded = {"encoder_out": [states.transpose(0, 1)], "encoder_padding_mask": [~batch.source_mask]}
        with _replaced(decoder, output_projection=nn.Identity()):
            features, _ = decoder(batch.prefix[:, :rows], encoded)
        out: Tensor = features
        return out

    def output_layer(self, batch: Batch, features: Tensor) -> Tensor:
        out: Tensor = self.module.decoder.output_projection(features)
        return out


class ConvolutionalModel(_OtherModel):
    """`fconv` (Gehring et al. 2017). Attention has one head, in the decoder layers that have attention.

    Encoder states are the two tensors that attention reads, keys and values, side by side: [B, S, 2 D].
    """

    batched_rows = False

    def __init__(self, module: nn.Module, *more: Any, **options: Any) -> None:
        super().__init__(module, *more, **options)
        for convolution in self.module.decoder.convolutions:
            # An old-style hook that forgets a weight kept for generation; torch warns that it cannot work here.
            convolution._backward_hooks.clear()

    def _attention_size(self, decoder: Any) -> tuple[int, int]:
        return len(self._attention(decoder)), 1

    @staticmethod
    def _attention(decoder: Any) -> list[Any]:
        return [module for module in decoder.attention if module is not None]

    def encode(self, batch: Batch, embeddings: Tensor) -> Tensor:
        # fairseq divides gradients by twice this number, for training; half makes that a division by one.
        with self._given(embeddings), _replaced(self.module.encoder, num_attention_layers=0.5):
            encoded = self.module.encoder(batch.source, batch.source_mask.sum(1))
        return torch.cat(encoded["encoder_out"], dim=-1)

    def decode(self, batch: Batch, states: Tensor, rows: int | None = None) -> Tensor:
        encoded = {"encoder_out": states.chunk(2, dim=-1), "encoder_padding_mask": _padding(batch.source_mask)}
        decoder = self.module.decoder
        with _replaced(decoder, fc3=nn.Identity()):
            features, _ = decoder(batch.prefix[:, :rows], encoded)
        out: Tensor = features
        return out

    def output_layer(self, batch: Batch, features: Tensor) -> Tensor:
        out: Tensor = self.module.decoder.fc3(features)
        return out

    @torch.no_grad()
    def cross_attention(self, batch: Batch, layers: Sequence[int]) -> Tensor:
        self.check_layers(layers)
        weights: list[Tensor] = []
        with ExitStack() as hooks:
            for module in self._attention(self.module.decoder):
                handle = module.register_forward_hook(lambda m, args, output: weights.append(output[1].clone()))
                hooks.callback(handle.remove)
            self.decode(batch, self.encode(batch, self.embed(batch)))
        return torch.stack([weights[layer][:, None] for layer in layers])


class RecurrentModel(_OtherModel):
    """`lstm` (Luong et al. 2015 in fairseq's form). One attention of one head, on top of the decoder.

    Encoder states are the outputs of S steps followed by the last hidden and cell states of every layer, which the
    decoder starts from: [B, S + 2 layers, D'].
    """

    batched_rows = False

    def _attention_size(self, decoder: Any) -> tuple[int, int]:
        return int(decoder.attention is not None), 1

    def encode(self, batch: Batch, embeddings: Tensor) -> Tensor:
        with self._given(embeddings):
            outputs, hidden, cells, _ = self.module.encoder(
                batch.source, batch.source_mask.sum(1), enforce_sorted=False
            )
        return torch.cat([outputs, hidden, cells]).transpose(0, 1)

    def decode(self, batch: Batch, states: Tensor, rows: int | None = None) -> Tensor:
        return self._step_through(batch, states, rows)[0]

    def _step_through(self, batch: Batch, states: Tensor, rows: int | None = None) -> tuple[Tensor, Tensor | None]:
        """Features [B, T, D'] and attention [B, T, S]."""
        size = batch.source.shape[1]
        outputs, last = states[:, :size], states[:, size:]
        hidden, cells = (half.transpose(0, 1).contiguous() for half in last.chunk(2, dim=1))
        encoded = (outputs.transpose(0, 1), hidden, cells, _padding(batch.source_mask.t()))
        features, weights = self.module.decoder.extract_features(batch.prefix[:, :rows], encoded)
        return features, weights

    def output_layer(self, batch: Batch, features: Tensor) -> Tensor:
        out: Tensor = self.module.decoder.output_layer(features)
        return out

    @torch.no_grad()
    def cross_attention(self, batch: Batch, layers: Sequence[int]) -> Tensor:
        if not self.layers:
            raise ModelError(f"{self.name}: this LSTM was trained without attention")
        self.check_layers(layers)
        _, weights = self._step_through(batch, self.encode(batch, self.embed(batch)))
        if weights is None:
            raise ModelError(f"{self.name}: the decoder gives no attention")
        return torch.stack([weights[:, None] for _ in layers])
