"""Which alignment gives the best lexicon, and do soft counts give a better one than links?

The text is the first pairs of a training corpus and, after them, a gold set. sil-thot (pip install sil-thot) trains
fast_align and HMM models of both directions on it, or on more of the corpus. Methods are given as soft alignments of
both directions:

    python -m bench.lexicon_hansards text --corpus FOLDER --gold FOLDER --pairs 1500 --out out
    python -m bench.lexicon_hansards baselines --out out
    python -m bench.lexicon_hansards baselines --out out --corpus FOLDER --pairs 20000
    nmt-align run -m en-fr.pt -s out/src -t out/tgt --method lrp:attention=held --extract threshold --threshold 0.05 \
        -o out/lrp.forward --scores out/lrp.forward.scores
    nmt-align run -m fr-en.pt -s out/tgt -t out/src --method lrp:attention=held --extract threshold --threshold 0.05 \
        -o out/lrp.reverse --scores out/lrp.reverse.scores
    python -m bench.lexicon_hansards score --out out --links fast_align --links hmm.20000 --soft lrp

Folders hold `train.src.gz` and `train.tgt.gz`, and `src`, `tgt` and `gold` (zero-based, `p` for possible).

Soft alignments give three lexicons: `hard` counts the links of best cells, both directions joined by
grow-diag-final-and, as 1; `weighted` counts the same links as their mean share in both directions; `soft` counts
every cell as this share, and keeps the best entries of each source word, as many as `hard` has. Of one direction
alone (`--soft lrp.forward`) there are its best cells and its shares. Two questions are asked. "gold text": of the
lexicon read off the gold sentences alone, which entries are right and which are missing (precision and recall)? "all
text": are the best translations of a word, over all text, among those of the gold (precision at 1, 5, 10)?
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
from align.lexicon_input import UNIT, LinkedPair, LinkFile, read_linked, read_paired
from align.symmetrize import symmetrize
from bench.statistical import align
from data.bitext import read_bitext
from data.links import format_links
from eval.lexicon import WordStats, gold_reference, intervals, lexicon_scores, lexicon_stats
from eval.tables import render

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from data.bitext import Pair
    from data.links import Link, Links
    from eval.tables import Format

FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
BASELINES = ("fast_align", "hmm")
JOIN = "grow-diag-final-and"


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
@click.option("--corpus", type=FOLDER, help="Train on its first --pairs pairs, too.")
@click.option("--pairs", type=int, default=0)
def baselines(out: Path, models: tuple[str, ...], corpus: Path | None, pairs: int) -> None:
    """Align the text with sil-thot: both directions, grow-diag-final-and."""
    aligned = [(pair.source, pair.target) for pair in read_bitext(out / "src", out / "tgt")]
    more = read_bitext(corpus / "train.src.gz", corpus / "train.tgt.gz") if corpus else iter(())
    trained = [(pair.source, pair.target) for pair in islice(more, pairs)] + aligned
    for name in models:
        start = time.process_time()
        forward = align(name, trained, len(aligned))
        reverse = align(name, [(target, source) for source, target in trained], len(aligned))
        turned = [frozenset((i, j) for j, i in links) for links in reverse]
        joined = (symmetrize(a, b, JOIN) for a, b in zip(forward, turned, strict=True))
        file = out / (f"{name}.{pairs}" if pairs else name)
        file.write_text("".join(format_links(links) + "\n" for links in joined))
        click.echo(f"{file.name}: {time.process_time() - start:.0f} s", err=True)


@main.command()
@click.option("--out", type=FOLDER, required=True)
@click.option("--links", multiple=True, metavar="NAME", help="Links of the text in OUT/NAME.")
@click.option("--soft", multiple=True, metavar="NAME", help="In OUT/NAME.forward and OUT/NAME.reverse, or OUT/NAME.")
@click.option("--format", "form", type=click.Choice(["table", "json", "tsv"]), default="table", show_default=True)
def score(out: Path, links: tuple[str, ...], soft: tuple[str, ...], form: Format) -> None:
    """Score the lexicons of links and of soft alignments."""
    start = json.loads((out / "text.json").read_text())["pairs"]
    pairs = list(read_bitext(out / "src", out / "tgt"))
    reference = gold_reference(read_paired(pairs[start:], LinkFile(out / "gold", "gold")))
    systems = {name: list(read_linked(pairs, LinkFile(out / name))) for name in links}
    for name in soft:
        systems |= _readings(name, out, pairs)
    rows = []
    for name, linked in systems.items():
        for part, some in (("gold text", linked[start:]), ("all text", linked)):
            found = _best_first(_lexicon(some))
            if name.endswith(" soft"):
                hard = _best_first(_lexicon(systems[f"{name.removesuffix('soft')}hard"][len(linked) - len(some) :]))
                found = {word: entries[: len(hard.get(word, ()))] for word, entries in found.items()}
            stats = lexicon_stats(found, reference)
            rows.append({"links": name, "from": part, "entries": sum(one.entries for one in stats), **_row(stats)})
    click.echo(render(rows, form), nl=False)


def _readings(name: str, out: Path, pairs: Sequence[Pair]) -> dict[str, list[LinkedPair]]:
    """The three ways to count soft alignments: of both directions, or of one if `name` is that of a file."""
    one_way = (out / name).exists()
    files = [(name, False)] if one_way else [(f"{name}.forward", False), (f"{name}.reverse", True)]
    read = [read_linked(pairs, LinkFile(out / f, swap=swap, scores=out / f"{f}.scores")) for f, swap in files]
    found: dict[str, list[LinkedPair]] = {f"{name} {how}": [] for how in ("hard", "weighted", "soft")}
    for pair, *directions in zip(pairs, *read, strict=True):
        weights = [one.weights for one in directions]
        joined = _best(weights[0], 1)
        if not one_way:
            joined = symmetrize(joined, _best(weights[1], 0), JOIN)
        cells = frozenset().union(*weights)
        shares = {link: sum(each.get(link, 0) for each in weights) // len(weights) for link in cells}
        found[f"{name} hard"].append(LinkedPair(pair, dict.fromkeys(joined, UNIT)))
        found[f"{name} weighted"].append(LinkedPair(pair, {link: shares[link] for link in joined}))
        found[f"{name} soft"].append(LinkedPair(pair, shares))
    return found


def _best(weights: Mapping[Link, int], side: int) -> Links:
    """The heaviest link of each word of a side (0 source, 1 target), the first of equal ones."""
    best: dict[int, Link] = {}
    for link in sorted(weights, key=lambda link: (-weights[link], link)):
        best.setdefault(link[side], link)
    return frozenset(best.values())


def _lexicon(pairs: Iterable[LinkedPair]) -> Lexicon:
    table = MemoryTable()
    count(chain.from_iterable(linked_words(linked, null=False) for linked in pairs), table)
    return table.lexicon()


def _best_first(lexicon: Lexicon) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for entry in lexicon.entries:
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
