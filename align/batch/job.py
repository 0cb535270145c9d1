"""What a batch is to do, how a worker gets ready for it, and what its output depends on."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from align import __version__
from align.batch.shard import Record, digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from align.bidirectional import Aligner
    from data.bitext import Pair

    Align: TypeAlias = Callable[[Sequence[Pair]], Iterable[Record]]

Scalar: TypeAlias = str | int | float | bool | None
# What `align.models.load` may find beside a fairseq checkpoint.
COMPANIONS = ("dict.*.txt", "vocab.*", "codes*", "bpecodes", "code", "bpe.codes", "*.model")
LIBRARIES = ("torch", "transformers", "numpy")


@dataclass(frozen=True)
class Job:
    """Models, settings and filters. `model_options` are those of `align.options.ModelArguments`.

    `threads` is what each worker computes with: results may depend on it in their last bits, so it is the same for
    every engine. `lexicon` is what a link counts (`align.batch.counts`) if a lexicon is counted. `max_tokens` and
    `max_ratio` mark pairs as `too_long` and `ratio` and leave them unaligned.
    """

    model: Path
    reverse_model: Path | None
    model_options: dict[str, Any]
    method: str
    reverse_method: str | None
    pooling: str
    extractor: str
    threshold: float
    eos: str
    punctuation: bool
    symmetrisation: str
    batch_pieces: int
    max_unknown: float
    threads: int
    max_tokens: int | None
    max_ratio: float | None
    matrices: bool
    lexicon: str | None = None

    def identity(self) -> dict[str, Scalar]:
        """Everything but the text that the output depends on; files stand as the sha256 of what is in them."""
        values = asdict(self)
        values.pop("model_options")
        named = {**values, **self.model_options}
        models = {name: _model_digest(named.pop(name)) for name in ("model", "reverse_model")}
        rest = {name: digest(value) if isinstance(value, Path) else value for name, value in named.items()}
        return {**models, **rest, "nmt-align": __version__, **{name: _version(name) for name in LIBRARIES}}

    def aligner(self) -> Aligner:
        """The models, ready to align. Raises ModelError and UsageError as loading them does."""
        import torch

        from align.bidirectional import Aligner
        from align.methods import make_method
        from align.models.load import load_model
        from align.options import ModelArguments, extraction

        torch.set_num_threads(self.threads)
        options, _ = ModelArguments(self.model, self.reverse_model, self.model_options).load_options(())
        reverse = load_model(self.reverse_model, options.swapped()) if self.reverse_model else None
        how = extraction(self.pooling, self.extractor, self.threshold, self.eos, self.punctuation)
        return Aligner(
            load_model(self.model, options),
            reverse,
            make_method(self.method),
            how,
            self.symmetrisation,
            self.batch_pieces,
            self.max_unknown,
            make_method(self.reverse_method) if self.reverse_method else None,
        )

    def screen(self, pair: Pair) -> str | None:
        """The status of a pair that is not to be aligned; None for all others, empty ones too."""
        shorter, longer = sorted((len(pair.source), len(pair.target)))
        if self.max_tokens is not None and longer > self.max_tokens:
            return "too_long"
        if self.max_ratio is not None and longer > shorter * self.max_ratio > 0:
            return "ratio"
        return None


def load(job: Job) -> Align:
    """A function from pairs to their records, in their order."""
    return partial(_records, job.aligner(), job.matrices)


def _records(aligner: Aligner, matrices: bool, pairs: Iterable[Pair]) -> Iterator[Record]:
    for result in aligner.align(pairs):
        pair = result.encoded
        matrix = result.matrix.tolist() if matrices else None
        yield Record(pair.pair.id, pair.source_words, pair.target_words, result.scores, result.status, matrix)


def _model_digest(path: Path | None) -> str | None:
    """sha256 over a checkpoint and what lies beside it, or over a model's folder; a name on a hub is itself."""
    if path is None:
        return None
    if not path.exists():
        return str(path)
    files = path.rglob("*") if path.is_dir() else {path, *(f for name in COMPANIONS for f in path.parent.glob(name))}
    listed = sorted((file.name, digest(file)) for file in files if file.is_file())
    return hashlib.sha256(repr(listed).encode()).hexdigest()


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
