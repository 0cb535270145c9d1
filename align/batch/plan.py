"""The plan: input cut into shards, and a fingerprint of everything that the output depends on."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from align.batch.job import Job, Scalar
from align.batch.lock import locked
from align.batch.shard import digest, write_text
from data.errors import AlignError, DataError, UsageError
from data.streams import STANDARD_STREAM, write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterable

    from data.bitext import Pair
    from data.corpus import Corpus

MANIFEST = "manifest.json"
SCHEMA = 1
FOLDERS = ("text", "links", "lexicon", "runs")


@dataclass(frozen=True)
class Shard:
    """`pairs` pairs from id `first` on, and the sha256 of the file with their text."""

    first: int
    pairs: int
    sha256: str


@dataclass(frozen=True)
class Input:
    """A file of the corpus as it was when planned; standard input has no size. `name` tells its role."""

    name: str
    path: str
    size: int | None = None
    modified: int | None = None
    sha256: str | None = None

    @classmethod
    def of(cls, name: str, path: str) -> Input:
        if path == STANDARD_STREAM:
            return cls(name, path)
        place = Path(path).resolve()
        try:
            facts = place.stat()
            return cls(name, str(place), facts.st_size, facts.st_mtime_ns, digest(place))
        except OSError as error:
            raise DataError(f"cannot be read: {error.strerror}", path) from None

    def now(self) -> Input:
        """The file as it is; itself where it is the same by size and time, or is not there any more."""
        place = Path(self.path)
        if self.size is None or not place.exists():
            return self
        facts = place.stat()
        return (
            self if (facts.st_size, facts.st_mtime_ns) == (self.size, self.modified) else Input.of(self.name, self.path)
        )


@dataclass(frozen=True)
class Plan:
    """A batch: what to do, on which shards, in which folder. Shards are numbered from 1.

    Attributes:
        folder: holds the manifest and the folders `text`, `links`, `lexicon` and `runs`.
        job: what to do.
        signature: the settings in one line, for the output.
        identity: what the output depends on, by name.
        inputs: the files of the corpus.
        shards: the shards in order.
    """

    folder: Path
    job: Job
    signature: str
    identity: dict[str, Scalar]
    inputs: tuple[Input, ...]
    shards: tuple[Shard, ...]

    @property
    def pairs(self) -> int:
        return sum(shard.pairs for shard in self.shards)

    @property
    def fingerprint(self) -> str:
        """sha256 over `identity`."""
        return hashlib.sha256(json.dumps(self.identity, sort_keys=True).encode()).hexdigest()

    def text(self, number: int) -> Path:
        """The words of a shard."""
        return self.folder / "text" / f"{number:06}.jsonl.gz"

    def part(self, number: int) -> Path:
        """The records of a finished shard."""
        return self.folder / "links" / f"{number:06}.jsonl.gz"

    def counts(self, number: int) -> Path:
        """The lexicon counts of a finished shard, if the job collects them."""
        return self.folder / "lexicon" / f"{number:06}.tsv.gz"

    def check_unchanged(self) -> None:
        """Raise AlignError, with the differences, if models, versions or inputs are not as they were planned."""
        inputs = [entry.now() for entry in self.inputs]
        _refuse(self, {**self.identity, **self.job.identity(), **_digests(inputs)})


def make_plan(folder: Path, pairs: Iterable[Pair], corpus: Corpus, job: Job, signature: str, shard_size: int) -> Plan:
    """Cut `pairs`, which are those of `corpus`, into shards of `shard_size`; a folder with the same plan is left as is.

    The manifest comes last: without it there is no plan.

    Raises:
        AlignError: the folder holds another plan (with the differences), or another process is planning there.
        DataError: bad input.
    """
    for name in FOLDERS:
        (folder / name).mkdir(parents=True, exist_ok=True)
    with locked(folder / "plan.lock", "planning"):
        files = tuple(Input.of(name, path) for name, path in corpus.paths.items())
        identity = {**job.identity(), **_digests(files), **corpus.reading, "shard_size": shard_size}
        if (folder / MANIFEST).exists():
            plan = load_plan(folder)
            if any(entry.size is None for entry in files):
                raise AlignError(f"{folder}: planned before; standard input cannot be compared: use `batch run`")
            _refuse(plan, identity)
            return plan
        shards: list[Shard] = []
        rest = iter(pairs)
        plan = Plan(folder, job, signature, identity, files, ())
        while (first := next(rest, None)) is not None:
            piece = list(chain((first,), islice(rest, shard_size - 1)))
            path = plan.text(len(shards) + 1)
            write_text(path, piece)
            shards.append(Shard(first.id, len(piece), digest(path)))
        plan = Plan(folder, job, signature, identity, files, tuple(shards))
        with write_atomically(folder / MANIFEST) as out:
            json.dump(_as_json(plan), out, ensure_ascii=False, indent=1)
        return plan


def load_plan(folder: Path) -> Plan:
    """The plan of a folder.

    Raises:
        UsageError: there is none.
        DataError: its manifest is damaged or of another version.
    """
    path = folder / MANIFEST
    if not path.is_file():
        raise UsageError(f"{folder}: holds no {MANIFEST}; `nmt-align batch plan` makes one")
    try:
        found = json.loads(path.read_text(encoding="utf-8"), object_hook=_paths)
        if found["schema"] != SCHEMA:
            raise DataError(f"made by another version (schema {found['schema']}, not {SCHEMA})", path)
        plan = Plan(
            folder,
            Job(**found["job"]),
            found["signature"],
            found["identity"],
            tuple(Input(**entry) for entry in found["inputs"]),
            tuple(Shard(*entry) for entry in found["shards"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"not a manifest of this program ({error})", path) from error
    if plan.fingerprint != found["fingerprint"]:
        raise DataError("edited: its fingerprint does not fit", path)
    return plan


def _as_json(plan: Plan) -> dict[str, Any]:
    job = asdict(plan.job)
    job["model_options"] = {name: _named(value) for name, value in job["model_options"].items()}
    return {
        "schema": SCHEMA,
        "fingerprint": plan.fingerprint,
        "signature": plan.signature,
        "pairs": plan.pairs,
        "identity": plan.identity,
        "job": {name: _named(value) for name, value in job.items()},
        "inputs": [asdict(entry) for entry in plan.inputs],
        "shards": [(shard.first, shard.pairs, shard.sha256) for shard in plan.shards],
    }


def _named(value: Any) -> Any:
    return {"path": str(value)} if isinstance(value, Path) else value


def _paths(found: dict[str, Any]) -> Any:
    return Path(found["path"]) if found.keys() == {"path"} else found


def _digests(inputs: Iterable[Input]) -> dict[str, Scalar]:
    return {entry.name: entry.sha256 for entry in inputs}


def _refuse(plan: Plan, now: dict[str, Scalar]) -> None:
    names = sorted(plan.identity.keys() | now.keys())
    changed = [name for name in names if plan.identity.get(name) != now.get(name)]
    if changed:
        lines = "".join(
            f"\n  {name}: {_short(plan.identity.get(name))}, now {_short(now.get(name))}" for name in changed
        )
        raise AlignError(
            f"{plan.folder}: planned differently, so the results would not fit together; undo the change or plan "
            f"in a new folder:{lines}"
        )


def _short(value: Scalar) -> str:
    """Digests by their first digits."""
    return f"{value[:12]}…" if isinstance(value, str) and len(value) == 64 else str(value)
