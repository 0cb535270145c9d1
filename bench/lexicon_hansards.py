"""Which alignment gives the best lexicon? Entries against gold alignments, for statistical and for given links.

The text is the first pairs of a training corpus and, after them, a gold set. sil-thot (pip install sil-thot) trains
fast_align and HMM models of both directions on it; each other alignment is a file of links of this text, made for
example by

    python -m bench.lexicon_hansards text --corpus FOLDER --gold FOLDER --pairs 20000 --out out/lexicon
    nmt-align run -m model.pt -s out/lexicon/src -t out/lexicon/tgt -o out/lexicon/saliency
    python -m bench.lexicon_hansards score --out out/lexicon --links saliency=out/lexicon/saliency

Folders hold `train.src.gz` and `train.tgt.gz`, and `src`, `tgt` and `gold` (zero-based, `p` for possible).

A file of links may also be of the gold text alone. Two questions are asked. "gold text": of the lexicon read off the
gold sentences alone, which entries are right and which are missing (precision and recall of entries)? "all text":
are the best translations of a word, over all text, among those of the gold (precision at 1, 5, 10)?
"""

from __future__ import annotations

import gzip
import json
import math
import time
from dataclasses import asdict
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from align.lexicon import Lexicon, MemoryTable, count, linked_words
from align.lexicon_input import LinkFile, read_linked, read_paired
from align.symmetrize import symmetrize
from bench.statistical import align
from data.bitext import read_bitext
from data.links import format_links
from data.streams import read_lines
from eval.lexicon import WordStats, gold_reference, intervals, lexicon_scores, lexicon_stats
from eval.tables import render

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from align.lexicon_input import LinkedPair

FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
BASELINES = ("fast_align", "hmm")


@click.group()
def main() -> None:
    """Compare the lexicons that several alignments of one text give."""


@main.command()
@click.option("--corpus", type=FOLDER, required=True)
@click.option("--gold", type=FOLDER, required=True)
@click.option("--pairs", type=int, default=20_000, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), required=True)
def text(corpus: Path, gold: Path, pairs: int, out: Path) -> None:
    """Write the text to align: the first pairs of the corpus, then the gold set."""
    out.mkdir(parents=True, exist_ok=True)
    for side in ("src", "tgt"):
        with gzip.open(corpus / f"train.{side}.gz") as file:
            (out / side).write_bytes(b"".join(islice(file, pairs)) + (gold / side).read_bytes())
    (out / "gold").write_bytes((gold / "gold").read_bytes())
    (out / "text.json").write_text(json.dumps({"pairs": pairs}))


@main.command()
@click.option("--out", type=FOLDER, required=True)
@click.option("--model", "models", type=click.Choice(BASELINES), multiple=True, default=BASELINES)
def baselines(out: Path, models: tuple[str, ...]) -> None:
    """Align the text with sil-thot: both directions, grow-diag-final-and."""
    pairs = [(pair.source, pair.target) for pair in read_bitext(out / "src", out / "tgt")]
    for name in models:
        start = time.perf_counter()
        forward = align(name, pairs)
        reverse = align(name, [(target, source) for source, target in pairs])
        turned = [frozenset((i, j) for j, i in links) for links in reverse]
        joined = (symmetrize(a, b, "grow-diag-final-and") for a, b in zip(forward, turned, strict=True))
        (out / name).write_text("".join(format_links(links) + "\n" for links in joined))
        click.echo(f"{name}: {time.perf_counter() - start:.0f} s", err=True)


@main.command()
@click.option("--out", type=FOLDER, required=True)
@click.option("--links", multiple=True, metavar="NAME=FILE", help="Links of the text, one line a pair.")
@click.option("--scores", multiple=True, metavar="NAME=FILE", help="What the links of NAME count, as NAME+scores.")
@click.option("--min-count", type=float, default=2, show_default=True, help="Least count of an entry of all text.")
def score(out: Path, links: tuple[str, ...], scores: tuple[str, ...], min_count: float) -> None:
    """Score the lexicons of the baselines and of given links."""
    start = json.loads((out / "text.json").read_text())["pairs"]
    files = {name: LinkFile(out / name) for name in BASELINES if (out / name).exists()}
    files |= {name: LinkFile(path) for name, _, path in (given.partition("=") for given in links)}
    for name, _, path in (given.partition("=") for given in scores):
        files[f"{name}+scores"] = LinkFile(files[name].path, scores=path)
    everything = list(read_bitext(out / "src", out / "tgt"))
    reference = gold_reference(read_paired(everything[start:], LinkFile(out / "gold", "gold")))
    rows = []
    for name, file in files.items():
        whole = sum(1 for _ in read_lines(file.path)) == len(everything)
        linked = list(read_linked(everything if whole else everything[start:], file))
        parts = [("gold text", linked[start:] if whole else linked, 0.0)]
        parts += [("all text", linked, min_count)] if whole else []
        for part, pairs, least in parts:
            stats = lexicon_stats(_best_first(_lexicon(pairs), least), reference)
            rows.append({"links": name, "from": part, **_row(stats)})
    click.echo(render(rows, "table"), nl=False)


def _lexicon(pairs: Iterable[LinkedPair]) -> Lexicon:
    table = MemoryTable()
    count(chain.from_iterable(linked_words(linked, null=False) for linked in pairs), table)
    return table.lexicon()


def _best_first(lexicon: Lexicon, least: float) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for entry in lexicon.entries:
        if entry.count >= least:
            found.setdefault(entry.source, []).append(entry.target)
    return found


def _row(stats: Sequence[WordStats]) -> dict[str, object]:
    ends = intervals(stats, 1000, 12345)
    row: dict[str, object] = {}
    for name, value in asdict(lexicon_scores(sum(stats, WordStats()))).items():
        low, high = ends[name] or (math.nan, math.nan)
        row[name] = None if value is None else f"{100 * value:.1f} ({100 * low:.1f}-{100 * high:.1f})"
    return row


if __name__ == "__main__":
    main()
