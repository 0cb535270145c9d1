"""Signatures of results."""

from __future__ import annotations

from align import __version__
from align.signature import signature


def test_order_and_values() -> None:
    settings = {
        "method": "smoothgrad",
        "samples": 30,
        "sigma": 0.15,
        "eos": False,
        "swap": True,
        "layer": None,
    }
    expected = f"method:smoothgrad|samples:30|sigma:0.15|eos:no|swap:yes|version:{__version__}"
    assert signature(settings) == expected


def test_nothing_but_the_version() -> None:
    assert signature({}) == f"version:{__version__}"
