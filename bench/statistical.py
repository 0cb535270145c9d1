"""Statistical aligners of sil-thot (pip install sil-thot): trained on a text, they align that text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from data.links import Links

    Words = tuple[str, ...]

ALIGNERS = ("fast_align", "hmm", "eflomal")
ITERATIONS = 5  # of each model trained by EM


def align(name: str, pairs: Sequence[tuple[Words, Words]], last: int | None = None) -> list[Links]:
    """Links (first side, second side) of a model of the second side given the first, trained on all pairs.

    Args:
        last: how many pairs at the end to align; all of them by default.

    Raises:
        RuntimeError: thot gives a matrix of another shape.
    """
    model = _trained(name, pairs)
    found = []
    for source, target in pairs[len(pairs) - last if last is not None else 0 :]:
        matrix = model.get_best_alignment(source, target)[1].to_numpy() if source and target else None
        if matrix is not None and matrix.shape != (len(source), len(target)):
            raise RuntimeError(f"matrix of {matrix.shape} for {len(source)} and {len(target)} words")
        cells = [] if matrix is None else zip(*(axis.tolist() for axis in matrix.nonzero()), strict=True)
        found.append(frozenset(cells))
    return found


def _trained(name: str, pairs: Sequence[tuple[Words, Words]]) -> Any:
    """fast_align; HMM on top of IBM model 1; or eflomal, which samples and plans its own iterations."""
    from thot import alignment

    kinds = {"fast_align": alignment.FastAlignModel, "eflomal": alignment.EflomalAlignmentModel}
    model: Any = kinds.get(name, alignment.Ibm1AlignmentModel)()
    if name == "eflomal":
        model.deterministic = True
    for source, target in pairs:
        model.add_sentence_pair(source, target, 1)
    _train(model)
    if name == "hmm":
        model = alignment.HmmAlignmentModel(model)
        _train(model)
    return model


def _train(model: Any) -> None:
    model.start_training()
    for _ in range(getattr(model, "scheduled_iterations", ITERATIONS)):
        model.train()
    model.end_training()
