"""The registry of methods, and their names on the command line: `name:option=value:option=value`."""

from __future__ import annotations

import re
from dataclasses import fields
from itertools import product
from typing import TYPE_CHECKING, Any

from align.methods.attention import Attention
from align.methods.contributions import Alti
from align.methods.gradcam import AttentionXGradient
from align.methods.gradient import GradientNorm, GradientXInput, IntegratedGradients, SmoothGrad
from align.methods.norms import VectorNorm
from align.methods.occlusion import Occlusion, Omission, Resampling
from align.methods.propagation import Lrp
from align.methods.relevancy import Relevancy
from align.methods.rollout import AttentionFlow, AttentionRollout
from align.methods.sampled import ExpectedGradients, VarGrad
from data.errors import ModelError, UsageError, printable, unknown_name

if TYPE_CHECKING:
    from align.methods.base import Method
    from align.models.base import TranslationModel

METHODS: dict[str, type[Method]] = {
    "alti": Alti,
    "attention": Attention,
    "attention-x-gradient": AttentionXGradient,
    "expected-gradients": ExpectedGradients,
    "flow": AttentionFlow,
    "gradient-norm": GradientNorm,
    "gradient-x-input": GradientXInput,
    "integrated-gradients": IntegratedGradients,
    "lrp": Lrp,
    "occlusion": Occlusion,
    "omission": Omission,
    "relevancy": Relevancy,
    "resampling": Resampling,
    "rollout": AttentionRollout,
    "smoothgrad": SmoothGrad,
    "vargrad": VarGrad,
    "vector-norm": VectorNorm,
}


def parse_method(spec: str) -> tuple[type[Method], dict[str, Any]]:
    """A method and the options named in `spec`, such as `smoothgrad:samples=10`.

    Raises:
        UsageError: unknown method or option, or a value of the wrong kind.
    """
    name, *pairs = spec.split(":")
    if name not in METHODS:
        raise unknown_name("method", name, METHODS)
    method = METHODS[name]
    defaults = {field.name: field.default for field in fields(method)}
    options: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"expected option=value in method {printable(spec)}, found {printable(pair)}")
        if key not in defaults:
            raise unknown_name(f"option of {name}", key, defaults)
        options[key] = _value(key, value, defaults[key])
    return method, options


def _value(key: str, text: str, default: object) -> int | float | str:
    if isinstance(default, str):
        # `heads` takes a word or a number; other words stay words.
        return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else text
    if isinstance(default, int) and re.fullmatch(r"-?[0-9]{1,9}", text):
        return int(text)
    if isinstance(default, float) and re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text):
        return float(text)
    kind = "a whole number" if isinstance(default, int) else "a number"
    raise UsageError(f"option {key} takes {kind}, not {printable(text)}")


def make_method(spec: str) -> Method:
    """One method with its options, defaults where none are given."""
    method, options = parse_method(spec)
    return method(**options)


def usable_methods(model: TranslationModel) -> dict[str, str | None]:
    """The methods that `all` stands for, and for those that the model lacks something for, why."""
    found: dict[str, str | None] = {}
    for name, method in METHODS.items():
        if method.in_all:
            try:
                method().check(model)
                found[name] = None
            except ModelError as error:
                found[name] = str(error)
    return found


def compared_methods(spec: str, model: TranslationModel) -> list[Method]:
    """The variants of a method that a comparison goes through: every layer, position, norm ... not given in `spec`."""
    method, options = parse_method(spec)
    open_options = {key: values(model) for key, values in method.compared.items() if key not in options}
    return [
        method(**options, **dict(zip(open_options, chosen, strict=True))) for chosen in product(*open_options.values())
    ]
