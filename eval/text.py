"""Words of a text as people can see them."""

from __future__ import annotations

import unicodedata

_HIDDEN = frozenset({"Cc", "Cs", "Co", "Cn", "Zl", "Zp"})
_DIRECTIONS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def visible(word: str) -> str:
    r"""`word` with control characters and direction marks written as `\u202e`; so is a word of blanks only.

    Joiners and other characters that shape letters stay.
    """
    if not word.strip():
        return word.encode("unicode_escape").decode("ascii")
    return "".join(c.encode("unicode_escape").decode("ascii") if _is_hidden(c) else c for c in word)


def _is_hidden(character: str) -> bool:
    return character in _DIRECTIONS or unicodedata.category(character) in _HIDDEN
