"""Layer-wise relevance propagation: the logit of a target piece, handed back layer by layer to the source words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, cast

import torch

from align.methods.base import SIGNS, Evidence, Method, Passes, apply_sign
from align.methods.relevance_rules import ATTENTION_RULES, GATES, LINEAR_RULES, RelevanceRules
from align.methods.rows import gradient_rows
from align.models.inside import opened
from data.errors import UsageError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from torch import Tensor

    from align.models.base import Batch, Encoded, TranslationModel


@dataclass(frozen=True)
class Relevance(Evidence):
    """Relevance of source pieces for the logit of each target piece. `signed`: [B, T, S]. Fields as in `Lrp`."""

    linear: str
    epsilon: float
    alpha: float
    attention: str

    def rules(self, gates: dict[str, Tensor] | None = None) -> RelevanceRules:
        return RelevanceRules(self.linear, self.epsilon, self.alpha, self.attention, gates)

    def compute(self, model: TranslationModel, batch: Batch) -> dict[str, Tensor]:
        opened(model).sublayers()  # the rules are those of Transformers
        inputs = model.embed(batch)
        with self.rules():
            rows, _ = gradient_rows(_explaining_logits(model), batch, inputs, lambda g: (g * inputs).sum(-1))
        return {"signed": rows}

    def passes(self, pair: Encoded) -> Passes:
        return Passes(forward=1, backward=len(pair.target))


class _Logits:
    """A model whose logits stand where its log-probabilities were, as relevance starts from logits."""

    def __init__(self, model: TranslationModel) -> None:
        self._model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def token_log_probs(self, batch: Batch, features: Tensor, start: int = 0) -> Tensor:
        rows = slice(start, start + features.shape[1])
        logits = self._model.logits(batch, features).gather(-1, batch.target[:, rows, None])[..., 0]
        return logits.masked_fill(~batch.target_mask[:, rows], 0.0)


def _explaining_logits(model: TranslationModel) -> TranslationModel:
    return cast("TranslationModel", _Logits(model))


@dataclass(frozen=True)
class Lrp(Method):
    """Share of each source piece in the logit of a target piece, by AttnLRP's rules.

    `linear`: `epsilon`, with stabiliser `epsilon`; or `alpha-beta`, where the share `alpha` of relevance goes by
    positive contributions and the rest by negative ones (Voita et al. 2021 take 0.5). `attention`: `propagated`
    through the weights to queries and keys; or `held`, where only values take relevance (CP-LRP, Ali et al. 2022).
    """

    linear: str = "epsilon"
    epsilon: float = 0.0
    alpha: float = 0.5
    attention: str = "propagated"
    sign: str = "positive"

    name: ClassVar[str] = "lrp"
    family: ClassVar[str] = "propagation"
    measures: ClassVar[str] = "saliency"
    summary: ClassVar[str] = "layer-wise relevance propagation of the logit (AttnLRP)"
    citation: ClassVar[str] = "Achtibat et al. 2024 (ICML); alpha-beta: Voita et al. 2021 (ACL)"
    compared: ClassVar[Mapping[str, Callable[[TranslationModel], Sequence[object]]]] = {
        "attention": lambda model: ATTENTION_RULES,
    }

    def __post_init__(self) -> None:
        choices = {"linear": LINEAR_RULES, "attention": ATTENTION_RULES, "sign": SIGNS}
        for name, known in choices.items():
            if getattr(self, name) not in known:
                raise unknown_name(name, str(getattr(self, name)), known)
        if not (0 <= self.epsilon < float("inf") and 0 <= self.alpha <= 1):
            raise UsageError(f"epsilon must be at least 0 and alpha in 0..1, not {self.epsilon} and {self.alpha}")

    def check(self, model: TranslationModel) -> None:
        opened(model).sublayers()

    @property
    def evidence(self) -> Relevance:
        return Relevance(self.linear, self.epsilon, self.alpha, self.attention)

    def read(self, evidence: Mapping[str, Tensor], batch: Batch) -> Tensor:
        return apply_sign(evidence["signed"], self.sign)


@dataclass(frozen=True)
class Budget:
    """Where the logit of each target piece of one pair went, [T] each.

    `source` words; other `inputs` (target prefix and positions of both sides); `biases`; the constant part of the
    `softmax`. Conservation: they sum to `logit`, but for what an epsilon swallows.
    """

    logit: Tensor
    source: Tensor
    inputs: Tensor
    biases: Tensor
    softmax: Tensor

    @property
    def error(self) -> Tensor:
        """What conservation lacks. [T]"""
        return (self.logit - self.source - self.inputs - self.biases - self.softmax).abs()


def budget(model: TranslationModel, pair: Encoded, method: Lrp) -> Budget:
    """Follow all relevance of the logits of one pair, row by row."""
    batch = model.batch([pair])
    source = model.embed(batch).requires_grad_()
    gates = {name: source.new_ones(()).requires_grad_() for name in GATES}
    with torch.enable_grad(), method.evidence.rules(gates):
        features = model.decode(batch, model.encode(batch, source))
        logits = _explaining_logits(model).token_log_probs(batch, features)[0]
    leaves = [source, *gates.values()]
    rows = []
    for logit in logits:
        gradients = torch.autograd.grad(logit, leaves, retain_graph=True, materialize_grads=True)
        rows.append(torch.stack([(x * g).sum() for x, g in zip(leaves, gradients, strict=True)]).detach())
    return Budget(logits.detach(), *torch.stack(rows, dim=1))
