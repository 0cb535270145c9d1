"""Real gold standards, where the folder that holds them is beside the checkout (or at NMT_ALIGN_SHARED)."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from data.bitext import read_bitext, read_joint, read_lengths
from data.errors import DataError
from data.links import GoldAlignment, diagnose, format_gold, read_gold, read_links
from data.streams import read_lines

GOLD = Path(os.environ.get("NMT_ALIGN_SHARED") or Path(__file__).resolve().parents[3] / "shared") / "gold"

pytestmark = pytest.mark.skipif(not GOLD.is_dir(), reason=f"no gold standards at {GOLD}")


def listed() -> list[tuple[str, int, int, int]]:
    """Name, pairs, sure and possible links of each set, as its collection states them."""
    if not GOLD.is_dir():
        return []
    row = re.compile(r"\| `([\w-]+)` \|[^|]*\| (\d+) \| (\d+) \| (\d+) \|.*")
    matches = [row.fullmatch(text) for _, text in read_lines(GOLD / "README.md")]
    return [(m[1], int(m[2]), int(m[3]), int(m[4])) for m in matches if m]


def text_lengths(name: str) -> list[tuple[int, int]]:
    pairs = read_bitext(GOLD / name / "src", GOLD / name / "tgt")
    return [(len(pair.source), len(pair.target)) for pair in pairs]


def gold_of(name: str) -> list[GoldAlignment]:
    return list(read_gold(GOLD / name / "gold", lengths=text_lengths(name)))


def test_all_sets_are_listed() -> None:
    assert {name for name, *_ in listed()} == {path.name for path in GOLD.iterdir() if path.is_dir()}
    assert len(listed()) == 21


@pytest.mark.parametrize(("name", "pairs", "sure", "possible"), listed())
def test_counts_are_as_stated(name: str, pairs: int, sure: int, possible: int) -> None:
    gold = gold_of(name)
    assert len(gold) == pairs
    assert sum(len(pair.sure) for pair in gold) == sure
    assert sum(len(pair.possible) for pair in gold) == sure + possible


@pytest.mark.parametrize("name", [name for name, *_ in listed()])
def test_files_come_back_byte_for_byte(name: str) -> None:
    written = "".join(format_gold(gold) + "\n" for gold in read_gold(GOLD / name / "gold"))
    assert written == (GOLD / name / "gold").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "stem", "links"),
    [
        ("hansards-en-fr-test", "test", "test.wa.nonullalign"),
        ("hansards-en-fr-trial", "trial", "trial.wa"),
    ],
)
def test_naacl_originals_hold_the_same_links(name: str, stem: str, links: str) -> None:
    folder = GOLD / name / "orig"
    ids, lengths = zip(*read_lengths(folder / f"{stem}.e", folder / f"{stem}.f"), strict=True)
    assert list(read_gold(folder / links, "naacl", ids=ids, lengths=lengths)) == gold_of(name)
    assert list(lengths) == text_lengths(name)


def test_numbered_original_holds_the_same_links() -> None:
    folder = GOLD / "graca-en-fr"
    assert list(read_gold(folder / "orig" / "en-fr_pharaoh.wa", "numbered")) == gold_of("graca-en-fr")


def test_one_based_originals_hold_the_same_links() -> None:
    for name, stem in (("kftt-ja-en-test", "jaen"), ("wpt03-ro-en-test", "roen")):
        folder = GOLD / name / "orig"
        assert list(read_gold(folder / f"{stem}.gold", one_based=True)) == gold_of(name)
        assert len(list(read_joint(folder / f"{stem}.src-tgt"))) == len(gold_of(name))


@pytest.mark.parametrize(("name", "stem"), [("kftt-ja-en-test", "jaen"), ("wpt03-ro-en-test", "roen")])
def test_wrong_base_and_direction_are_told(name: str, stem: str, caplog: pytest.LogCaptureFixture) -> None:
    original = GOLD / name / "orig" / f"{stem}.gold"
    lengths = text_lengths(name)
    swapped = [(j, i) for i, j in lengths]
    with pytest.raises(DataError, match=r"fits when read as --one-based$"):
        list(read_gold(original, lengths=lengths))
    with pytest.raises(DataError, match=r"fits when read with --swap$"):
        list(read_gold(original, one_based=True, lengths=swapped))
    with pytest.raises(DataError, match=r"fits when read with --swap and as --one-based$"):
        list(read_gold(original, lengths=swapped))
    list(read_gold(original))
    assert "no link on a first word" in caplog.text


@pytest.mark.parametrize("name", [name for name, *_ in listed()])
def test_wrong_readings_are_noticed_without_text(name: str) -> None:
    path = GOLD / name / "gold"
    gold = list(read_gold(path))
    hypothesis = [pair.sure for pair in gold]
    assert diagnose(hypothesis, gold) is None
    assert "opposite directions" in str(diagnose(_moved(hypothesis, 0, swap=True), gold))
    assert "the hypothesis counts" in str(diagnose(_moved(hypothesis, 1), gold))
    assert "the gold counts" in str(diagnose(_moved(hypothesis, -1), gold))


def _moved(
    hypothesis: Sequence[frozenset[tuple[int, int]]], shift: int, *, swap: bool = False
) -> list[frozenset[tuple[int, int]]]:
    return [
        frozenset((j + shift, i + shift) if swap else (i + shift, j + shift) for i, j in links) for links in hypothesis
    ]


def test_possible_links_are_refused_in_a_hypothesis() -> None:
    with pytest.raises(DataError, match="possible link"):
        list(read_links(GOLD / "hansards-en-fr-test" / "gold", "gold"))
