"""fairseq encoder-decoders behind `TranslationModel`: the Transformer, and what all architectures share."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from align.models.base import BASELINES, Encoded, PrefixVocabulary, TranslationModel
from align.models.cutters import SentencePiece, written
from align.models.fairseq_languages import read_around
from align.models.inside import Sublayer, Sublayers, stopped_after
from align.models.subwords import BPE_MARK, NO_WORD, SPM_MARK, joined_bpe, joined_spm
from data.errors import ModelError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from torch import Tensor, nn

    from align.models.base import Batch
    from align.models.fairseq_languages import Around
    from align.models.subwords import Segmented, Segmenter
    from data.bitext import Pair


TRANSLATED_TOGETHER = 32


class FairseqModel(TranslationModel):
    """A fairseq encoder-decoder with multi-head cross-attention.

    Args:
        module: fairseq's model, in evaluation mode.
        source_dictionary, target_dictionary: fairseq dictionaries.
        segment_source, segment_target: words to pieces, one for each side.
        name, fingerprint: what signatures call it.
        around: what stands around the pieces, other than `</s>` where the model has language tokens.
    """

    def __init__(
        self,
        module: nn.Module,
        source_dictionary: Any,
        target_dictionary: Any,
        segment_source: Segmenter,
        segment_target: Segmenter,
        name: str = "fairseq",
        fingerprint: str = "",
        around: Around | None = None,
    ) -> None:
        module.eval().requires_grad_(False)
        self.module: Any = module
        self.source_dictionary, self.target_dictionary = source_dictionary, target_dictionary
        self.segment_source, self.segment_target = segment_source, segment_target
        self.name, self.fingerprint = name, fingerprint
        self.written = written(segment_source, segment_target)
        self.around = around or read_around({}, source_dictionary, target_dictionary, (None, None), Path())
        encoder: Any = self.module.encoder
        decoder: Any = self.module.decoder
        if decoder.adaptive_softmax is not None:
            raise ModelError(
                f"{name}: adaptive softmax is not supported, as it gives no scores of the whole vocabulary"
            )
        self.layers, self.heads = self._attention_size(decoder)
        table = encoder.embed_tokens.weight
        self.width, self.device, self.dtype = table.shape[1], table.device, table.dtype
        self.pad = encoder.padding_idx
        self.scale = float(getattr(encoder, "embed_scale", 1.0))
        self.max_source, self.max_target = encoder.max_positions(), decoder.max_positions()

    def _attention_size(self, decoder: Any) -> tuple[int, int]:
        """Layers with cross-attention, and heads."""
        return len(decoder.layers), decoder.layers[0].encoder_attn.num_heads

    def encode_pair(self, pair: Pair) -> Encoded:
        source, target = self.segment_source(pair.source), self.segment_target(pair.target)
        source_ids = _ids(source, self.source_dictionary)
        target_ids = _ids(target, self.target_dictionary)
        around = self.around
        read = (*around.source_before, *source_ids, *around.source_after)
        written = (*around.target_before, *target_ids, *around.target_after)
        status = "ok"
        if not source.pieces or not target.pieces:
            status = "empty"
        elif len(read) > self.max_source or len(written) > self.max_target:
            status = "too_long"
        return Encoded(
            pair=pair,
            source_words=source.words,
            target_words=target.words,
            source=read,
            target=written,
            prefix=(around.start, *written[:-1]),
            source_word_of=_no_words(around.source_before) + source.word_of + _no_words(around.source_after),
            target_word_of=_no_words(around.target_before) + target.word_of + _no_words(around.target_after),
            unknown=source_ids.count(self.source_dictionary.unk()) + target_ids.count(self.target_dictionary.unk()),
            status=status,
        )

    def embed(self, batch: Batch) -> Tensor:
        out: Tensor = self.scale * self.module.encoder.embed_tokens(batch.source)
        return out

    def encode(self, batch: Batch, embeddings: Tensor) -> Tensor:
        # Fused attention has no batching rule for its backward pass, which the methods need.
        with sdpa_kernel(SDPBackend.MATH):
            encoded = self.module.encoder(batch.source, token_embeddings=_time_major(embeddings / self.scale))
        out: Tensor = encoded["encoder_out"][0].transpose(0, 1)
        return out

    def decode(self, batch: Batch, states: Tensor, rows: int | None = None) -> Tensor:
        with _cross_attention_arguments(self.module.decoder, static_kv=False, need_weights=False):
            return self._features(batch, states, rows)

    def prefix_vocabulary(self) -> PrefixVocabulary:
        words = self.target_dictionary
        return PrefixVocabulary(self.module.decoder.embed_tokens, len(words), words.unk(), lambda: _word_counts(words))

    def _features(self, batch: Batch, states: Tensor, rows: int | None = None) -> Tensor:
        encoded = {"encoder_out": [states.transpose(0, 1)], "encoder_padding_mask": [~batch.source_mask]}
        with sdpa_kernel(SDPBackend.MATH), _time_major_embeddings(self.module.decoder):
            features, _ = self.module.decoder(batch.prefix[:, :rows], encoded, features_only=True)
        out: Tensor = features
        return out

    def output_layer(self, batch: Batch, features: Tensor) -> Tensor:
        out: Tensor = self.module.decoder.output_layer(features)
        return out

    @torch.no_grad()
    def cross_attention(self, batch: Batch, layers: Sequence[int]) -> Tensor:
        self.check_layers(layers)
        states = self.encode(batch, self.embed(batch))
        decoder = self.module.decoder
        with _head_weights(decoder) as weights, stopped_after(decoder.layers[max(layers)].encoder_attn):
            self._features(batch, states)
        return torch.stack([weights[layer].transpose(0, 1) for layer in layers]).to(self.dtype)

    def baseline(self, kind: str) -> Tensor:
        table = self.module.encoder.embed_tokens.weight
        rows: dict[str, Callable[[], Tensor]] = {
            "zero": lambda: torch.zeros_like(table[0]),
            "unk": lambda: table[self.source_dictionary.unk()],
            "pad": lambda: table[self.pad],
            "mean": lambda: table.mean(0),
        }
        if kind not in rows:
            raise unknown_name("baseline", kind, BASELINES)
        return self.scale * rows[kind]()

    def translate(self, sources: Sequence[Sequence[str]], beam: int = 5) -> list[tuple[str, ...]]:
        """Translate by fairseq's `SequenceGenerator`, best hypothesis; into pieces where the text is in pieces."""
        results: list[tuple[str, ...]] = []
        for first in range(0, len(sources), TRANSLATED_TOGETHER):
            group = [self.segment_source(words) for words in sources[first : first + TRANSLATED_TOGETHER]]
            results += map(self._words, self._search([_ids(side, self.source_dictionary) for side in group], beam))
        return results

    @torch.no_grad()
    def _search(self, sources: list[list[int]], beam: int) -> list[list[int]]:
        from fairseq.sequence_generator import SequenceGenerator

        around = self.around
        rows = [(*around.source_before, *ids, *around.source_after) for ids in sources]
        net_input = {
            "src_tokens": self._pad(rows, self.pad),
            "src_lengths": torch.tensor([len(row) for row in rows], device=self.device),
        }
        prefix = None
        if around.target_before:
            prefix = torch.tensor([around.target_before] * len(rows), device=self.device)
        limits = {"max_len_a": 1.5, "max_len_b": 20, "max_len": self.max_target - 1, "eos": around.target_after[-1]}
        generator = SequenceGenerator([self.module], self.target_dictionary, beam_size=beam, **limits)
        options = {"prefix_tokens": prefix, "bos_token": around.start}
        try:
            found = generator.generate([self.module], {"net_input": net_input}, **options)
        finally:
            if hasattr(self.module, "set_beam_size"):  # BART's, which stays in its attention
                self.module.set_beam_size(1)
                vars(self.module.encoder).pop("reorder_encoder_out", None)
        skip = {*around.target_before, *around.target_after}
        return [[int(i) for i in hypotheses[0]["tokens"] if int(i) not in skip] for hypotheses in found]

    def _words(self, ids: list[int]) -> tuple[str, ...]:
        pieces = [self.target_dictionary[i] for i in ids]
        if self.segment_target in (joined_bpe, joined_spm):
            return tuple(pieces)
        if isinstance(self.segment_target, SentencePiece) and self.segment_target.unspaced:
            return self.segment_target.words("".join(pieces).replace(SPM_MARK, " ").strip())
        return (joined_spm if any(piece.startswith(SPM_MARK) for piece in pieces) else joined_bpe)(pieces).words

    # What methods need from inside (`align.models.inside.OpenModel`)

    batch_first = False

    def sublayers(self) -> Sublayers:
        return _sublayers(self.module, self.name)

    def read_attention(
        self, module: nn.Module, arguments: tuple[Any, ...], options: Mapping[str, Any], result: Any
    ) -> tuple[Tensor, Tensor, Tensor]:
        return _attention_weights(module, options), options["value"], result[0]

    def word_counts(self) -> dict[str, float]:
        return _word_counts(self.source_dictionary)


