"""Matrix products in float32 by the faster of PyTorch's two libraries.

PyTorch multiplies float32 matrices on CPUs with MKL, which leaves more than half of the speed of processors that are
not Intel's unused. Allowed to round to bfloat16, it takes oneDNN instead, and oneDNN rounds only where the processor
has units for such products. Where it does not, the answer is as exact as MKL's and comes sooner.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

SETTING = "bf16"
# oneDNN keeps a program for every shape; batches differ in theirs, so more than those of one batch are memory lost.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")
LARGEST_ERROR = 1e-5  # relative to the norms of the factors: float32 stays below 1e-6, bfloat16 is above 1e-4
_MKLDNN: Any = torch.backends.mkldnn  # its settings are made when the module is, which mypy does not see


@contextmanager
def fast_products() -> Iterator[None]:
    """Let oneDNN multiply float32 matrices inside, if it loses no digits on this processor."""
    matmul = _MKLDNN.matmul
    before = matmul.fp32_precision
    if before != SETTING and exact_in_onednn():
        matmul.fp32_precision = SETTING
    try:
        yield
    finally:
        matmul.fp32_precision = before


@cache
def exact_in_onednn() -> bool:
    """Whether oneDNN, allowed to round, keeps float32 on this processor; tried on one product."""
    if not _MKLDNN.is_available():
        return False
    draw = torch.Generator().manual_seed(0)
    left, right = (torch.randn(128, 256, generator=draw) for _ in range(2))
    matmul = _MKLDNN.matmul
    before = matmul.fp32_precision
    matmul.fp32_precision = SETTING
    try:
        found = left @ right.T
    finally:
        matmul.fp32_precision = before
    exact = left.double() @ right.double().T
    size = left.double().norm(dim=1)[:, None] * right.double().norm(dim=1)
    return bool(((found - exact).abs() / size).max() < LARGEST_ERROR)
