"""Faster matrix products must keep float32, and leave PyTorch's setting as it was."""

from __future__ import annotations

import pytest
import torch

from align.methods.products import exact_in_onednn, fast_products


def test_products_keep_float32() -> None:
    draw = torch.Generator().manual_seed(1)
    left, right = torch.randn(60, 300, generator=draw), torch.randn(300, 40, generator=draw)
    with fast_products():
        found = left @ right
    torch.testing.assert_close(found.double(), left.double() @ right.double(), atol=2e-4, rtol=1e-5)


@pytest.mark.parametrize("setting", ["ieee", "bf16"])
def test_the_setting_comes_back_also_after_an_error(setting: str) -> None:
    matmul = torch.backends.mkldnn.matmul
    before = matmul.fp32_precision
    matmul.fp32_precision = setting
    try:
        with pytest.raises(KeyError), fast_products():
            raise KeyError
        assert matmul.fp32_precision == setting
        exact_in_onednn.cache_clear()
        exact_in_onednn()
        assert matmul.fp32_precision == setting
    finally:
        matmul.fp32_precision = before


def test_a_processor_that_rounds_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where products lose digits, the setting is not touched."""

    def rounded(self: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        return torch.matmul(self.bfloat16(), other.bfloat16()).to(self.dtype)

    exact_in_onednn.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(torch.backends.mkldnn, "is_available", lambda: True)
        original = torch.Tensor.__matmul__
        patch.setattr(
            torch.Tensor, "__matmul__", lambda a, b: rounded(a, b) if a.dtype == torch.float32 else original(a, b)
        )
        assert not exact_in_onednn()
        before = torch.backends.mkldnn.matmul.fp32_precision
        with fast_products():
            assert torch.backends.mkldnn.matmul.fp32_precision == before
    exact_in_onednn.cache_clear()
