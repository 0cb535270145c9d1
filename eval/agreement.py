"""Do methods agree? Rank correlation, shared top words, divergence and shared links of word maps, pair by pair.

All measures compare rows: what two methods say of one target word over the source words of its sentence. A sentence
counts with the mean over its target words, a corpus with the mean over its sentences. Rows where a measure means
nothing are left out and counted. Agreement is not faithfulness: methods may agree and be wrong together.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from align.extract import row_shares
from eval.bootstrap import paired_means

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from data.links import Links

    Floats = NDArray[np.float64]

MEASURES = {
    "spearman": "Spearman's rank correlation of the scores of source words, -1 to 1",
    "kendall": "Kendall's tau-b of the scores of source words, -1 to 1",
    "top": "share of the top source words that both methods name, 0 to 1",
    "jsd": "Jensen-Shannon divergence of the rows' positive parts as distributions, in nats, 0 (equal) to 0.693",
    "links": "F1 of the links that both methods choose, 0 to 1",
}
LEAST_WORDS = 3  # rank correlation of two words is 1 or -1 and says little
SMALL = 1e-12


@dataclass(frozen=True)
class Agreement:
    """Measures of M methods on one sentence, [M, M, J] each; NaN where a row means nothing. `links`: [M, M]."""

    spearman: Floats
    kendall: Floats
    top: Floats
    jsd: Floats
    links: Floats

    def mean(self, measure: str) -> Floats:
        """The mean over target words, [M, M]; NaN where no row means anything."""
        values: Floats = getattr(self, measure)
        if values.ndim == 2:
            return values
        defined = ~np.isnan(values)
        total, count = np.where(defined, values, 0).sum(-1), defined.sum(-1)
        mean: Floats = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
        return mean


def agreement(maps: Floats, links: Sequence[Links], top: int) -> Agreement:
    """All measures for one sentence.

    Args:
        maps: word maps of M methods, [M, J, I].
        links: their links.
        top: how many source words count as named; sentences of no more words have no such overlap.
    """
    shared = np.array([[link_f1(a, b) for b in links] for a in links])
    return Agreement(spearman_rows(maps), kendall_rows(maps), top_rows(maps, top), jsd_rows(maps), shared)


def spearman_rows(maps: Floats) -> Floats:
    """Spearman's rho of maps [M, J, I], the mean rank at ties. [M, M, J], NaN for constant rows and short ones."""
    from scipy.stats import rankdata

    if maps.shape[2] < LEAST_WORDS:
        return np.full((len(maps), len(maps), maps.shape[1]), np.nan)
    ranks = rankdata(maps, axis=2)
    return _cosines(ranks - ranks.mean(2, keepdims=True))


def kendall_rows(maps: Floats) -> Floats:
    """Kendall's tau-b of maps [M, J, I]. [M, M, J], NaN for constant rows and short ones."""
    size = maps.shape[2]
    if size < LEAST_WORDS:
        return np.full((len(maps), len(maps), maps.shape[1]), np.nan)
    first, second = np.triu_indices(size, 1)
    return _cosines(np.sign(maps[:, :, first] - maps[:, :, second]))


def _cosines(vectors: Floats) -> Floats:
    """Cosine of every two of the vectors [M, J, N] of a row. [M, M, J], NaN where a vector is zero."""
    lengths = np.sqrt((vectors**2).sum(2))
    products = np.einsum("ajn,bjn->abj", vectors, vectors)
    spread = lengths[:, None] * lengths[None]
    cosines: Floats = np.divide(products, spread, out=np.full(products.shape, np.nan), where=spread > SMALL)
    return cosines


def top_rows(maps: Floats, top: int) -> Floats:
    """Share of the `top` source words that two maps have in common; the first of equals counts. [M, M, J]"""
    count, size_j, size_i = maps.shape
    if size_i <= top:
        return np.full((count, count, size_j), np.nan)
    chosen = np.zeros(maps.shape)
    np.put_along_axis(chosen, np.argsort(-maps, axis=2, kind="stable")[:, :, :top], 1.0, axis=2)
    shared: Floats = np.einsum("aji,bji->abj", chosen, chosen) / top
    shared[np.broadcast_to(_constant(maps), shared.shape)] = np.nan
    return shared


def _constant(maps: Floats) -> NDArray[np.bool_]:
    """Where one of two rows is constant. [M, M, J]"""
    flat = np.ptp(maps, axis=2) <= SMALL if maps.shape[2] else np.ones(maps.shape[:2], bool)
    both: NDArray[np.bool_] = flat[:, None] | flat[None]
    return both


