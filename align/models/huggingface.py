"""Hugging Face encoder-decoders behind `TranslationModel`: transformers' own classes with eager attention.

Importing transformers is slow, so it happens when a model is loaded.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from align.models.base import BASELINES, Encoded, PrefixVocabulary, TranslationModel
from align.models.cutters import written
from align.models.inside import Sublayer, Sublayers, stopped_after
from align.models.subwords import NO_WORD
from data.errors import ModelError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from torch import Tensor, nn

    from align.models.base import Batch
    from align.models.hf_families import Tokens
    from data.bitext import Pair

TRANSLATED_TOGETHER = 16  # sentences of one beam search


class HuggingFaceModel(TranslationModel):
    """An encoder-decoder made as BART is: Marian, M2M-100, NLLB-200, mBART.

    Args:
        module: transformers' model with eager attention.
        tokens: how pairs become ids.
        tokenizer: transformers' tokenizer, which turns the ids of a translation into text.
        name, fingerprint: what signatures call it.
    """

    batch_first = True
    _searching: ClassVar[dict[str, bool]] = {}  # further arguments of a search

    def __init__(self, module: Any, tokens: Tokens, tokenizer: Any, name: str, fingerprint: str) -> None:
        self.module = module.eval().requires_grad_(False)
        self.tokens, self.tokenizer = tokens, tokenizer
        self.name, self.fingerprint = name, fingerprint
        self.written = written(tokens.source, tokens.target)
        self._encoder, self._decoder = self.module.get_encoder(), self.module.get_decoder()
        cross = self.sublayers().cross
        self.layers, self.heads = len(cross), cross[0].heads
        self._table: Any = self._encoder.embed_tokens
        self.width, self.device, self.dtype = self._table.embedding_dim, self.module.device, self.module.dtype
        self.pad = int(self.module.config.pad_token_id)
        # Some tables give embeddings that are scaled already; after others the encoder scales them.
        self._encoder_scale = 1.0
        if not hasattr(self._table, "embed_scale"):
            self._encoder_scale = float(getattr(self._encoder, "embed_scale", 1.0))
        self._longest: int | None = getattr(self.module.config, "max_position_embeddings", None)

    def encode_pair(self, pair: Pair) -> Encoded:
        source, source_word_of = self.tokens.source.encode(pair.source)
        target, target_word_of = self.tokens.target.encode(pair.target)
        status = "ok"
        if set(source_word_of) == {NO_WORD} or set(target_word_of) == {NO_WORD}:
            status = "empty"
        elif self._longest is not None and max(len(source), len(target)) > self._longest:
            status = "too_long"
        tables = self._table, self._decoder.embed_tokens
        if any(max(ids) >= table.num_embeddings for ids, table in zip((source, target), tables, strict=True)):
            raise ModelError(f"{self.name}: its tokenizer gives ids beyond its embeddings: they do not belong together")
        return Encoded(
            pair=pair,
            source_words=pair.source,
            target_words=pair.target,
            source=source,
            target=target,
            prefix=(self.tokens.start, *target[:-1]),
            source_word_of=source_word_of,
            target_word_of=target_word_of,
            unknown=source.count(self.tokens.source.unknown) + target.count(self.tokens.target.unknown),
            status=status,
        )

    def embed(self, batch: Batch) -> Tensor:
        embeddings: Tensor = self._encoder_scale * self._table(batch.source)
        return embeddings

    def encode(self, batch: Batch, embeddings: Tensor) -> Tensor:
        # `inputs_embeds` means something else in each family (and FSMT guesses positions from it), so the encoder gets
        # the ids and its table answers with the embeddings.
        with _answering(self._table, embeddings / self._encoder_scale):
            return self._encode(batch)

    def _encode(self, batch: Batch) -> Tensor:
        states: Tensor = self._encoder(batch.source, batch.source_mask.long()).last_hidden_state
        return states

    def decode(self, batch: Batch, states: Tensor, rows: int | None = None) -> Tensor:
        features: Tensor = self._decoder(
            input_ids=batch.prefix[:, :rows],
            encoder_hidden_states=states,
            encoder_attention_mask=batch.source_mask.long(),
            use_cache=False,
        ).last_hidden_state
        return features

    def prefix_vocabulary(self) -> PrefixVocabulary:
        table: Any = self._decoder.embed_tokens
        return PrefixVocabulary(table, table.num_embeddings, self.tokens.target.unknown)

    def output_layer(self, batch: Batch, features: Tensor) -> Tensor:
        scores: Tensor = self.module.lm_head(features) + getattr(self.module, "final_logits_bias", 0)
        return scores

    @torch.no_grad()
    def cross_attention(self, batch: Batch, layers: Sequence[int]) -> Tensor:
        self.check_layers(layers)
        states = self.encode(batch, self.embed(batch))
        found: list[Tensor] = []

        def keep(module: nn.Module, arguments: Any, options: Any, result: Any) -> None:
            found.append(self.read_attention(module, arguments, options, result)[0])

        modules = [sublayer.attention for sublayer in self.sublayers().cross]
        handles = [module.register_forward_hook(keep, with_kwargs=True) for module in modules]
        try:
            with stopped_after(modules[max(layers)]):
                self.decode(batch, states)
        finally:
            for handle in handles:
                handle.remove()
        return torch.stack([found[layer] for layer in layers])

    def baseline(self, kind: str) -> Tensor:
        table = self._table.weight
        rows: dict[str, Callable[[], Tensor]] = {
            "zero": lambda: torch.zeros_like(table[0]),
            "unk": lambda: table[self.tokens.source.unknown],
            "pad": lambda: table[self.pad],
            "mean": lambda: table.mean(0),
        }
        if kind not in rows:
            raise unknown_name("baseline", kind, BASELINES)
        scale: float = getattr(self._table, "embed_scale", self._encoder_scale)
        return scale * rows[kind]()

    @torch.no_grad()
    def translate(self, sources: Sequence[Sequence[str]], beam: int = 5) -> list[tuple[str, ...]]:
        """Translate sentences, given as words, by transformers' beam search; words of the result end at spaces.

        Words of an unspaced target are its pieces.
        """
        before, eos = self.tokens.target.before, self.tokens.target.after[0]
        translations: list[tuple[str, ...]] = []
        for first in range(0, len(sources), TRANSLATED_TOGETHER):
            ids = [self.tokens.source.encode(words)[0] for words in sources[first : first + TRANSLATED_TOGETHER]]
            found = self.module.generate(
                input_ids=self._pad(ids, self.pad),
                attention_mask=self._pad([(1,) * len(row) for row in ids], 0),
                decoder_input_ids=torch.tensor([[self.tokens.start, *before]] * len(ids), device=self.device),
                decoder_start_token_id=self.tokens.start,
                forced_bos_token_id=None,
                eos_token_id=eos,
                num_beams=beam,
                do_sample=False,
                max_length=self._longest or 2 * max(map(len, ids)) + 50,
                **self._searching,
            )
            texts = self.tokenizer.batch_decode(found[:, 1 + len(before) :], skip_special_tokens=True)
            translations += map(self.tokens.target.words, texts)
        return translations

    # What methods need from inside (`align.models.inside.OpenModel`)

    def sublayers(self) -> Sublayers:
        # LayerNorm stands behind the sum in Marian and FSMT, before the sublayer in the others.
        behind = self.module.config.model_type in ("marian", "fsmt")

        def sublayer(layer: Any, name: str) -> Sublayer:
            attention, norm = getattr(layer, name), getattr(layer, f"{name}_layer_norm")
            return Sublayer(attention, norm, behind, attention.v_proj, attention.out_proj, attention.num_heads)

        return Sublayers(
            tuple(sublayer(layer, "self_attn") for layer in self._encoder.layers),
            tuple(sublayer(layer, "self_attn") for layer in self._decoder.layers),
            tuple(sublayer(layer, "encoder_attn") for layer in self._decoder.layers),
        )

    def read_attention(
        self, module: nn.Module, arguments: tuple[Any, ...], options: Mapping[str, Any], result: Any
    ) -> tuple[Tensor, Tensor, Tensor]:
        memory = options.get("key_value_states")
        if memory is None:  # self-attention
            memory = arguments[0] if arguments else options["hidden_states"]
        return self._weights(result), memory, result[0]

    def _weights(self, result: Any) -> Tensor:
        weights: Tensor | None = result[-1]
        if weights is None:
            raise ModelError(f'{self.name} gives no attention weights: load it with attn_implementation="eager"')
        return weights


class FsmtModel(HuggingFaceModel):
    """FSMT, fairseq's Transformer: its decoder ends with the output layer, which `decode` leaves out."""

    batch_first = False
    _searching: ClassVar[dict[str, bool]] = {"output_attentions": True}  # its attention gives weights on request only

    def _encode(self, batch: Batch) -> Tensor:
        states: Tensor = self._encoder(batch.source, batch.source_mask, output_attentions=True).last_hidden_state
        return states

    def decode(self, batch: Batch, states: Tensor, rows: int | None = None) -> Tensor:
        prefix = batch.prefix[:, :rows]
        causal = states.new_full((prefix.shape[1],) * 2, -torch.inf).triu(1)
        projection = self._decoder.output_projection
        self._decoder.output_projection = torch.nn.Identity()
        try:
            decoded = self._decoder(prefix, states, batch.source_mask, None, causal, output_attentions=True)
        finally:
            self._decoder.output_projection = projection
        features: Tensor = decoded.last_hidden_state
        return features

    def output_layer(self, batch: Batch, features: Tensor) -> Tensor:
        scores: Tensor = self._decoder.output_projection(features)
        return scores

    def read_attention(
        self, module: nn.Module, arguments: tuple[Any, ...], options: Mapping[str, Any], result: Any
    ) -> tuple[Tensor, Tensor, Tensor]:
        return self._weights(result), options["key"], result[0]


class T5Model(HuggingFaceModel):
    """T5, mT5 and MADLAD-400: blocks of sublayers, features that may be scaled before the output layer."""

    def output_layer(self, batch: Batch, features: Tensor) -> Tensor:
        if getattr(self.module.config, "scale_decoder_outputs", False):  # T5 1.0, which ties its embeddings
            features = features * self.module.model_dim**-0.5
        scores: Tensor = self.module.lm_head(features)
        return scores

    def sublayers(self) -> Sublayers:
        def sublayer(part: Any, name: str) -> Sublayer:
            attention = getattr(part, name)
            return Sublayer(attention, part.layer_norm, False, attention.v, attention.o, attention.n_heads)

        return Sublayers(
            tuple(sublayer(block.layer[0], "SelfAttention") for block in self._encoder.block),
            tuple(sublayer(block.layer[0], "SelfAttention") for block in self._decoder.block),
            tuple(sublayer(block.layer[1], "EncDecAttention") for block in self._decoder.block),
        )


@contextmanager
def _answering(module: nn.Module, answer: Tensor) -> Iterator[None]:
    """Let `module` answer any call with `answer`."""
    handle = module.register_forward_hook(lambda *_: answer)
    try:
        yield
    finally:
        handle.remove()
