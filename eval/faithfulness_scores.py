"""From sentences to scores: means with intervals, how far rankings depend on the corruption, and plausibility."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from eval.aer import scores, sentence_stats, total
from eval.bootstrap import draws, paired_means
from eval.faithfulness import ORACLE, RANDOM

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from data.links import GoldAlignment, Links
    from eval.erasure import Floats
    from eval.faithfulness import Measured, Sentence

Row = dict[str, object]
STABLE = 0.7  # Kendall's tau between corruptions below which a ranking is said to depend on the corruption
FIELDS = ("comp", "suff")


def method_rows(sentences: Sequence[Sentence], bins: Sequence[float], resamples: int, seed: int) -> list[Row]:
    """A row for each order: the random floor first, then methods by falling comprehensiveness, then the oracle.

    `comp` and `suff` are means over target words and bins, with intervals over sentences; `p_value` is of the
    hypothesis that `comp` is that of random orders, `p_best` that it is that of the best method. `of_ceiling` puts
    comprehensiveness between the floor (0) and the oracle (1), on the sentences that are short enough for an oracle.
    """
    names = [RANDOM, *(name for name in sentences[0].forward if name not in (RANDOM, ORACLE))]
    names += [ORACLE] if any(ORACLE in sentence.forward for sentence in sentences) else []
    tables = {field: [_pairs(sentences, name, field) for name in names] for field in FIELDS}
    found = {field: paired_means(table, resamples, seed) for field, table in tables.items()}
    to_best = _to_best(dict(zip(names, tables["comp"], strict=True)), resamples, seed)
    rows: list[Row] = []
    for n, name in enumerate(names):
        comp, suff = found["comp"][n], found["suff"][n]
        row: Row = {"method": name, "comp": comp.value, "comp_low": comp.low, "comp_high": comp.high}
        row |= {
            "p_value": comp.p_value,
            "p_best": to_best.get(name),
            "suff": suff.value,
            "suff_low": suff.low,
            "suff_high": suff.high,
        }
        row["comp_reversed"] = _reversed(sentences, name)
        row["of_ceiling"] = _of_ceiling(sentences, name)
        rows.append(row | _details(sentences, name, bins))
    middle = sorted(rows[1 : len(names) - (names[-1] == ORACLE)], key=lambda row: -float(str(row["comp"])))
    return [rows[0], *middle, *rows[1 + len(middle) :]]


def _to_best(tables: Mapping[str, Sequence[tuple[float, float]]], resamples: int, seed: int) -> dict[str, float | None]:
    """For each method the p-value of the hypothesis that it is as comprehensive as the best; None for the best."""
    means = {name: np.sum(table, axis=0) for name, table in tables.items() if name not in (RANDOM, ORACLE)}
    ranked = sorted(means, key=lambda name: -float(means[name][0] / means[name][1]))
    found = paired_means([tables[name] for name in ranked], resamples, seed)
    return {name: mean.p_value for name, mean in zip(ranked, found, strict=True)}


def _pairs(sentences: Sequence[Sentence], name: str, field: str) -> list[tuple[float, float]]:
    """The sum of a score, meaned over bins, and the number of target words, for each sentence; (0, 0) without."""
    found = (sentence.forward.get(name) for sentence in sentences)
    return [(0.0, 0.0) if m is None else (float(getattr(m, field).mean()), float(m.words)) for m in found]


def _having(sentences: Sequence[Sentence], name: str) -> list[Measured]:
    return [sentence.forward[name] for sentence in sentences if name in sentence.forward]


def _reversed(sentences: Sequence[Sentence], name: str) -> float | None:
    if name not in sentences[0].reverse:
        return None
    total = sum(float(sentence.reverse[name].mean()) for sentence in sentences)
    return total / sum(sentence.forward[name].words for sentence in sentences)


def _of_ceiling(sentences: Sequence[Sentence], name: str) -> float | None:
    short = [sentence.forward for sentence in sentences if ORACLE in sentence.forward]
    if not short:
        return None
    floor, top, ours = (sum(float(s[n].comp.mean()) for s in short) for n in (RANDOM, ORACLE, name))
    return (ours - floor) / (top - floor) if top > floor else None


def _details(sentences: Sequence[Sentence], name: str, bins: Sequence[float]) -> Row:
    """The areas under both curves, and both scores at each bin."""
    having = _having(sentences, name)
    words = sum(m.words for m in having)
    row: Row = {"words": words, "sentences": len(having)}
    row |= {field: sum(getattr(m, field) for m in having) / words for field in ("deletion", "insertion")}
    for field in FIELDS:
        totals = sum(getattr(m, field) for m in having) / words
        row |= {f"{field}_{100 * share:g}": float(total) for share, total in zip(bins, totals, strict=True)}
    return row


def stability(measured: Mapping[str, Sequence[Sentence]], resamples: int, seed: int) -> list[Row]:
    """Kendall's tau between the rankings of the methods under each two corruptions, with intervals over sentences."""
    rows: list[Row] = []
    for field in FIELDS:
        means = {name: _resampled_means(sentences, field, resamples, seed) for name, sentences in measured.items()}
        for first, second in combinations(means, 2):
            taus = kendall(means[first], means[second])
            low, high = np.percentile(taus[1:], [2.5, 97.5]).tolist() if resamples else (None, None)
            rows.append(
                {
                    "score": field,
                    "first": first,
                    "second": second,
                    "tau": float(taus[0]),
                    "tau_low": low,
                    "tau_high": high,
                }
            )
    return rows


