"""What users write for a thing with options: `name:option=value:option=value`, and lists of such."""

from __future__ import annotations

import re
from dataclasses import fields
from itertools import product
from typing import Any

from data.errors import UsageError, printable, unknown_name

AUTO = "auto"


def is_auto(spec: str) -> bool:
    """Whether a method, or an option of it, is to be chosen (`align.choose`)."""
    return re.fullmatch(rf"{AUTO}(\(.*\))?", spec) is not None or f"={AUTO}" in spec


def parse_options(kind: type, spec: str) -> dict[str, Any]:
    """The options that `spec` gives, as the fields of the dataclass `kind` want them; the name is not looked at.

    Raises:
        UsageError: an option that `kind` has not, or a value of the wrong sort.
    """
    name, *pairs = spec.split(":")
    defaults = {field.name: field.default for field in fields(kind)}
    options: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"expected option=value in {printable(spec)}, found {printable(pair)}")
        if key not in defaults:
            raise unknown_name(f"option of {name}", key, defaults)
        options[key] = _value(key, value, defaults[key])
    return options


def _value(key: str, text: str, default: object) -> int | float | str:
    if isinstance(default, str):
        # `heads` takes a word or a number; other words stay words.
        return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else text
    if isinstance(default, int) and re.fullmatch(r"-?[0-9]{1,9}", text):
        return int(text)
    if isinstance(default, float) and re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text):
        return float(text)
    kind = "a whole number" if isinstance(default, int) else "a number"
    raise UsageError(f"option {key} takes {kind}, not {printable(text)}")


def split_list(text: str) -> list[str]:
    """The items of a list with commas; a comma within brackets belongs to an item.

    Raises:
        UsageError: brackets that do not match.
    """
    items, depth = [""], 0
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth < 0:
            break
        if character == "," and not depth:
            items.append("")
        else:
            items[-1] += character
    if depth:
        raise UsageError(f"the brackets of {printable(text)} do not match")
    return [item.strip() for item in items]


def alternatives(spec: str) -> list[str]:
    """All specs that `name:option=value|value` stands for: one for each choice of values."""
    name, *pairs = spec.split(":")
    choices = [
        [f"{key}={value}" for value in values.split("|")] for key, _, values in (p.partition("=") for p in pairs)
    ]
    return [":".join([name, *chosen]) for chosen in product(*choices)]
