"""Faster matrix products must keep float32, and leave PyTorch's setting as it was."""

from __future__ import annotations

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from align.methods import make_method
from align.methods.products import exact_in_onednn, fast_products
from tests.tiny import tiny_model, tiny_pairs


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


class Products(TorchDispatchMode):
    """The names of the matrix products that run inside, and the shapes of their second factors."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.factors: list[torch.Size] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func._schema.name in ("aten::mm", "aten::bmm", "aten::addmm", "aten::baddbmm"):
            self.names.append(func._schema.name)
            self.factors.append(args[-1].shape)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("rows", [slice(None), slice(1, 2), slice(1, 3)])
def test_the_vocabulary_is_scored_by_one_product(rows: slice) -> None:
    """Not by one for each sentence, for which PyTorch copies the weights; also where the layout invites it."""
    model = tiny_model()
    batch = model.batch([model.encode_pair(pair) for pair in tiny_pairs(4)])
    features = model.decode(batch, model.encode(batch, model.embed(batch)))
    for layout in (features, features.contiguous(), features.transpose(0, 1).contiguous().transpose(0, 1)):
        with Products() as products:
            scores = model.logits(batch, layout[:, rows])
        assert products.names == ["aten::mm"]
        torch.testing.assert_close(scores, model.logits(batch, features)[:, rows])


@pytest.mark.parametrize("spec", ["attention", "gradient-x-input", "lrp:attention=held", "occlusion"])
def test_no_linear_layer_is_a_product_for_each_sentence(spec: str) -> None:
    """The factors of products by sentence are attention's, which are as wide as a head and not as the model."""
    width = 32  # more than there are pieces
    sizes = {f"{side}_{what}_dim": width for side in ("encoder", "decoder") for what in ("embed", "ffn_embed")}
    model = tiny_model(**sizes)
    batch = model.batch([model.encode_pair(pair) for pair in tiny_pairs(6)])
    with Products() as products:
        make_method(spec).scores(model, batch)
    assert sum(len(shape) == 2 for shape in products.factors) > 10
    assert [shape for shape in products.factors if len(shape) == 3 and width in shape] == []
