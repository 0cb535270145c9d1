"""The registry of methods, and their names on the command line: `name:option=value:option=value`."""

from __future__ import annotations

import re
from itertools import product
from typing import TYPE_CHECKING, Any

from align.methods.attention import Attention
from align.methods.contributions import Alti
from align.methods.gradcam import AttentionXGradient
from align.methods.gradient import GradientNorm, GradientXInput, IntegratedGradients, SmoothGrad
from align.methods.mean import Mean
from align.methods.norms import VectorNorm
from align.methods.occlusion import Occlusion, Omission, Resampling
from align.methods.propagation import Lrp
from align.methods.relevancy import Relevancy
from align.methods.rollout import AttentionFlow, AttentionRollout
from align.methods.sampled import ExpectedGradients, VarGrad
from align.specs import alternatives, is_auto, parse_options, split_list
from data.errors import ModelError, UsageError, unknown_name

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
    "mean": Mean,
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
    name = spec.partition(":")[0]
    if is_auto(spec):
        raise UsageError(f"{spec} leaves something to choose: `nmt-align choose` names a method for this place")
    if name not in METHODS:
        raise unknown_name("method", name, METHODS)
    return METHODS[name], parse_options(METHODS[name], spec)


def make_method(spec: str) -> Method:
    """One method with its options, defaults where none are given; or `mean(SPEC,2*SPEC,...)` of several.

    In a mean an option may list values, `layer=0|1`: the weight is shared by what this stands for.

    Raises:
        UsageError: as `parse_method`, or a mean that is not well formed.
    """
    listed = re.fullmatch(r"mean\((.*)\)", spec.strip())
    if listed is None:
        method, options = parse_method(spec)
        return method(**options)
    parts: list[tuple[float, Method]] = []
    for item in split_list(listed[1]):
        weighted = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\*(.*)", item)
        weight, part = weighted.groups() if weighted else ("1", item)
        specs = [part] if "(" in part else alternatives(part)
        parts += [(float(weight) / len(specs), make_method(one)) for one in specs]
    weights, methods = zip(*parts, strict=True)
    return Mean(methods, weights)


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
    if spec.startswith("mean("):
        return [make_method(spec)]
    method, options = parse_method(spec)
    open_options = {key: values(model) for key, values in method.compared.items() if key not in options}
    return [
        method(**options, **dict(zip(open_options, chosen, strict=True))) for chosen in product(*open_options.values())
    ]
