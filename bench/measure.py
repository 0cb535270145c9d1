"""Medians of alternating rounds, products counted, and text to measure on."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def measure(contenders: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median seconds of each contender after a warm-up; rounds alternate, so that noise hits all alike."""
    for run in contenders.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            start = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def print_ratios(times: Mapping[str, float], units: int, unit: str, base: str) -> None:
    """A line for each contender: time for a unit, and how many times faster than `base`."""
    for name, seconds in times.items():
        print(f"  {name:46s} {1000 * seconds / units:10.3f} ms a {unit:14s} {times[base] / seconds:8.2f} x {base}")


class Products(TorchDispatchMode):
    """Counts the operations of matrix products that run inside: a multiplication and an addition are two."""

    def __init__(self) -> None:
        super().__init__()
        self.operations = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func._schema.name
        if name in ("aten::mm", "aten::bmm", "aten::addmm", "aten::baddbmm"):
            left, right = args[-2:]
            self.operations += 2 * left.numel() * right.shape[-1]
        return func(*args, **(kwargs or {}))


def product_peak(rounds: int = 20, size: int = 1024) -> float:
    """Operations a second of one large product: the best of several."""
    left, right = torch.randn(2, size, size)
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        left @ right
        best = min(best, time.perf_counter() - start)
    return 2 * size**3 / best
