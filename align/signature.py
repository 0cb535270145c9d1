"""Signatures: the settings behind a number in one line, `key:value|key:value`, the package's version last."""

from __future__ import annotations

from typing import TYPE_CHECKING

from align import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping


def signature(settings: Mapping[str, object]) -> str:
    """`settings` in their order as one line, with this package's version.

    Booleans read `yes` and `no`, floats are short; settings that are None do not apply and are left out.
    """
    fields = {**settings, "version": __version__}
    return "|".join(f"{key}:{_shown(value)}" for key, value in fields.items() if value is not None)


def _shown(value: object) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:g}"
    return str(value)