def _resampled_means(sentences: Sequence[Sentence], field: str, resamples: int, seed: int) -> Floats:
    """Mean score of each method, first of all sentences, then of each resample. [1 + R, M]"""
    names = [name for name in sentences[0].forward if name not in (RANDOM, ORACLE)]
    sums = np.array([_pairs(sentences, name, field) for name in names])  # [M, N, 2]
    counts = np.concatenate([np.ones((1, len(sentences))), *draws(len(sentences), resamples, seed)])
    totals = counts @ sums  # [M, 1 + R, 2]
    means: Floats = (totals[..., 0] / totals[..., 1]).T
    return means


def kendall(first: Floats, second: Floats) -> Floats:
    """Kendall's tau-a between rows of two tables of scores [R, M]; NaN for fewer than two scores. [R]"""
    pairs = np.array(list(combinations(range(first.shape[1]), 2))).reshape(-1, 2)
    if not len(pairs):
        return np.full(len(first), np.nan)
    agree = np.sign(first[:, pairs[:, 0]] - first[:, pairs[:, 1]]) * np.sign(
        second[:, pairs[:, 0]] - second[:, pairs[:, 1]]
    )
    tau: Floats = agree.mean(1)
    return tau


def warnings(rows: Sequence[Row], best: Mapping[str, str]) -> list[str]:
    """What of the rankings depends on the corruption.

    Args:
        rows: of `stability`.
        best: the most comprehensive method under each corruption.
    """
    found = []
    for field in FIELDS:
        unstable = sorted(
            (float(str(row["tau"])), f"{row['first']} and {row['second']}")
            for row in rows
            if row["score"] == field and float(str(row["tau"])) < STABLE
        )
        if unstable:
            every = sum(row["score"] == field for row in rows)
            found.append(
                f"the ranking by {field} depends on the corruption: tau is below {STABLE} for {len(unstable)} of "
                f"{every} pairs of corruptions, {unstable[0][0]:.2f} between {unstable[0][1]}; claim nothing that one "
                "of them alone shows"
            )
    if len(set(best.values())) > 1:
        each = "; ".join(f"{corruption}: {name}" for corruption, name in best.items())
        found.append(f"which method is most comprehensive depends on the corruption ({each})")
    return found


def plausibility(
    sentences: Sequence[Sentence],
    links: Mapping[str, Mapping[int, Links]],
    gold: Mapping[int, GoldAlignment],
    resamples: int,
    seed: int,
) -> list[Row]:
    """Are plausible maps faithful? Over sentences, Spearman's rho between 1 - AER and comprehensiveness.

    Comprehensiveness is taken above that of random orders of the same sentence, as some sentences lose more whatever
    is erased.

    Args:
        links: by method, the links of each pair by its id.
        gold: by the id of the pair.
    """
    rows: list[Row] = []
    for name, found in links.items():
        table = []
        for sentence in sentences:
            number = sentence.pair.pair.id
            aer = scores(sentence_stats(found[number], gold[number])).aer
            ours, floor = sentence.forward[name], sentence.forward[RANDOM]
            if aer is not None:
                table.append((1 - aer, float((ours.comp.mean() - floor.comp.mean()) / ours.words)))
        rho, low, high = spearman(np.array(table).reshape(-1, 2), resamples, seed)
        whole = scores(total(sentence_stats(found[key], gold[key]) for key in (s.pair.pair.id for s in sentences)))
        row: Row = {"method": name, "aer": whole.aer, "rho": rho, "rho_low": low, "rho_high": high}
        rows.append({**row, "sentences": len(table)})
    return rows


def over_methods(plausible: Sequence[Row], faithful: Sequence[Row]) -> list[str]:
    """Whether the methods that agree best with people are the most comprehensive, in a line for each corruption."""
    comp = {(row["corruption"], row["method"]): float(str(row["comp"])) for row in faithful}
    lines = []
    for corruption in dict.fromkeys(row["corruption"] for row in plausible):
        ours = [row for row in plausible if row["corruption"] == corruption and row["aer"] is not None]
        if len(ours) > 1:
            pairs = np.array([[-float(str(row["aer"])), comp[corruption, row["method"]]] for row in ours])
            tau = float(kendall(pairs[None, :, 0], pairs[None, :, 1])[0])
            lines.append(
                f"{corruption}: tau over {len(ours)} methods between 1 - AER and comprehensiveness is {tau:.2f}"
            )
    return lines


def spearman(table: Floats, resamples: int, seed: int) -> tuple[float | None, float | None, float | None]:
    """Spearman's rho of two columns [N, 2], with the 2.5th and 97.5th percentile over resampled rows."""
    from scipy.stats import rankdata

    if len(table) < 3:
        return None, None, None
    rng = np.random.default_rng(seed)
    picked = np.concatenate([np.arange(len(table))[None], rng.integers(len(table), size=(resamples, len(table)))])
    ranks = [rankdata(table[picked, column], axis=1) for column in range(2)]
    first, second = (r - r.mean(1, keepdims=True) for r in ranks)
    spread = np.sqrt((first**2).sum(1) * (second**2).sum(1))
    rho = np.divide((first * second).sum(1), spread, out=np.full(len(spread), np.nan), where=spread > 0)
    defined = rho[1:][np.isfinite(rho[1:])]
    low, high = np.percentile(defined, [2.5, 97.5]).tolist() if len(defined) else (None, None)
    return (float(rho[0]) if np.isfinite(rho[0]) else None), low, high
