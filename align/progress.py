"""Progress bars of commands."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def progress_bar(total: float, unit: str = "pass") -> Callable[[float], Any]:
    """A bar on stderr that counts in `unit`; silent where stderr is no terminal."""
    from tqdm import tqdm

    bar: Any = tqdm(total=total, unit=unit, unit_scale=True, file=sys.stderr, disable=None, leave=False)
    update: Callable[[float], Any] = bar.update
    return update
