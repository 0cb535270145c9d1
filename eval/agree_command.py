"""`nmt-align agree`: do the methods say the same?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from align.options import ModelArguments
from align.specs import split_list
from data.errors import UsageError
from data.streams import check_paths, write_atomically
from eval.model_gold import model_gold
from eval.options import GoldFormat, gold_format_options, result_options
from eval.purpose import opening
from eval.sanity.command import Sample, load_model_and_text, passable, signed, text_and_model
from eval.tables import Format, render

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from align.many import Run
    from align.models.base import Encoded, TranslationModel
    from data.links import GoldAlignment
    from eval.agreement import Agreement

METHODS = ",".join(
    (
        "attention:position=awo",
        "vector-norm:layer=-1:position=awo",
        "rollout:layer=-1:position=awo:scope=decoder",
        "alti:layer=-1:position=awo:scope=decoder",
        "attention-x-gradient:layer=-1:rule=positive",
        "relevancy",
        "gradient-norm:norm=l1",
        "gradient-x-input:sign=signed",
        "gradient-x-input:sign=absolute",
        "smoothgrad:samples=10:base=input",
        "integrated-gradients:sign=signed:steps=12",
        "lrp:attention=propagated:sign=signed",
        "occlusion:baseline=zero:sign=signed",
        "omission:sign=signed",
    )
)
ASKED = "do the methods say the same of a prediction, and which of them belong together?"
CAUTION = (
    "Agreement is not faithfulness: methods may agree and be wrong together. Sensitivity and saliency answer different "
    "questions, so that they need not agree."
)


@click.command()
@text_and_model
@click.option("--methods", default=METHODS, help="Names with options, as for `compare` (default: one or two a family).")
@click.option(
    "--measure",
    type=click.Choice(["spearman", "kendall", "top", "jsd", "links"]),
    default="spearman",
    show_default=True,
    help="What the table shows and clusters by; JSON and TSV hold all of them.",
)
@click.option("--top", type=click.IntRange(1), default=3, show_default=True, help="How many source words are the top.")
@click.option("--sentences", metavar="FILE", help="Write all measures of every sentence as TSV.")
@click.option("--plot", metavar="FILE", help="Draw the clustered table, .png, .svg or .pdf.")
@click.option("-g", "--gold", metavar="FILE", help="Gold alignments: does agreement go with AER, over sentences?")
@gold_format_options
@result_options
def agree(
    model: ModelArguments,
    text: Sample,
    reader: str,
    methods: str,
    measure: str,
    top: int,
    sentences: str | None,
    plot: str | None,
    gold: str | None,
    gold_format: GoldFormat,
    bootstrap: int,
    seed: int,
    form: Format,
    output: str,
    overwrite: bool,
) -> None:
    """Compare the maps of all methods with each other, word by word.

    The table is ordered by average-linkage clustering, so that methods which say the same stand side by side. Measures
    are of rows, what two methods say of one target word; a sentence counts with the mean over its target words, the
    corpus with the mean over sentences. The second table is between kinds: attention, sensitivity, saliency.
    """
    for path in (output, sentences, plot):
        check_paths((*text.files.paths, gold), path, overwrite=overwrite)
    if plot is not None and Path(plot).suffix not in (".png", ".svg", ".pdf"):
        raise UsageError(f"{plot}: the name must end in .png, .svg or .pdf")
    loaded, stream = load_model_and_text(model, text)
    every = list(stream)
    reference = None
    if gold is not None:
        found = model_gold(gold, gold_format, loaded, every)
        reference = {pair.id: links for pair, links in zip(every, found, strict=True)}
    pairs = passable(loaded, every[: text.limit], text.max_unknown)
    runs = _runs(loaded, pairs, methods, text.batch_pieces)
    report = _Report(runs, pairs, measure, top, bootstrap, seed)
    signed(report.rows, loaded, {"check": "agree", "pairs": len(pairs), "top": top, "seed": seed})
    first = opening(reader, ASKED, [run.method for run in runs])
    with write_atomically(output) as out:
        out.write(report.render(form, first, None if reference is None else report.with_gold(reference)))
    if sentences is not None:
        with write_atomically(sentences) as out:
            out.write(render(report.by_sentence(), "tsv"))
    if plot is not None:
        from eval.agreement_plot import draw

        draw(report.labels, report.table, measure, plot)


def _runs(model: TranslationModel, pairs: Sequence[Encoded], specs: str, batch_pieces: int) -> list[Run]:
    """The maps of the methods that the model has what it needs for.

    Raises:
        UsageError: fewer than two methods.
    """
    from align.extract import Extraction
    from align.many import planned_passes, run_methods
    from align.progress import progress_bar
    from eval.faithfulness_report import usable

    found, notes = usable(split_list(specs), model)
    for note in notes:
        click.echo(f"note: {note}", err=True)
    if len(found) < 2:
        raise UsageError("agreement needs at least two methods")
    advance = progress_bar(planned_passes(model, pairs, found))
    return run_methods(model, pairs, found, [Extraction()], batch_pieces, advance)


def _sentence(runs: Sequence[Run], pair: Encoded, top: int) -> Agreement:
    import numpy as np

    from eval.agreement import agreement

    aligned = [run.aligned[pair.pair.id] for run in runs]
    return agreement(np.stack([one.matrix for one in aligned]), [one.links for one in aligned], top)


class _Report:
    """Tables of what was found."""

    def __init__(
        self, runs: Sequence[Run], pairs: Sequence[Encoded], measure: str, top: int, resamples: int, seed: int
    ) -> None:
        from eval.agreement import kind_rows, matrix, order, pair_rows

        self.runs, self.pairs, self.measure, self.resamples, self.seed = runs, pairs, measure, resamples, seed
        self.labels = [run.method.label for run in runs]
        self.agreements = [_sentence(runs, pair, top) for pair in pairs]
        self.rows = pair_rows(self.labels, self.agreements, resamples, seed)
        self.table = matrix(self.labels, self.rows, measure)
        self.order = order(self.table, measure)
        self.kinds = kind_rows([run.method.measured for run in runs], self.agreements, measure, resamples, seed)

    def heat_map(self) -> list[dict[str, object]]:
        """The clustered table as rows of text, methods numbered in their order."""
        return [
            {"": number, "method": self.labels[a]}
            | {str(n): _short(self.table[a, b]) for n, b in enumerate(self.order, 1)}
            for number, a in enumerate(self.order, 1)
        ]

    def with_gold(self, gold: Mapping[int, GoldAlignment]) -> list[dict[str, object]]:
        """AER of each method, and over sentences Spearman's rho of 1 - AER with its mean agreement with the others."""
        import numpy as np

        from eval.aer import scores, sentence_stats, total
        from eval.faithfulness_scores import spearman

        rows: list[dict[str, object]] = []
        sign = -1.0 if self.measure == "jsd" else 1.0
        for number, run in enumerate(self.runs):
            stats = [sentence_stats(run.aligned[pair.pair.id].links, gold[pair.pair.id]) for pair in self.pairs]
            points = []
            for one, found in zip(stats, self.agreements, strict=True):
                others = np.delete(found.mean(self.measure)[number], number)
                aer, defined = scores(one).aer, others[~np.isnan(others)]
                if aer is not None and len(defined):
                    points.append((1 - aer, sign * float(defined.mean())))
            rho, low, high = spearman(np.array(points).reshape(-1, 2), self.resamples, self.seed)
            row: dict[str, object] = {"method": self.labels[number], "aer": scores(total(stats)).aer}
            rows.append(row | {"rho": rho, "rho_low": low, "rho_high": high, "sentences": len(points)})
        return sorted(rows, key=lambda row: (row["aer"] is None, row["aer"]))

    def by_sentence(self) -> list[dict[str, object]]:
        """Every measure of every two methods on every sentence."""
        from itertools import combinations

        from eval.agreement import MEASURES

        rows: list[dict[str, object]] = []
        for pair, found in zip(self.pairs, self.agreements, strict=True):
            means = {measure: found.mean(measure) for measure in MEASURES}
            for a, b in combinations(range(len(self.labels)), 2):
                row: dict[str, object] = {"line": pair.pair.id + 1, "method": self.labels[a], "other": self.labels[b]}
                rows.append(row | {measure: float(values[a, b]) for measure, values in means.items()})
        return rows

    def render(self, form: Format, first: list[str], aer: list[dict[str, object]] | None) -> str:
        from eval.agreement import MEASURES

        if form == "tsv":
            return render(self.rows, form)
        if form == "json":
            whole: dict[str, Any] = {"opening": first, "caution": CAUTION}
            whole["clustered"] = [self.labels[n] for n in self.order]
            whole["rows"] = json.loads(render(self.rows, form))
            whole["kinds"] = json.loads(render(self.kinds, form))
            whole["gold"] = None if aer is None else json.loads(render(aer, form))
            return json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        left_out = max(int(str(row["rows_left_out"])) for row in self.rows)
        parts = [
            "\n".join(first),
            f"{self.measure}: {MEASURES[self.measure]}\n" + render(self.heat_map(), form),
            f"Between kinds, the mean over pairs of methods:\n{render(self.kinds, form)}",
        ]
        if aer is not None:
            title = f"Over sentences, does agreement with the other methods ({self.measure}) go with 1 - AER?"
            parts.append(f"{title} Spearman's rho:\n{render(aer, form)}")
        parts.append(
            f"Target words without a rank correlation (constant or short rows): at most {left_out} for a pair of "
            f"methods.\n{CAUTION}\nsignature: {self.rows[0]['signature']}"
        )
        return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _short(value: float) -> str:
    return "–" if value != value else f"{value:5.2f}"