def jsd_rows(maps: Floats) -> Floats:
    """Jensen-Shannon divergence of the rows' positive parts, normalised. [M, M, J], NaN where one has none."""
    shares = np.stack([row_shares(matrix) for matrix in maps])
    result = np.full((len(maps), len(maps), maps.shape[1]), np.nan)
    some = shares.sum(2) > 0
    for a in range(len(maps)):
        middle = (shares[a] + shares) / 2  # [M, J, I]
        ours = np.broadcast_to(shares[a], middle.shape)
        result[a] = (_relative_entropy(ours, middle) + _relative_entropy(shares, middle)) / 2
    result[~(some[:, None] & some[None])] = np.nan
    return result


def _relative_entropy(p: Floats, q: Floats) -> Floats:
    ratio = np.divide(p, q, out=np.ones_like(q), where=p > 0)
    entropy: Floats = (p * np.log(ratio)).sum(-1)
    return entropy.clip(min=0)


def link_f1(a: Links, b: Links) -> float:
    """F1 of one set of links against the other; NaN where both are empty."""
    return 2 * len(a & b) / (len(a) + len(b)) if a or b else float("nan")


def pair_rows(
    labels: Sequence[str], sentences: Sequence[Agreement], resamples: int, seed: int
) -> list[dict[str, object]]:
    """A row for every two methods: each measure over the corpus with its 95% interval over sentences, and
    `rows_left_out`, how many target words have no rank correlation.
    """
    pairs = list(combinations(range(len(labels)), 2))
    rows: list[dict[str, object]] = [{"method": labels[a], "other": labels[b]} for a, b in pairs]
    for measure in MEASURES:
        means = [sentence.mean(measure) for sentence in sentences]
        tables = [[_counted(float(mean[pair])) for mean in means] for pair in pairs]
        for row, interval in zip(rows, paired_means(tables, resamples, seed), strict=True):
            row |= {measure: interval.value, f"{measure}_low": interval.low, f"{measure}_high": interval.high}
    for row, (a, b) in zip(rows, pairs, strict=True):
        row["rows_left_out"] = sum(int(np.isnan(s.spearman[a, b]).sum()) for s in sentences)
    return rows


def _counted(value: float) -> tuple[float, float]:
    """A value and its count for `paired_means`."""
    return (0.0, 0.0) if np.isnan(value) else (value, 1.0)


def matrix(labels: Sequence[str], rows: Sequence[Mapping[str, object]], measure: str) -> Floats:
    """The table of a measure between all methods, [M, M]; NaN where undefined, the diagonal what equal maps have."""
    place = {label: number for number, label in enumerate(labels)}
    table = np.full((len(labels), len(labels)), np.nan)
    np.fill_diagonal(table, 0.0 if measure == "jsd" else 1.0)
    for row in rows:
        value = row[measure]
        if isinstance(value, float):
            a, b = place[str(row["method"])], place[str(row["other"])]
            table[a, b] = table[b, a] = value
    return table


def clustering(table: Floats, measure: str) -> Floats:
    """Average-linkage clustering of a table of `matrix` as SciPy's linkage matrix; undefined pairs are far apart."""
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import squareform

    distance = table / np.log(2) if measure == "jsd" else 1 - table
    distance = np.where(np.isnan(distance), 2.0, distance).clip(min=0)
    np.fill_diagonal(distance, 0)
    tree: Floats = linkage(squareform(distance, checks=False), "average", optimal_ordering=True)
    return tree


def order(table: Floats, measure: str) -> list[int]:
    """The methods in an order that puts similar ones side by side."""
    from scipy.cluster.hierarchy import leaves_list

    if len(table) < 3:
        return list(range(len(table)))
    return [int(n) for n in leaves_list(clustering(table, measure))]


def kind_rows(
    kinds: Sequence[str], sentences: Sequence[Agreement], measure: str, resamples: int, seed: int
) -> list[dict[str, object]]:
    """The measure between methods of two kinds (attention, sensitivity, saliency), the mean over their pairs.

    A method is not compared with itself. Each with its 95% interval over sentences.
    """
    names = sorted(set(kinds))
    cells: list[tuple[str, str]] = []
    tables: list[list[tuple[float, float]]] = []
    for number, one in enumerate(names):
        for other in names[number:]:
            pairs = [(a, b) for a, b in combinations(range(len(kinds)), 2) if {kinds[a], kinds[b]} == {one, other}]
            if pairs:
                cells.append((one, other))
                tables.append([_counted(_mean([float(s.mean(measure)[pair]) for pair in pairs])) for s in sentences])
    return [
        {"kind": one, "with": other, measure: i.value, f"{measure}_low": i.low, f"{measure}_high": i.high}
        for (one, other), i in zip(cells, paired_means(tables, resamples, seed), strict=True)
    ]


def _mean(values: Sequence[float]) -> float:
    defined = [value for value in values if not np.isnan(value)]
    return sum(defined) / len(defined) if defined else float("nan")
