"""Choosing a method, a layer or another option without gold links: by the agreement of both directions.

Chen et al. 2020 ("Accurate Word Alignment Induction from Neural Machine Translation", EMNLP) choose the layers whose
links of both directions agree best. Nothing in that asks for layers: here any option, or the method itself, is chosen
so, for each direction its own. One direction alone offers nothing to agree with.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import chain, islice, product
from typing import TYPE_CHECKING

from align.many import links_of, planned_passes, run_methods
from align.methods import compared_methods, parse_method, usable_methods
from align.pipeline import BATCH_PIECES, MOST_UNKNOWN, encode_pairs
from align.specs import AUTO, split_list
from data.bitext import Pair
from data.errors import DataError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from align.extract import Extraction
    from align.many import Run
    from align.methods.base import Method
    from align.models.base import Encoded, TranslationModel
    from data.links import Links


@dataclass(frozen=True)
class Choice:
    """A method for each direction, and how far their links agree, in 0..1."""

    method: Method
    reverse_method: Method
    agreement: float


def agreement_rate(ours: Sequence[Links], theirs: Sequence[Links]) -> float:
    """2 |A and B| / (|A| + |B|) over all pairs; 0 where there is no link at all."""
    common = sum(len(a & b) for a, b in zip(ours, theirs, strict=True))
    total = sum(len(a) + len(b) for a, b in zip(ours, theirs, strict=True))
    return 2 * common / total if total else 0.0


def choose(
    spec: str,
    model: TranslationModel,
    reverse: TranslationModel,
    pairs: Sequence[Pair],
    how: Extraction,
    batch_pieces: int = BATCH_PIECES,
    most_unknown: float = MOST_UNKNOWN,
    progress: Callable[[float], Callable[[float], object]] = lambda total: lambda passes: None,
) -> list[Choice]:
    """All candidates of `spec` for one direction with all for the other, those that agree best first.

    Args:
        spec: see `candidates`.
        progress: given the total of passes, returns what is to be called with the passes done.

    Raises:
        DataError: no pair that both models can take.
        UsageError: a spec that leaves nothing open.
    """
    flipped = [Pair(pair.id, pair.target, pair.source) for pair in pairs]
    sides = [(m, encode_pairs(m, text, most_unknown)) for m, text in ((model, pairs), (reverse, flipped))]
    if not any(a.status == b.status == "ok" for a, b in zip(sides[0][1], sides[1][1], strict=True)):
        raise DataError("there is no pair to choose on: all are empty or too long for a model")
    tried = [candidates(spec, m, encoded) for m, encoded in sides]
    planned = (planned_passes(m, encoded, found) for (m, encoded), found in zip(sides, tried, strict=True))
    advance = progress(sum(planned))
    runs = [
        run_methods(m, encoded, found, [how], batch_pieces, advance)
        for (m, encoded), found in zip(sides, tried, strict=True)
    ]
    return ranked(*runs)


def settle(
    spec: str,
    model: TranslationModel,
    reverse: TranslationModel | None,
    pairs: Iterable[Pair],
    on: Iterable[Pair] | None,
    limit: int,
    how: Extraction,
    progress: Callable[[float], Callable[[float], object]],
) -> tuple[Choice, Iterator[Pair]]:
    """The best choice on the first `limit` pairs of `on`, or else of the text; and the pairs of the text, unread.

    Raises:
        UsageError: one direction only.
    """
    if reverse is None:
        raise UsageError(f"--method {spec} compares the links of both directions: give --reverse-model")
    rest = iter(pairs)
    first = list(islice(rest if on is None else iter(on), limit))
    found = choose(spec, model, reverse, first, how, progress=progress)
    return found[0], chain(first, rest) if on is None else rest


def ranked(forward: Sequence[Run], reverse: Sequence[Run]) -> list[Choice]:
    """Every run of one direction with every one of the other, those that agree best first."""
    ours = [(run.method, _links(run, "forward")) for run in forward]
    theirs = [(run.method, _links(run, "reverse")) for run in reverse]
    found = [Choice(a, b, agreement_rate(x, y)) for (a, x), (b, y) in product(ours, theirs)]
    # Among equals the same method for both directions, then the order of candidates.
    return sorted(found, key=lambda choice: (-choice.agreement, choice.method != choice.reverse_method))


def _links(run: Run, direction: str) -> list[Links]:
    return [links_of(result, direction) for _, result in sorted(run.aligned.items())]


def candidates(spec: str, model: TranslationModel, pairs: Sequence[Encoded]) -> list[Method]:
    """The methods that `spec` leaves to choose from.

    `auto` stands for every method that needs at most a pass for each piece of a pair, with all values of its open
    options; `auto(SPEC,SPEC)` for the methods named, dear ones too; `NAME:layer=auto` for all layers of one method,
    other options at their defaults.

    Raises:
        UsageError: nothing to choose from.
    """
    if spec == AUTO:
        usable = [name for name, lack in usable_methods(model).items() if lack is None]
        return [m for name in usable for m in compared_methods(name, model) if _cheap(model, m, pairs)]
    listed = re.fullmatch(rf"{AUTO}\((.*)\)", spec)
    if listed:
        methods = [method for item in split_list(listed[1]) for method in compared_methods(item, model)]
        return list(dict.fromkeys(methods))
    name, *options = spec.split(":")
    chosen = [option.removesuffix(f"={AUTO}") for option in options if option.endswith(f"={AUTO}")]
    method, fixed = parse_method(":".join([name, *(option for option in options if not option.endswith(f"={AUTO}"))]))
    for option in chosen or [""]:
        if option not in method.compared:
            known = ", ".join(method.compared) or "none"
            raise UsageError(f"{spec}: {name} can choose {known} by itself, such as {name}:OPTION={AUTO}")
    values = [method.compared[option](model) for option in chosen]
    return [method(**fixed, **dict(zip(chosen, found, strict=True))) for found in product(*values)]


def _cheap(model: TranslationModel, method: Method, pairs: Sequence[Encoded]) -> bool:
    """Whether a method takes at most one pass for each piece, and one more."""
    passes = method.evidence.on(model).passes
    return all(passes(p).total <= len(p.source) + len(p.target) + 1 for p in pairs if p.status == "ok")
