"""Run the evaluation by erasure under every corruption, and put it together as tables that open with their purpose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from align.extract import Extraction
from align.many import run_methods
from align.methods import compared_methods
from align.methods.erasure import word_spans
from align.methods.occlusion import Occlusion, Omission, Resampling
from align.pipeline import BATCH_PIECES, encode_pairs
from align.signature import signature
from data.errors import DataError, ModelError
from eval.erasure import CORRUPTIONS, target_pieces
from eval.faithfulness import ORACLE, RANDOM, Plan, Sentence, measure_sentence
from eval.faithfulness_scores import method_rows, over_methods, plausibility, stability, warnings
from eval.naturalness import CLEAN, SIGNS, naturalness
from eval.purpose import opening

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from align.many import Run
    from align.methods.base import Method
    from align.methods.erasure import Corruption
    from align.models.base import Encoded, TranslationModel
    from data.bitext import Pair
    from data.links import GoldAlignment
    from eval.faithfulness_scores import Row
    from eval.ngrams import NGrams

ASKED = "does the model lose a target word without the source words that a method names, and keep it with these alone?"
READING = {
    "comp": "comprehensiveness: loss of log p of a target word without the top source words, mean over shares of "
    "words; high is faithful. It answers: are the words named needed?",
    "p, p_best": "of the hypotheses that comp is that of random orders, and that of the best method of any kind",
    "suff": "sufficiency: loss of log p with the top words alone; low is faithful. It answers: are they enough?",
    "deletion, insertion": "mean log p along the curve as words go, or come, in the method's order; low and high are "
    "faithful",
    "comp_reversed": "comprehensiveness where the words the method finds least important go first; far below random is "
    "faithful",
    "of_ceiling": "comprehensiveness between random orders (0) and an exhaustive oracle (1), on short sentences",
    "own": "the method is this corruption of single words: an advantage that says nothing of other corruptions",
}
KINDS = (
    "Ranks are within what a method measures: erasure asks the question of saliency. Where attention or sensitivity "
    "scores high, it happens to name the words that the model needs; where it scores low, it may have answered its own "
    "question."
)


@dataclass(frozen=True)
class Report:
    """Everything that was found. `tables` hold rows; `opening` comes first, `conclusions` last."""

    opening: list[str]
    tables: dict[str, list[Row]]
    conclusions: list[str]


def usable(specs: Sequence[str], model: TranslationModel) -> tuple[list[Method], list[str]]:
    """The variants of all specs that the model has what it needs for, and why others are left out."""
    found: list[Method] = []
    notes = []
    for method in (method for spec in specs for method in compared_methods(spec, model)):
        try:
            method.check(model)
            found.append(method)
        except ModelError as error:
            notes.append(f"{method.name} is left out: {error}")
    return list(dict.fromkeys(found)), list(dict.fromkeys(notes))


@dataclass(frozen=True)
class Evaluation:
    """What to evaluate on what."""

    model: TranslationModel
    reverse: TranslationModel | None
    methods: Sequence[Method]
    corruptions: Mapping[str, Sequence[Corruption]]
    plan: Plan
    batch_pieces: int = BATCH_PIECES
    most_unknown: float = 0.2
    ngrams: NGrams | None = None

    def run(
        self,
        pairs: Sequence[Pair],
        gold: Sequence[GoldAlignment] | None,
        reader: str,
        resamples: int,
        seed: int,
        advance: Callable[[float], object] = lambda sentences: None,
    ) -> Report:
        """Measure every method under every corruption.

        Args:
            gold: of every pair, for plausibility.
            reader: a key of `eval.purpose.READERS`.
            advance: called with the number of sentences done, each counted once for each corruption.

        Raises:
            DataError: no pair that can go through the model.
            ModelError: see `align.pipeline.encode_pairs`.
        """
        encoded = encode_pairs(self.model, pairs, self.most_unknown)
        good = [p for p in encoded if p.status == "ok" and word_spans(p) and target_pieces(p)]
        if not good:
            raise DataError("no sentence pair can go through the model: all are empty or too long")
        runs = run_methods(self.model, good, self.methods, [Extraction()], self.batch_pieces)
        found: dict[str, list[Sentence]] = {name: [] for name in self.corruptions}
        for name, corruption in self.corruptions.items():
            for pair in good:
                matrices = {run.method.label: run.aligned[pair.pair.id].matrix for run in runs}
                found[name].append(measure_sentence(self.model, pair, matrices, corruption, self.plan))
                advance(1)
        tables = {"faithfulness": self._faithfulness(found, len(pairs), resamples, seed)}
        tables["corruptions"] = self._naturalness(good)
        tables["stability"] = stability(found, resamples, seed) if len(self.methods) > 1 else []
        if gold is not None:
            tables["plausibility"] = self._plausibility(found, runs, gold, pairs, resamples, seed)
        best = {name: _best(tables["faithfulness"], name) for name in self.corruptions}
        skipped = [f"{len(pairs) - len(good)} pairs are empty or too long"] * (len(good) < len(pairs))
        said = over_methods(tables.get("plausibility", []), tables["faithfulness"])
        last = [f"note: {line}" for line in (*skipped, *said)]
        last += [f"warning: {line}" for line in warnings(tables["stability"], best)]
        return Report(self._opening(reader), tables, last)

    def _opening(self, reader: str) -> list[str]:
        lines = opening(reader, ASKED, self.methods)
        lines += [f"{name}: {text}" for name, text in READING.items()]
        return [*lines, *(f"{name}: {CORRUPTIONS[name]}" for name in self.corruptions), KINDS]

    def _faithfulness(
        self, found: Mapping[str, Sequence[Sentence]], pairs: int, resamples: int, seed: int
    ) -> list[Row]:
        by_name = {method.label: method for method in self.methods}
        rows: list[Row] = []
        for corruption, sentences in found.items():
            ranks: dict[str, int] = {}
            for row in method_rows(sentences, self.plan.bins, resamples, seed):
                method = by_name.get(str(row["method"]))
                kind = method.measured if method else "floor" if row["method"] == RANDOM else "ceiling"
                ranks[kind] = ranks.get(kind, 0) + 1
                rank = ranks[kind] if method else None
                own = bool(method and own_corruption(method) == corruption)
                row = {"corruption": corruption, "measures": kind, "rank": rank, **row, "own": "yes" if own else ""}
                rows.append({**row, "signature": self._signature(str(method or row["method"]), corruption, pairs)})
        order, ends = list(found), {"floor": 0, "ceiling": 2}
        return sorted(
            rows,
            key=lambda row: (order.index(str(row["corruption"])), ends.get(str(row["measures"]), 1), row["measures"]),
        )

    def _signature(self, method: str, corruption: str, pairs: int) -> str:
        plan = self.plan
        settings = {
            "method": method,
            "corruption": corruption,
            "draws": len(self.corruptions[corruption]),
            "bins": ",".join(f"{100 * share:g}" for share in plan.bins),
            "targets": plan.targets or "all",
            "random": plan.random_orders,
            "seed": plan.seed,
            "model": self.model.identity,
            "pairs": pairs,
        }
        return signature(settings)

    def _naturalness(self, pairs: Sequence[Encoded]) -> list[Row]:
        rows: list[Row] = []
        for name, corruption in ((CLEAN, None), *self.corruptions.items()):
            sums = [naturalness(self.model, self.reverse, pair, corruption, self.plan, self.ngrams) for pair in pairs]
            row: Row = {"corruption": name}
            for sign in SIGNS:
                total, count = (sum(s.get(sign, (0.0, 0.0))[n] for s in sums) for n in range(2))
                row[sign] = total / count if count else None
            rows.append(row)
        return rows

    def _plausibility(
        self,
        found: Mapping[str, Sequence[Sentence]],
        runs: Sequence[Run],
        gold: Sequence[GoldAlignment],
        pairs: Sequence[Pair],
        resamples: int,
        seed: int,
    ) -> list[Row]:
        reference = {pair.id: links for pair, links in zip(pairs, gold, strict=True)}
        links = {run.method.label: {key: result.links for key, result in run.aligned.items()} for run in runs}
        return [
            {"corruption": name, **row}
            for name, sentences in found.items()
            for row in plausibility(sentences, links, reference, resamples, seed)
        ]


def own_corruption(method: Method) -> str | None:
    """The corruption that a method applies to single words itself."""
    if isinstance(method, Occlusion):
        return method.baseline
    return "delete" if isinstance(method, Omission) else "resample" if isinstance(method, Resampling) else None


def _best(rows: Sequence[Row], corruption: str) -> str:
    ours = [row for row in rows if row["corruption"] == corruption and row["method"] not in (RANDOM, ORACLE)]
    return str(max(ours, key=lambda row: float(str(row["comp"])))["method"])
