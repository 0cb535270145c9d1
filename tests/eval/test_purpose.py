"""The opening of a report."""

from __future__ import annotations

from align.methods import make_method
from eval.purpose import READERS, opening


def test_kinds_stand_apart() -> None:
    methods = [make_method(spec) for spec in ("gradient-norm", "attention:layer=1", "occlusion", "lrp", "smoothgrad:base=l1")]
    lines = opening("end-user", "what?", methods)
    assert lines[:2] == ["Asked: what?", f"For: {READERS['end-user']}."]
    kinds = {line.partition(" ")[0]: line.partition("): ")[2] for line in lines[2:]}
    assert kinds == {
        "attention": str(methods[1]),
        "saliency": f"{methods[2]}, {methods[3]}",
        "sensitivity": f"{methods[0]}, {methods[4]}",
    }
    assert opening("developer", "what?") == ["Asked: what?", f"For: {READERS['developer']}."]
