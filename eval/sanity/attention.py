"""What a model loses when its cross-attention is replaced: which layers and heads matter at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from align.models.base import plan_batches
from align.models.replacement import replaced_attention
from eval.bootstrap import paired_means
from eval.quality import METRICS, quality_lost, quality_of
from eval.sanity.patterns import Patterns, positional_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from align.models.base import Batch, Encoded, TranslationModel
    from data.bitext import Pair
    from eval.bootstrap import MeanInterval
    from eval.quality import Quality
    from eval.sanity.patterns import Variant

QUALITY_KEYS = tuple(f"{name}_{part}" for name in METRICS for part in ("loss", "low", "high"))
TOGETHER = 16  # sentences of one search; no model takes fewer, so that steps and target positions agree


@dataclass(frozen=True)
class Outcome:
    """A sentence under a variant: `loss` of log p in nats over its T `pieces`, and how many predictions were `kept`."""

    loss: float
    kept: int
    pieces: int


@torch.no_grad()
def replacement_losses(
    model: TranslationModel,
    pairs: Sequence[Encoded],
    chosen: Sequence[Variant],
    seed: int,
    batch_pieces: int,
    advance: Callable[[float], object] = lambda passes: None,
) -> tuple[dict[Variant, list[Outcome]], Patterns]:
    """Teacher-forced losses of each variant for each sentence, in the order of `pairs`, and the patterns used.

    All rows are replaced in one pass, so that a prediction also feels the replacement at the positions before it.

    Args:
        pairs: with status `ok`.
        advance: called with the number of passes done, of len(pairs) x (len(chosen) + 1).
    """
    batches = [model.batch(group) for group in plan_batches(pairs, batch_pieces)]
    mean = positional_mean(model, batches) if any(v.kind == "corpus-mean" for v in chosen) else None
    patterns = Patterns(seed, mean)
    outcomes: dict[Variant, dict[int, Outcome]] = {variant: {} for variant in chosen}
    for batch in batches:
        states = model.encode(batch, model.embed(batch))
        before = _predictions(model, batch, states)
        advance(len(batch))
        for variant in chosen:
            with replaced_attention(model, patterns.replacements(variant, model, batch)):
                after = _predictions(model, batch, states)
            outcomes[variant].update(_outcomes(batch, before, after))
            advance(len(batch))
    return {variant: [found[pair.pair.id] for pair in pairs] for variant, found in outcomes.items()}, patterns


def _predictions(model: TranslationModel, batch: Batch, states: Tensor) -> tuple[Tensor, Tensor]:
    """log p of the target pieces and the best pieces, [B, T] each."""
    scores = model.logits(batch, model.decode(batch, states)).log_softmax(-1)
    return scores.gather(-1, batch.target[..., None])[..., 0], scores.argmax(-1)


def _outcomes(batch: Batch, before: tuple[Tensor, Tensor], after: tuple[Tensor, Tensor]) -> dict[int, Outcome]:
    mask = batch.target_mask
    loss = ((before[0] - after[0]) * mask).sum(1).tolist()
    kept = ((before[1] == after[1]) & mask).sum(1).tolist()
    sizes = mask.sum(1).tolist()
    return {pair.pair.id: Outcome(*values) for pair, *values in zip(batch.pairs, loss, kept, sizes, strict=True)}


def replaced_quality(model: TranslationModel, pairs: Sequence[Pair], variant: Variant, patterns: Patterns) -> Quality:
    """BLEU and chrF of free translation under a variant."""
    translations: list[tuple[str, ...]] = []
    for first in range(0, len(pairs), TOGETHER):
        with replaced_attention(model, patterns.replacements(variant, model, None)):
            translations += model.translate([pair.source for pair in pairs[first : first + TOGETHER]])
    return quality_of(translations, [pair.target for pair in pairs])


def attention_rows(
    model: TranslationModel,
    pairs: Sequence[Encoded],
    losses: dict[Variant, list[Outcome]],
    patterns: Patterns,
    least: float,
    resamples: int,
    seed: int,
    clean: Quality | None = None,
    advance: Callable[[float], object] = lambda sentences: None,
) -> list[dict[str, object]]:
    """A row for each variant, the greatest loss first.

    With `clean`, the quality of the model's own translations, the pairs are also translated under each variant.
    `loss` with its interval is in nats a target piece; `matters` is true where its lower end lies above `least`.
    `bleu_loss` and `chrf_loss` are points lost in free translation, with intervals; None where not asked for or not
    possible.
    """
    text = [pair.pair for pair in pairs]
    intervals = paired_means([[(o.loss, o.pieces) for o in losses[v]] for v in losses], resamples, seed)
    rows: list[dict[str, object]] = []
    for (variant, found), interval in zip(losses.items(), intervals, strict=True):
        row = _row(variant, found, interval, least) | dict.fromkeys(QUALITY_KEYS)
        if clean is not None and patterns.possible(variant.kind, free=True):
            quality = replaced_quality(model, text, variant, patterns)
            for name, lost in quality_lost(clean, quality, resamples, seed).items():
                row |= {f"{name}_loss": lost.value, f"{name}_low": lost.low, f"{name}_high": lost.high}
            advance(len(text))
        rows.append(row)
    return sorted(rows, key=lambda row: (row["head"] is not None, row["layer"] is not None, -_number(row["loss"])))


def _row(variant: Variant, found: Sequence[Outcome], interval: MeanInterval, least: float) -> dict[str, object]:
    low = interval.value if interval.low is None else interval.low  # no interval without resamples
    return {
        "attention": variant.kind,
        "layer": variant.layer,
        "head": variant.head,
        "loss": interval.value,
        "loss_low": interval.low,
        "loss_high": interval.high,
        "kept": sum(o.kept for o in found) / max(1, sum(o.pieces for o in found)),
        "matters": low is not None and low > least,
    }


def _number(value: object) -> float:
    return value if isinstance(value, float) else 0.0


def conclusions(rows: Sequence[dict[str, object]], least: float) -> list[str]:
    """Which layers and heads matter, in words, kind by kind where several were tried."""
    lines = [f"A part matters where replacing it costs more than {least:g} nats a target piece, by the lower end."]
    for unit, places in (
        ("all layers together", [r for r in rows if r["layer"] is None]),
        ("layers", [r for r in rows if r["layer"] is not None and r["head"] is None]),
        ("heads", [r for r in rows if r["head"] is not None]),
    ):
        for kind in dict.fromkeys(str(row["attention"]) for row in places):
            of_kind = [row for row in places if row["attention"] == kind]
            found = sorted(_place(row) for row in of_kind if row["matters"])
            if unit == "all layers together":
                lines.append(f"{unit}, {kind}: {'matter' if found else 'do not matter'}")
            else:
                named = f": {', '.join(found)}" if found else ""
                lines.append(f"{unit}, {kind}: {len(found)} of {len(of_kind)} matter{named}")
    return lines


def _place(row: dict[str, object]) -> str:
    return f"{row['layer']}" if row["head"] is None else f"{row['layer']}.{row['head']}"
