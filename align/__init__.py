"""Word alignments from neural machine translation models."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

__version__ = "0.1.0"


def _check_neighbours() -> None:
    """Stop unless `data` and `eval` are the packages installed beside this one.

    The three names are common words, so another distribution or a folder in the working directory can
    take their place; the mistake should show here and not as an odd AttributeError later.
    """
    here = Path(__file__).resolve().parent
    for name in ("data", "eval"):
        spec = find_spec(name)
        found = Path(spec.origin).resolve().parent if spec and spec.origin else None
        if found != here.parent / name:
            raise ImportError(
                f"nmt-align needs its own package {name!r} at {here.parent / name}, but Python finds "
                f"{found or 'none'}. Rename or remove the other one, or run from another directory."
            )


_check_neighbours()
