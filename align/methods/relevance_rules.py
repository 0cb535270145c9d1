"""Layer-wise relevance propagation as modified gradients: inside `RelevanceRules`, x * dy/dx is the relevance of x.

AttnLRP's rules (Achtibat et al. 2024, arXiv 2402.05602) in the gradient form of Arras et al. 2025 (arXiv 2502.15886):
a linear layer keeps its gradient, LayerNorm holds its standard deviation, an element-wise non-linearity f(z) has the
slope f(z) / z, a product gives one half to each factor, and the softmax keeps its gradient. Each rule computes what
the function computes from summands of which some are detached, so values do not change and autograd does the rest.
"""

from __future__ import annotations

import sys
from inspect import signature
from typing import TYPE_CHECKING, Any, Self

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from data.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

LINEAR_RULES = ("epsilon", "alpha-beta")
ATTENTION_RULES = ("propagated", "held")
GATES = ("inputs", "biases", "softmax")


class RelevanceRules(TorchFunctionMode):
    """While active, functions of torch propagate relevance instead of gradients; afterwards nothing is left of it.

    Args:
        linear: `epsilon` (z-rule with a stabiliser) or `alpha-beta`, after Voita et al. 2021 (ACL): the share `alpha`
            goes by positive and the rest by negative contributions, and biases of linear layers take none.
        attention: `propagated` through the weights to queries and keys (AttnLRP), or weights `held` constant
            (CP-LRP, Ali et al. 2022).
        gates: scalars of value 1, by the names `GATES`, whose gradients will be the relevance that other inputs
            (target prefix, positions, other constants), biases, and the constant part of the softmax take.
    """

    def __init__(
        self,
        linear: str = "epsilon",
        epsilon: float = 0.0,
        alpha: float = 0.5,
        attention: str = "propagated",
        gates: dict[str, Tensor] | None = None,
    ) -> None:
        super().__init__()
        self.epsilon, self.alpha, self.held, self.gates = epsilon, alpha, attention == "held", gates
        self.rules: dict[Any, Callable[..., Any]] = {
            F.linear: self.epsilon_linear if linear == "epsilon" else self.alpha_beta_linear,
            F.layer_norm: self.layer_norm,
            F.multi_head_attention_forward: self.multi_head_attention,
            F.scaled_dot_product_attention: self.attention,
            torch.rsqrt: _held_rsqrt,
        }
        self.rules |= dict.fromkeys((F.softmax, torch.softmax, torch.Tensor.softmax), self.softmax)
        self.rules |= dict.fromkeys((torch.matmul, torch.bmm, torch.Tensor.matmul, torch.Tensor.bmm), self.matmul)
        self.rules |= dict.fromkeys((torch.mul, torch.Tensor.mul), _product)
        self.rules |= {f: _non_linear(f) for f in (F.gelu, F.silu, torch.tanh, F.tanh)}
        if gates:
            self.rules[F.embedding] = lambda *args, **kwargs: self.gated("inputs", F.embedding(*args, **kwargs))
            # `x += y` calls add_ and goes on with what it gives.
            self.rules |= dict.fromkeys((torch.add, torch.Tensor.add, torch.Tensor.add_), self.add)

    def __enter__(self) -> Self:
        self._restore = _gelu_as_one_function()
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        self._restore()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        # Rules and functions run outside this mode.
        return self.rules.get(func, func)(*args, **(kwargs or {}))

    def gated(self, name: str, tensor: Tensor) -> Tensor:
        return tensor * self.gates[name] if self.gates else tensor

    def add(self, left: Any, right: Any) -> Any:
        """A constant added to what varies, such as positions, is an input as well."""
        if not (isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor)):
            return left + right
        if left.requires_grad == right.requires_grad:
            return left + right
        varying, constant = (left, right) if left.requires_grad else (right, left)
        finite = torch.where(constant.isfinite(), constant, 0)  # masks are not
        return varying + self.gated("inputs", finite) + (constant - finite)

    def epsilon_linear(self, inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        # One flat product: PyTorch may multiply batches one by one, which copies the weights for many rows at once.
        flat = inputs.reshape(-1, inputs.shape[-1])
        out = F.linear(flat, weight, None if self.gates else bias).reshape(*inputs.shape[:-1], -1)
        if bias is not None and self.gates:
            out = out + self.gated("biases", bias)
        if not self.epsilon:
            return out
        damped = out * (out / (out + torch.where(out < 0, -self.epsilon, self.epsilon))).detach()
        return damped + (out - damped).detach()

    def alpha_beta_linear(self, inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """R_i = sum_j R_j (alpha z+_ij / sum_i z+_ij + (1 - alpha) z-_ij / sum_i z-_ij) with z_ij = w_ji x_i.

        Where all contributions have one sign they take everything.
        """
        up, down, more, less = inputs.clamp(min=0), inputs.clamp(max=0), weight.clamp(min=0), weight.clamp(max=0)
        positive = F.linear(up, more) + F.linear(down, less)
        negative = F.linear(up, less) + F.linear(down, more)
        out = F.linear(inputs, weight, bias).detach()
        alpha = torch.full_like(out, self.alpha).masked_fill(negative == 0, 1).masked_fill(positive == 0, 0)
        shares = zip((alpha, 1 - alpha), (positive, negative), strict=True)
        parts = [z * torch.where(z == 0, 0, share * out / z).detach() for share, z in shares]
        spread = parts[0] + parts[1]
        return spread + (out - spread).detach()

    def layer_norm(
        self,
        inputs: Tensor,
        normalized_shape: Any,
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        eps: float = 1e-5,
    ) -> Tensor:
        axes = tuple(range(-len(normalized_shape), 0))
        deviation = (inputs.var(axes, unbiased=False, keepdim=True) + eps).sqrt().detach()
        out = (inputs - inputs.mean(axes, keepdim=True)) / deviation
        if weight is not None:
            out = out * weight
        return out if bias is None else out + self.gated("biases", bias)

    def softmax(self, scores: Tensor, dim: int, *args: Any, dtype: torch.dtype | None = None, **kwargs: Any) -> Tensor:
        weights = scores.softmax(dim, dtype=dtype)
        if self.held:
            return weights.detach()
        if self.gates:
            finite = scores.masked_fill(weights == 0, 0)
            linear = weights * (finite - (weights * finite).sum(dim, keepdim=True))
            constant = (weights - linear).detach()
            weights = weights + (self.gated("softmax", constant) - constant)
        return weights

    def matmul(self, left: Tensor, right: Tensor) -> Tensor:
        """A product of two activations, whether or not both depend on the source; of weights, a linear map."""
        if self.held or isinstance(left, torch.nn.Parameter) or isinstance(right, torch.nn.Parameter):
            return left @ right
        return _half(left) @ _half(right)

    def attention(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
    ) -> Tensor:
        """Attention in elementary steps. `attn_mask` is added; or, if boolean, true where a key may be seen."""
        scores = self.matmul(query * (query.shape[-1] ** -0.5 if scale is None else scale), key.transpose(-1, -2))
        if is_causal:
            attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        if attn_mask is not None and attn_mask.dtype == torch.bool:
            scores = scores.masked_fill(~attn_mask, -torch.inf)
        elif attn_mask is not None:
            scores = scores + attn_mask
        return self.matmul(self.softmax(scores, -1), value)

    def multi_head_attention(self, *args: Any, **kwargs: Any) -> tuple[Tensor, None]:
        """torch's attention without its weights, which no caller here reads."""
        call = _MULTI_HEAD.bind(*args, **kwargs)
        call.apply_defaults()
        a = call.arguments
        if a["bias_k"] is not None or a["add_zero_attn"]:
            raise ModelError("relevance cannot be followed through attention with key biases or zero keys")
        linear = self.rules[F.linear]
        separate = a["use_separate_proj_weight"]
        weights = [a[f"{name}_proj_weight"] for name in "qkv"] if separate else a["in_proj_weight"].chunk(3)
        biases = [None] * 3 if a["in_proj_bias"] is None else a["in_proj_bias"].chunk(3)
        query, key, value = (
            linear(a[name], weight, bias).unflatten(-1, (a["num_heads"], -1)).permute(1, 2, 0, 3)  # [B, H, S, D / H]
            for name, weight, bias in zip(("query", "key", "value"), weights, biases, strict=True)
        )
        mask = a["attn_mask"]
        if mask is not None and mask.dtype == torch.bool:
            mask = torch.zeros_like(mask, dtype=query.dtype).masked_fill(mask, -torch.inf)
        if a["key_padding_mask"] is not None:
            padding = torch.zeros_like(a["key_padding_mask"], dtype=query.dtype)
            padding = padding.masked_fill(a["key_padding_mask"].bool(), -torch.inf)[:, None, None]
            mask = padding if mask is None else mask + padding
        attended = self.attention(query, key, value, mask)
        return linear(attended.permute(2, 0, 1, 3).flatten(2), a["out_proj_weight"], a["out_proj_bias"]), None


def _gelu_as_one_function() -> Callable[[], None]:
    """Let transformers' `gelu_new` be one function, where it is written out in products and powers that each would
    take a rule of their own. Returns what undoes it.
    """
    activation = getattr(sys.modules.get("transformers.activations"), "NewGELUActivation", None)
    if activation is None:
        return lambda: None
    written_out = activation.forward
    activation.forward = lambda self, inputs: F.gelu(inputs, approximate="tanh")
    return lambda: setattr(activation, "forward", written_out)


_MULTI_HEAD = signature(F.multi_head_attention_forward)


def _half(tensor: Tensor) -> Tensor:
    """The tensor with half its gradient."""
    return tensor / 2 + (tensor / 2).detach()


def _product(left: Any, right: Any) -> Any:
    """Element by element; half the relevance to each factor where both vary."""
    if all(isinstance(factor, torch.Tensor) and factor.requires_grad for factor in (left, right)):
        return _half(left) * _half(right)
    return left * right


def _held_rsqrt(tensor: Tensor) -> Tensor:
    """The scale of RMSNorm, held constant."""
    return tensor.rsqrt().detach()


def _non_linear(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """f(z) as z times the constant f(z) / z; every f here has f(0) = 0."""

    def rule(inputs: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        out = function(inputs, *args, **kwargs).detach()
        spread = inputs * torch.where(inputs == 0, 0, out / inputs).detach()
        return spread + (out - spread).detach()

    return rule
