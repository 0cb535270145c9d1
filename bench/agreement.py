"""What lower precision and fewer samples change in the links."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from align.extract import Extraction
from align.methods import make_method
from align.models.load import LoadOptions, load_model
from align.pipeline import align_pairs
from bench.measure import measure, print_ratios

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from align.models.base import TranslationModel
    from data.bitext import Pair
    from data.links import Links

WORDS = Extraction(pooling="word")


def precision(file: Path, pairs: Sequence[Pair], rounds: int) -> None:
    """Time and links of bfloat16 beside float32."""
    models = {name: load_model(file, replace(LoadOptions(), dtype=name)) for name in ("float32", "bfloat16")}
    for spec in ("attention:layer=-1", "gradient-x-input:sign=positive"):
        times = measure(
            {f"{spec} {name}": partial(_links, model, pairs, spec) for name, model in models.items()},
            rounds,
        )
        print_ratios(times, len(pairs), "pair", f"{spec} float32")
        print(f"  link F1 of the two: {_f1(*(_links(model, pairs, spec) for model in models.values())):.3f}")


def samples(model: TranslationModel, pairs: Sequence[Pair]) -> None:
    """Links of SmoothGrad from one seed and from another, by the number of samples."""
    for count in (4, 8, 16, 30):
        first, second = (_links(model, pairs, f"smoothgrad:samples={count}:seed={seed}") for seed in (0, 1))
        print(f"  link F1 of two seeds with {count:2d} samples each: {_f1(first, second):.3f}")


def _links(model: TranslationModel, pairs: Sequence[Pair], spec: str) -> list[Links]:
    return [result.links for result in align_pairs(model, pairs, make_method(spec), WORDS)]


def _f1(first: Sequence[Links], second: Sequence[Links]) -> float:
    both = sum(len(a & b) for a, b in zip(first, second, strict=True))
    return 2 * both / sum(len(a) + len(b) for a, b in zip(first, second, strict=True))