def _no_words(ids: tuple[int, ...]) -> tuple[int, ...]:
    return (NO_WORD,) * len(ids)


def _ids(side: Segmented, dictionary: Any) -> list[int]:
    return [dictionary.index(piece) for piece in side.pieces]


def _time_major(embeddings: Tensor) -> Tensor:
    """The same [B, T, D], laid out as the [T, B, D] to which fairseq turns it: products of such rows need no copies."""
    return embeddings.transpose(0, 1).contiguous().transpose(0, 1)


@contextmanager
def _time_major_embeddings(decoder: Any) -> Iterator[None]:
    """Dropout is the last step before the decoder turns its embeddings."""
    handle = decoder.dropout_module.register_forward_hook(lambda module, args, output: _time_major(output))
    try:
        yield
    finally:
        handle.remove()


@contextmanager
def _cross_attention_arguments(decoder: Any, **changes: Any) -> Iterator[None]:
    """Call cross-attention with other arguments than the decoder gives.

    `static_kv=False` takes torch's attention instead of fairseq's own, which computes its softmax in float32 whatever
    the model's precision.
    """

    def change(module: nn.Module, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        return args, {**kwargs, **changes}

    handles = [layer.encoder_attn.register_forward_pre_hook(change, with_kwargs=True) for layer in decoder.layers]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def _head_weights(decoder: Any) -> Iterator[list[Tensor]]:
    """Collect the cross-attention weights of every layer that runs, [H, B, T, S] each."""
    weights: list[Tensor] = []

    def keep(module: nn.Module, args: Any, output: tuple[Tensor, Tensor]) -> None:
        weights.append(output[1])

    handles = [layer.encoder_attn.register_forward_hook(keep) for layer in decoder.layers]
    try:
        with _cross_attention_arguments(decoder, need_weights=True, need_head_weights=True):
            yield weights
    finally:
        for handle in handles:
            handle.remove()


# What methods need from inside


def _sublayers(module: Any, name: str) -> Sublayers:
    """The attention sublayers of a Transformer whose layers are those of the paper."""

    def sublayer(layer: Any, attention: str) -> Sublayer:
        for extra in ("c_attn", "attn_ln", "w_resid"):  # NormFormer
            if getattr(layer, extra, None) is not None:
                raise ModelError(f"{name}: {extra} changes what attention adds, which this method cannot follow")
        found = getattr(layer, attention, None)
        if found is None or not hasattr(found, "out_proj"):
            raise ModelError(f"{name}: {type(layer).__name__} has no multi-head {attention}, which this method needs")
        norm = getattr(layer, f"{attention}_layer_norm")
        return Sublayer(found, norm, not layer.normalize_before, found.v_proj, found.out_proj, found.num_heads)

    return Sublayers(
        tuple(sublayer(layer, "self_attn") for layer in module.encoder.layers),
        tuple(sublayer(layer, "self_attn") for layer in module.decoder.layers),
        tuple(sublayer(layer, "encoder_attn") for layer in module.decoder.layers),
    )


def _word_counts(dictionary: Any) -> dict[str, float]:
    """Counts of the pieces of a dictionary that can be words: no `@@` after them; with SentencePiece, `▁` before."""
    pieces = dict(zip(dictionary.symbols[dictionary.nspecial :], dictionary.count[dictionary.nspecial :], strict=True))
    if any(piece.startswith(SPM_MARK) for piece in pieces):
        words = {piece[1:]: count for piece, count in pieces.items() if piece.startswith(SPM_MARK)}
    else:
        words = {piece: count for piece, count in pieces.items() if not piece.endswith(BPE_MARK)}
    return {word: float(count) for word, count in words.items() if word and count > 0}


@torch.no_grad()
def _attention_weights(attention: Any, call: Mapping[str, Any]) -> Tensor:
    """Weights of every head, which torch's attention does not give: softmax of scaled q k. [B, H, Q, K]"""
    heads = attention.num_heads
    query = attention.q_proj(call["query"]).unflatten(-1, (heads, -1)) * attention.scaling  # [Q, B, H, D / H]
    key = attention.k_proj(call["key"]).unflatten(-1, (heads, -1))
    scores = torch.einsum("qbhd,kbhd->bhqk", query, key)
    if call.get("attn_mask") is not None:
        scores = scores + call["attn_mask"]
    if call.get("key_padding_mask") is not None:
        scores = scores.masked_fill(call["key_padding_mask"][:, None, None, :].bool(), -torch.inf)
    return scores.softmax(-1)
