"""The main job: every method on one model, or on the models of both directions, against gold alignments."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from align.agreement import Agreement, combination
from align.bidirectional import scores_of_both
from align.many import links_of, planned_passes, run_methods
from align.methods import compared_methods, usable_methods
from align.pipeline import BATCH_PIECES, encode_pairs
from align.signature import signature
from data.bitext import Pair
from data.errors import DataError, UsageError
from eval.aer import corpus_stats
from eval.score import measure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from align.extract import Extraction
    from align.many import Run
    from align.methods.base import Method
    from align.models.base import Encoded, TranslationModel
    from data.links import GoldAlignment, Links


@dataclass(frozen=True)
class System:
    """A row of the comparison before it is scored: links of every pair as (source, target) of the text."""

    run: Run
    direction: str
    links: list[Links]
    seconds: float
    passes: float
    completeness_error: float | None


@dataclass(frozen=True)
class Comparison:
    """What to compare and how; `symmetrisations` apply where there is a reverse model.

    The spec `all` stands for every method that the model has what it needs for (`align.methods.usable_methods`).
    """

    specs: Sequence[str]
    hows: Sequence[Extraction]
    symmetrisations: Sequence[str] = ()
    batch_pieces: int = BATCH_PIECES
    most_unknown: float = 0.2

    def methods(self, model: TranslationModel) -> list[Method]:
        """The variants of all specs, each once."""
        usable = [name for name, lack in usable_methods(model).items() if lack is None]
        specs = [name for spec in self.specs for name in (usable if spec == "all" else [spec])]
        return list(dict.fromkeys(method for spec in specs for method in compared_methods(spec, model)))


def compare(
    plan: Comparison,
    model: TranslationModel,
    reverse: TranslationModel | None,
    pairs: Sequence[Pair],
    progress: Callable[[float], Callable[[float], object]] = lambda total: lambda passes: None,
) -> list[System]:
    """Align the pairs by every method, in both directions where there is a reverse model, and symmetrised.

    Args:
        progress: given the total of passes, returns what is to be called with the passes done.

    Raises:
        ModelError, UsageError: see `align.pipeline.encode_pairs` and the methods.
    """
    flipped = [Pair(pair.id, pair.target, pair.source) for pair in pairs]
    sides = [("forward", model, pairs)] + ([("reverse", reverse, flipped)] if reverse is not None else [])
    encoded = {name: encode_pairs(m, text, plan.most_unknown) for name, m, text in sides}
    methods = {name: plan.methods(m) for name, m, _ in sides}
    advance = progress(sum(planned_passes(m, encoded[name], methods[name]) for name, m, _ in sides))
    runs = {
        name: run_methods(m, encoded[name], methods[name], plan.hows, plan.batch_pieces, advance)
        for name, m, _ in sides
    }
    _check_words(encoded)
    systems = [_one_direction(run, name) for name, _, _ in sides for run in runs[name]]
    if reverse is not None:
        others = {(run.method, run.how): run for run in runs["reverse"]}
        for run in runs["forward"]:
            if (run.method, run.how) in others:
                systems += _both_directions(run, others[run.method, run.how], plan)
    return systems


def _check_words(encoded: dict[str, list[Encoded]]) -> None:
    """Both models must count the same words, or their links cannot be combined."""
    if "reverse" in encoded:
        for ours, theirs in zip(encoded["forward"], encoded["reverse"], strict=True):
            if (ours.source_words, ours.target_words) != (theirs.target_words, theirs.source_words):
                raise DataError(f"line {ours.pair.id + 1}: the two models see different words")


def _one_direction(run: Run, direction: str) -> System:
    return System(
        run,
        direction,
        [links_of(run.aligned[key], direction) for key in sorted(run.aligned)],
        run.seconds,
        run.passes,
        run.incompleteness / run.pieces if run.pieces else None,
    )


def _both_directions(forward: Run, reverse: Run, plan: Comparison) -> list[System]:
    systems = []
    for name in plan.symmetrisations:
        how = check_symmetrisation(name)
        if isinstance(how, Agreement) and forward.how.pooling != "word":
            continue  # it works on word matrices, which do not depend on the pooling of links
        start = time.perf_counter()
        both = ((ours, reverse.aligned[key]) for key, ours in sorted(forward.aligned.items()))
        links = [frozenset(scores) for scores in scores_of_both(both, how)]
        seconds = forward.seconds + reverse.seconds + time.perf_counter() - start
        systems.append(System(forward, name, links, seconds, forward.passes + reverse.passes, None))
    return systems


def score_systems(
    systems: Sequence[System],
    gold: Sequence[GoldAlignment],
    settings: Mapping[str, object],
    resamples: int,
    seed: int,
) -> list[tuple[System, dict[str, object]]]:
    """Each system with its row of the table, best AER first; undefined AER last.

    Raises:
        DataError: not as many gold lines as sentence pairs.
    """
    if systems and len(systems[0].links) != len(gold):
        raise DataError(f"the text has {len(systems[0].links)} pairs, the gold file {len(gold)} lines")
    measured = measure([corpus_stats(s.links, gold) for s in systems], resamples=resamples, seed=seed)
    warning = mixture_warning(systems)
    scored = [
        (system, {**_row(system, scores, settings), "warning": warning})
        for system, scores in zip(systems, measured, strict=True)
    ]
    return sorted(scored, key=lambda pair: (pair[1]["aer"] is None, pair[1]["aer"]))


def _row(system: System, scores: dict[str, float | None], settings: Mapping[str, object]) -> dict[str, object]:
    method, how = system.run.method, system.run.how
    place = {key: method.options().get(key) for key in PLACE}
    return {
        "method": method.name,
        "options": _text_of(method.told_options()),
        **place,
        "direction": system.direction,
        "pooling": how.pooling,
        "measures": method.measured,
        **{key: scores[key] for key in ("aer", "aer_low", "aer_high", "precision", "recall", "f1", "links")},
        "passes": system.passes / max(1, len(system.links)),
        "seconds": system.seconds,
        "completeness_error": system.completeness_error,
        "signature": signature(
            {
                "method": method.name,
                "options": _text_of(method.options()) or None,
                **place,
                "direction": _direction(system.direction),
                **how.settings(),
                **settings,
            }
        ),
    }


def _text_of(options: Mapping[str, object]) -> str:
    return ":".join(f"{key}={value}" for key, value in options.items() if key not in PLACE)


def mixture_warning(systems: Iterable[System]) -> str | None:
    """A sentence for readers of a table whose rows answer different questions; None where all measure one thing."""
    kinds = sorted({kind for system in systems for kind in system.run.method.measured.split("+")})
    if len(kinds) < 2:
        return None
    return f"this table mixes {', '.join(kinds[:-1])} and {kinds[-1]}: {_MIXTURE}"


PLACE = ("layer", "heads", "position")  # columns of their own
_MIXTURE = "they answer different questions, and a lower AER makes none of them a better explanation of the model"


def _direction(name: str) -> str:
    """A direction with all its options, for the signature."""
    return name if name in ("forward", "reverse") else str(check_symmetrisation(name))


def check_symmetrisation(spec: str) -> str | Agreement:
    """How to combine both directions, as `align.agreement.combination` reads it.

    Raises:
        UsageError: unknown, or one direction alone, which a comparison lists anyway.
    """
    how = combination(spec)
    if how in ("forward", "reverse"):
        raise UsageError(f"{how} alone is no symmetrisation; a comparison lists both directions anyway")
    return how
