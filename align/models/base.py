"""What a translation model must offer, and a batch of sentence pairs in its pieces."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Self

import torch

from align.models.subwords import NO_WORD
from data.errors import ModelError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torch import Tensor

    from data.bitext import Pair

BASELINES = ("zero", "unk", "pad", "mean")


@dataclass(frozen=True)
class Encoded:
    """A sentence pair as the model reads it.

    `source` holds S piece ids with `</s>` and tags, `target` the T pieces to predict with `</s>`, `prefix` the T
    decoder inputs (start symbol first, so `prefix[t + 1] == target[t]`). `*_word_of` give the word of each piece,
    -1 for `</s>` and tags. `status` is `ok`, `empty` or `too_long`; only `ok` pairs may enter a batch.
    """

    pair: Pair
    source_words: tuple[str, ...]
    target_words: tuple[str, ...]
    source: tuple[int, ...]
    target: tuple[int, ...]
    prefix: tuple[int, ...]
    source_word_of: tuple[int, ...]
    target_word_of: tuple[int, ...]
    unknown: int
    status: str = "ok"

    def spliced(self, start: int, end: int, pieces: tuple[int, ...]) -> Self:
        """The sentence with other pieces in place of source pieces `start`..`end` - 1; none closes the gap."""
        word = self.source_word_of[start]
        return replace(
            self,
            source=(*self.source[:start], *pieces, *self.source[end:]),
            source_word_of=(*self.source_word_of[:start], *[word] * len(pieces), *self.source_word_of[end:]),
        )


@dataclass(frozen=True)
class Batch:
    """Pairs padded to one rectangle: ids, masks of real pieces, word indices (-1 for `</s>`, tags, padding)."""

    pairs: tuple[Encoded, ...]
    source: Tensor  # [B, S]
    source_mask: Tensor  # [B, S] bool
    source_word_of: Tensor  # [B, S]
    prefix: Tensor  # [B, T]
    target: Tensor  # [B, T]
    target_mask: Tensor  # [B, T] bool
    target_word_of: Tensor  # [B, T]

    def __len__(self) -> int:
        return len(self.pairs)

    def repeat(self, times: int) -> Batch:
        """Every pair `times` times over, copy after copy: [times * B, ...]."""
        tensors = {
            name: getattr(self, name).repeat(times, 1)
            for name in (
                "source",
                "source_mask",
                "source_word_of",
                "prefix",
                "target",
                "target_mask",
                "target_word_of",
            )
        }
        return replace(self, pairs=self.pairs * times, **tensors)


class PrefixVocabulary(NamedTuple):
    """What the decoder reads: `table` turns its input ids [B, T] into word embeddings [B, T, D].

    `size` and `unknown`: how many ids there are, and that of unknown pieces; `counts`, where a model brings
    frequencies, gives its words with them.
    """

    table: torch.nn.Module
    size: int
    unknown: int
    counts: Callable[[], dict[str, float]] | None = None


class TranslationModel(ABC):
    """An encoder-decoder under teacher forcing, seen from its source word embeddings.

    Parameters never require gradients and the model stays in evaluation mode. Sentences of a batch and the side
    of padding do not change results beyond float rounding.
    """

    name: str
    fingerprint: str  # sha256 of the weights, 64 hex digits
    layers: int  # L, decoder layers with cross-attention
    heads: int  # H
    width: int  # D of the source word embeddings
    pad: int
    written = ""  # how text is written for it, where that is not word by word with spaces
    device: torch.device
    dtype: torch.dtype
    pad_left = False
    batched_rows = True  # whether gradients of many target rows can go back in one batched pass

    @property
    def identity(self) -> str:
        """What signatures call it: name, weights, and how its text is written."""
        return ",".join(filter(None, (f"{self.name}@{self.fingerprint[:8]}", self.written)))

    @abstractmethod
    def encode_pair(self, pair: Pair) -> Encoded:
        """Cut a pair into pieces; too long or empty sides show in `status`."""

    @abstractmethod
    def embed(self, batch: Batch) -> Tensor:
        """Source word embeddings as they enter the encoder: scaled, without positions. [B, S, D]"""

    @abstractmethod
    def encode(self, batch: Batch, embeddings: Tensor) -> Tensor:
        """Encoder states from `embeddings` [B, S, D]. [B, S, D']"""

    @abstractmethod
    def decode(self, batch: Batch, states: Tensor, rows: int | None = None) -> Tensor:
        """Decoder features before the output layer, for the first `rows` target positions. [B, T, D']"""

    def logits(self, batch: Batch, features: Tensor) -> Tensor:
        """Scores of the vocabulary at `features` [B, T, D']. [B, T, V]"""
        # Where rows do not follow each other in memory, PyTorch multiplies sentence by sentence and copies the weights
        # for each. `contiguous` does not mend the strides of a single position.
        return self.output_layer(batch, features.clone(memory_format=torch.contiguous_format))

    @abstractmethod
    def output_layer(self, batch: Batch, features: Tensor) -> Tensor:
        """The layer that makes scores of the vocabulary. [B, T, V]"""

    @abstractmethod
    def cross_attention(self, batch: Batch, layers: Sequence[int]) -> Tensor:
        """Cross-attention weights after the softmax, row t of the step that predicts target piece t.

        Returns: [L, B, H, T, S] in the order of `layers` (zero-based). Raises UsageError for a layer out of range.
        """

    @abstractmethod
    def baseline(self, kind: str) -> Tensor:
        """A vector that stands for an absent word: `zero`, `unk`, `pad` or `mean` of the vocabulary. [D]"""

    def prefix_vocabulary(self) -> PrefixVocabulary:
        """The words of the target prefix, as the decoder takes them in.

        Raises:
            ModelError: a model that does not show them.
        """
        raise ModelError(f"{self.name} does not show the word embeddings of its target prefix")

    def translate(self, sources: Sequence[Sequence[str]], beam: int = 5) -> list[tuple[str, ...]]:
        """Translate sentences by the library's beam search; the result is cut as this model takes target text.

        Raises:
            ModelError: a model that cannot translate here.
        """
        raise ModelError(f"{self.name} cannot translate here: give the target text")

    def token_log_probs(self, batch: Batch, features: Tensor, start: int = 0) -> Tensor:
        """log p of the target pieces from `start` on, given their `features` [B, T', D']. [B, T'], 0 at padding."""
        rows = slice(start, start + features.shape[1])
        chosen = self.logits(batch, features).log_softmax(-1)  # [B, T', V]
        picked = chosen.gather(-1, batch.target[:, rows, None])[..., 0]
        return picked.masked_fill(~batch.target_mask[:, rows], 0.0)

    def log_probs(self, batch: Batch, embeddings: Tensor) -> Tensor:
        """log p(target piece | source, target prefix), teacher-forced. [B, T], 0 at padding."""
        return self.token_log_probs(batch, self.decode(batch, self.encode(batch, embeddings)))

    def check_layers(self, layers: Sequence[int]) -> None:
        """Raise UsageError unless every layer is in 0..L-1."""
        for layer in layers:
            if not 0 <= layer < self.layers:
                raise UsageError(f"layer {layer} does not exist: {self.name} has decoder layers 0 to {self.layers - 1}")

    def batch(self, pairs: Sequence[Encoded]) -> Batch:
        """Pad pairs to one rectangle. Targets are padded on the right, sources on the side `pad_left` says."""
        left = self.pad_left
        return Batch(
            pairs=tuple(pairs),
            source=self._pad([p.source for p in pairs], self.pad, left),
            source_mask=self._pad([(1,) * len(p.source) for p in pairs], 0, left).bool(),
            source_word_of=self._pad([p.source_word_of for p in pairs], NO_WORD, left),
            # The causal mask hides padding on the right, so any id will do; the start symbol spares a padding mask.
            prefix=self._pad([p.prefix for p in pairs], pairs[0].prefix[0]),
            target=self._pad([p.target for p in pairs], self.pad),
            target_mask=self._pad([(1,) * len(p.target) for p in pairs], 0).bool(),
            target_word_of=self._pad([p.target_word_of for p in pairs], NO_WORD),
        )

    def _pad(self, rows: Sequence[Sequence[int]], fill: int, left: bool = False) -> Tensor:
        width = max(map(len, rows))
        padding = ([fill] * (width - len(row)) for row in rows)
        filled = [[*p, *row] if left else [*row, *p] for row, p in zip(rows, padding, strict=True)]
        return torch.tensor(filled, dtype=torch.long, device=self.device)


def plan_batches(pairs: Sequence[Encoded], pieces: int) -> Iterator[list[Encoded]]:
    """Group pairs of similar length so that B x (S + T) stays within `pieces`; every pair once, order free."""
    group: list[Encoded] = []
    widest = 0
    # Sorted by the longer side, a batch has less padding in S x T, the cost of gradients, than sorted by the sum.
    for pair in sorted(pairs, key=lambda p: (max(len(p.source), len(p.target)), len(p.source), p.pair.id)):
        size = len(pair.source) + len(pair.target)
        if group and max(widest, size) * (len(group) + 1) > pieces:
            yield group
            group, widest = [], 0
        group.append(pair)
        widest = max(widest, size)
    if group:
        yield group
