"""Which verbs may stand where, and in which tenses and moods."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from data.demo.lexicon import uses
from data.demo.verbs import FORMS

if TYPE_CHECKING:
    from data.demo.lexicon import Kinds, Use

PERSON = frozenset({"person"})
DYNAMIC = frozenset({"act", "once"})
_WEIGHTS: dict[str, dict[str, float]] = {
    "act": {
        "present": 9,
        "progressive": 11,
        "past": 11,
        "preterite": 6,
        "past progressive": 3,
        "perfect": 4,
        "pluperfect": 0.3,
        "future": 5,
        "soon": 2,
    },
    "once": {
        "present": 8,
        "past": 15,
        "preterite": 7,
        "perfect": 6,
        "pluperfect": 0.3,
        "future": 6,
        "soon": 3,
    },
    "state": {"present": 18, "past": 3, "preterite": 7, "future": 1.5},
    "weather": {"present": 3, "progressive": 7, "past": 3, "preterite": 3, "future": 3, "soon": 2},
}
_MOODS = {
    "can": 1.5,
    "could": 1,
    "must": 1,
    "have to": 1,
    "had to": 1,
    "want": 1.5,
    "wanted": 1,
    "should": 1,
    "may": 0.7,
    "might": 0.5,
    "would like": 1.2,
    "would": 0.8,
}
_LASTING = frozenset("arbeiten kennen lernen lieben schlafen spielen suchen warten wohnen".split())
PAST = frozenset(name for name, form in FORMS.items() if form.when == "past" and name != "pluperfect")
OPEN = frozenset(FORMS) - PAST - {"pluperfect", "would"}


def forms_for(use: Use) -> dict[str, float]:
    """Tenses and moods that suit the verb, with their weights; only persons want, may and should."""
    weights = dict(_WEIGHTS[use.verb.aspect])
    if PERSON & use.frame.subject and use.verb.aspect in DYNAMIC:
        weights |= _MOODS
    if use.name in _LASTING:
        weights["since"] = 2
    return weights


def forms_of(use: Use, names: Kinds) -> dict[str, float]:
    """Those of `names` that suit the verb."""
    return {name: weight for name, weight in forms_for(use).items() if name in names}


@cache
def uses_with(
    *,
    subject: Kinds | None = None,
    forms: Kinds | None = None,
    aspects: Kinds | None = None,
    clauses: bool = False,
    personal: bool = False,
    idioms: bool = True,
) -> tuple[Use, ...]:
    """Verbs in their frames, for a subject of one of these kinds and with one of these tenses.

    `clauses` allows for clauses as arguments, `personal` asks for the same subject in both languages.
    """
    return tuple(
        use
        for use in uses()
        if (subject is None or subject & use.frame.subject)
        and (forms is None or forms_of(use, forms))
        and (aspects is None or use.verb.aspect in aspects)
        and (clauses or not use.clausal)
        and not (personal and use.impersonal)
        and (idioms or not use.idiom)
    )


@cache
def uses_of_objects(forms: Kinds, kinds: Kinds | None = None, *, only: bool = False) -> tuple[tuple[Use, int], ...]:
    """Verbs of persons with a direct object (of these kinds), and its number; it is the `only` argument if asked so."""
    found = []
    for use in uses_with(subject=PERSON, forms=forms):
        k = use.object_at
        if k is None or (only and len(use.frame.arguments) > 1):
            continue
        if kinds is None or kinds & use.frame.arguments[k].kinds:
            found.append((use, k))
    return tuple(found)
