"""The demo pairs: grammar, gold links, hand-made pairs, and what is kept apart for testing."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from functools import cache
from importlib.resources import as_file, files
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.demo import DemoPair, english, generate, german, handmade, held_out, training
from data.demo.draw import Draw
from data.demo.grammar import sentence
from data.demo.lexicon import Noun, adjectives, compounds, nouns, table, uses, verbs
from data.demo.nouns import Request, noun_phrase
from data.demo.phrases import Bond, Phrase, gold, link, merge, units, words
from data.errors import UsageError
from data.links import GoldAlignment, read_gold

SAMPLE = 4000
PHENOMENA = (
    "adjective anaphor attribute comparison compound contraction contrast coordination correlative existential "
    "experiencer future genitive gern idiom imperative impersonal infinitive inversion kein modal negation numeral "
    "particle passive past perfect pluperfect possessive preterite progressive pronoun question since soon would"
).split()
SPACED = (
    "content clause",
    "object first",
    "past progressive",
    "pronominal adverb",
    "relative clause",
    "separable verb",
)
FUNCTION_WORDS = frozenset(
    "der die das den dem des denen , Sie sich mich mir dich dir uns ja doch eben halt wohl mal bitte dass".split()
)


@cache
def sample() -> tuple[DemoPair, ...]:
    return tuple(generate(5, SAMPLE))


def noun_named(german_word: str) -> Noun:
    return next(noun for noun in nouns() if noun.german == german_word)


# The algebra of phrases


def test_links_follow_words_wherever_they_go() -> None:
    verb, particle, subject = Bond(), Bond(), link("sie", "she")
    source = words("macht", verb, particle) + subject.de + words("auf", verb, possible=[particle])
    target = subject.en + words("opens", verb) + words("up", particle)
    found = gold(Phrase(source, target))
    assert found.sure == {(0, 1), (0, 2), (1, 0), (2, 1)}
    assert found.possible - found.sure == {(2, 2)}


def test_two_possible_ends_make_no_link() -> None:
    bond = Bond()
    phrase = Phrase(words("hat", possible=[bond]), words("did", possible=[bond]))
    assert gold(phrase) == GoldAlignment(frozenset(), frozenset())


def test_units_and_merged_words_are_many_to_many() -> None:
    phrase = units("zum_Glück heute", "fortunately this_morning")
    assert gold(phrase).sure == {(0, 0), (1, 0), (2, 1), (2, 2)}
    pair = link("in", "in") + link("dem", "the")
    assert gold(Phrase((merge("im", *pair.de),), pair.en)).sure == {(0, 0), (0, 1)}


# Forms


@pytest.mark.parametrize(
    ("noun", "determiner", "case", "plural", "expected"),
    [
        ("Tisch", "the", "nom", False, "der"),
        ("Tisch", "the", "acc", False, "den"),
        ("Tisch", "the", "dat", True, "den"),
        ("Tisch", "a", "acc", False, "einen"),
        ("Tasche", "a", "dat", False, "einer"),
        ("Tasche", "the", "gen", False, "der"),
        ("Buch", "no", "nom", False, "kein"),
        ("Buch", "this", "nom", False, "dieses"),
        ("Buch", "the", "dat", False, "dem"),
        ("Buch", "many", "dat", True, "vielen"),
        ("Kind", "every", "acc", False, "jedes"),
    ],
)
def test_determiners_agree(noun: str, determiner: str, case: str, plural: bool, expected: str) -> None:
    entry = noun_named(noun)
    for seed in range(20):
        request = Request(entry.kinds, case, determiner=determiner, plural=plural)  # type: ignore[arg-type]
        assert noun_phrase(Draw(str(seed)), entry, request).phrase.de[0].text == expected


@pytest.mark.parametrize(
    ("declension", "case", "gender", "expected"),
    [
        ("weak", "nom", "m", "alte"),
        ("weak", "acc", "m", "alten"),
        ("weak", "acc", "f", "alte"),
        ("weak", "dat", "n", "alten"),
        ("mixed", "nom", "m", "alter"),
        ("mixed", "acc", "n", "altes"),
        ("mixed", "nom", "p", "alten"),
        ("strong", "dat", "f", "alter"),
        ("strong", "dat", "m", "altem"),
        ("strong", "acc", "p", "alte"),
        ("strong", "gen", "n", "alten"),
    ],
)
def test_adjectives_agree(declension: str, case: str, gender: str, expected: str) -> None:
    assert german.adjective("alt", declension, case, gender) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("noun", "case", "plural", "expected"),
    [
        ("Haus", "gen", False, "Hauses"),
        ("Bus", "gen", False, "Busses"),
        ("Geheimnis", "gen", False, "Geheimnisses"),
        ("Lehrerin", "gen", False, "Lehrerin"),
        ("Student", "acc", False, "Studenten"),
        ("Nachbar", "dat", False, "Nachbarn"),
        ("Junge", "gen", False, "Jungen"),
        ("Apfel", "dat", True, "Äpfeln"),
        ("Auto", "dat", True, "Autos"),
        ("Frau", "dat", True, "Frauen"),
    ],
)
def test_nouns_in_their_cases(noun: str, case: str, plural: bool, expected: str) -> None:
    assert german.noun(noun_named(noun), case, plural) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("verb", "present", "past", "participle"),
    [
        ("arbeiten", "arbeite arbeitest arbeitet arbeiten", "arbeitete arbeitetest arbeitete arbeiteten", "gearbeitet"),
        ("lesen", "lese liest liest lesen", "las last las lasen", "gelesen"),
        ("sein", "bin bist ist sind", "war warst war waren", "gewesen"),
        ("tanzen", "tanze tanzt tanzt tanzen", "tanzte tanztest tanzte tanzten", "getanzt"),
        ("öffnen", "öffne öffnest öffnet öffnen", "öffnete öffnetest öffnete öffneten", "geöffnet"),
        ("füttern", "füttere fütterst füttert füttern", "fütterte füttertest fütterte fütterten", "gefüttert"),
        ("besuchen", "besuche besuchst besucht besuchen", "besuchte besuchtest besuchte besuchten", "besucht"),
        ("finden", "finde findest findet finden", "fand fandest fand fanden", "gefunden"),
        ("reparieren", "repariere reparierst repariert reparieren", None, "repariert"),
        ("möchten", "möchte möchtest möchte möchten", None, None),
    ],
)
def test_german_verbs(verb: str, present: str, past: str | None, participle: str | None) -> None:
    persons = [german.PRONOUNS[key] for key in ("ich", "du", "sie", "sie alle")]
    assert [german.finite(verb, "present", person) for person in persons] == present.split()
    if past:
        assert [german.finite(verb, "past", person) for person in persons] == past.split()
    if participle:
        assert german.participle(verb) == participle


def test_english_forms() -> None:
    assert [english.plural(noun) for noun in ("story", "box", "shop assistant", "child", "key")] == [
        "stories",
        "boxes",
        "shop assistants",
        "children",
        "keys",
    ]
    assert [english.progressive(verb) for verb in ("run", "lie", "write", "see", "visit", "forget")] == [
        "running",
        "lying",
        "writing",
        "seeing",
        "visiting",
        "forgetting",
    ]
    assert [english.finite(verb, "present", "he") for verb in ("carry", "wash", "go", "be", "can")] == [
        "carries",
        "washes",
        "goes",
        "is",
        "can",
    ]
    assert english.degrees("big") == ("bigger", "biggest")
    assert english.degrees("expensive") == ("more expensive", "most expensive")
    assert [english.article(word) for word in ("old", "university", "umbrella", "honest", "house")] == [
        "an",
        "a",
        "an",
        "an",
        "a",
    ]


def test_numbers() -> None:
    assert [german.number(n) for n in (7, 16, 17, 20, 21, 99)] == [
        "sieben",
        "sechzehn",
        "siebzehn",
        "zwanzig",
        "einundzwanzig",
        "neunundneunzig",
    ]
    assert [english.number(n) for n in (7, 15, 18, 40, 99)] == ["seven", "fifteen", "eighteen", "forty", "ninety-nine"]


# The vocabulary


def test_size_of_the_vocabulary() -> None:
    lemmas = {noun.german for noun in nouns()} | {use.name for use in uses()} | {a.german for a in adjectives()}
    assert 300 <= len(lemmas) <= 450
    assert 100 <= sum(map(len, compounds().values())) <= 300


def test_every_class_that_is_asked_for_has_nouns() -> None:
    known = frozenset().union(*(noun.kinds for noun in nouns())) | {"es"}
    asked = [kinds for use in uses() for kinds in (use.frame.subject, *(a.kinds for a in use.frame.arguments))]
    asked += [verb.where for verb in verbs()] + [adjective.kinds for adjective in adjectives()]
    assert frozenset().union(*asked) <= known


def test_irregular_forms_are_used() -> None:
    """No row of the tables of irregular verbs is idle, but for auxiliaries."""
    helpers = {"werden", "können", "müssen", "wollen", "sollen", "dürfen"}
    assert {row["infinitive"] for row in table("german_verbs")} <= helpers | {use.verb.german for use in uses()}
    assert {row["base"] for row in table("english_verbs")} <= {use.verb.english for use in uses()}


# Generated pairs


def test_a_pair_depends_on_seed_and_number_alone() -> None:
    assert list(generate(3, 12))[:5] == list(generate(3, 5))
    assert list(generate(3, 5)) != list(generate(4, 5))


def test_the_language_stays_the_same() -> None:
    """The shipped models learned from this text; another text asks for other models (scripts/train_demo_models.py)."""
    text = "\n".join(" ".join((*pair.source, *pair.target)) for pair in generate(0, 300))
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "5173af0b0bc15ae6"


@given(st.integers(0, 2**40))
@settings(deadline=None, max_examples=200)
def test_any_seed_makes_a_well_formed_pair(seed: int) -> None:
    (pair,) = generate(seed, 1)
    check(pair)


def test_sample_is_well_formed() -> None:
    for pair in sample():
        check(pair)


def check(pair: DemoPair) -> None:
    source, target, links = pair.source, pair.target, pair.gold
    assert 2 <= len(source) <= 25
    assert 2 <= len(target) <= 25
    assert all(re.fullmatch(r"[A-Za-zÄÖÜäöüß]+(-[a-z]+)?|'s|[.,?!]", word) for word in source + target)
    assert source[-1] == target[-1]
    assert source[-1] in ".?!"
    assert (len(source) - 1, len(target) - 1) in links.sure
    assert links.sure <= links.possible
    assert all(0 <= i < len(source) and 0 <= j < len(target) for i, j in links.possible)
    assert {j for _, j in links.possible} | {j for j, word in enumerate(target) if word == ","} == set(
        range(len(target))
    )
    alone = set(range(len(source))) - {i for i, _ in links.possible}
    assert {source[i] for i in alone} <= FUNCTION_WORDS
    for side in (source, target):
        assert not re.search(r", [,.?!]", " ".join(side))


def test_spread_of_phenomena() -> None:
    counts = Counter(tag for pair in sample() for tag in pair.tags)
    rare = {"since", "object first", "would"}
    assert {tag for tag in (*PHENOMENA, *SPACED) if counts[tag] < (3 if tag in rare else 20)} == set()


def test_spread_of_lengths_and_of_order() -> None:
    lengths = Counter(len(pair.source) for pair in sample())
    assert all(lengths[length] > SAMPLE * 0.01 for length in range(4, 18))
    crossing = sum(crosses(pair.gold) for pair in sample())
    assert crossing > SAMPLE * 0.4
    far = sum(any(abs(i - j) > 4 for i, j in pair.gold.sure) for pair in sample())
    assert far > SAMPLE * 0.1


def crosses(links: GoldAlignment) -> bool:
    ordered = sorted(links.sure)
    return any(here[0] < there[0] and here[1] > there[1] for here, there in pairwise(ordered))


def test_pairs_repeat_seldom() -> None:
    assert len({pair.source for pair in sample()}) > SAMPLE * 0.97


def test_agreement_in_sentences() -> None:
    """Forms that would be wrong in any sentence never come."""
    text = "\n".join(" ".join(pair.source) for pair in sample())
    alone = "\n".join(line for line in text.splitlines() if "," not in line)  # no relative clause that forbids im, zum
    assert not re.search(r"\b(in|an|von|bei|zu) dem (Haus|Bahnhof|Garten|Park|Fest)\b", alone)
    assert not re.search(
        r"\b(ein|kein) (Frau|Tasche|Katze)\b|\beine (Mann|Hund|Buch)\b|\bich (ist|hat|war\w+en)\b", text
    )
    english_text = "\n".join(" ".join(pair.target) for pair in sample())
    assert not re.search(r"\ba [aei]|\ban [bcdfgjklmnpqrstvwxyz]|\b(he|she|it) (are|were|am)\b", english_text)
    assert not re.search(r"\bcan not\b|\b(does|did|do) \w+ed\b", english_text)


# Hand-made pairs


def test_handmade_pairs_are_well_formed() -> None:
    pairs = handmade()
    assert len(pairs) == 60
    assert all(5 <= len(pair.source) <= 20 and 5 <= len(pair.target) <= 20 for pair in pairs)
    for pair in pairs:
        alone = {pair.source[i] for i in range(len(pair.source)) if all(i != k for k, _ in pair.gold.possible)}
        assert alone <= FUNCTION_WORDS
        bare = {pair.target[j] for j in range(len(pair.target)) if all(j != k for _, k in pair.gold.possible)}
        assert bare == set()
        assert pair.source[-1] == pair.target[-1]
        assert (len(pair.source) - 1, len(pair.target) - 1) in pair.gold.sure


def test_handmade_gold_is_read_like_any_other() -> None:
    lengths = [(len(pair.source), len(pair.target)) for pair in handmade()]
    with as_file(files("data.demo") / "handmade.gold") as path:
        assert list(read_gold(path, lengths=lengths)) == [pair.gold for pair in handmade()]


@pytest.mark.slow
def test_handmade_words_are_words_of_the_grammar() -> None:
    text = list(generate(11, 25_000))
    sources = {word for pair in text for word in pair.source}
    targets = {word for pair in text for word in pair.target}
    assert {word for pair in handmade() for word in pair.source} <= sources
    assert {word for pair in handmade() for word in pair.target} <= targets


# Training and testing apart


def test_held_out_pairs_are_distinct_and_in_order() -> None:
    assert held_out(7) == held_out()[:7]
    assert len(held_out()) == 200
    assert len({(pair.source, pair.target) for pair in held_out(500)}) == 500


@pytest.mark.parametrize("count", [-1, 501])
def test_held_out_is_limited(count: int) -> None:
    with pytest.raises(UsageError, match="500"):
        held_out(count)


def test_training_leaves_out_what_is_kept_back() -> None:
    kept = (*held_out(500), *handmade())
    text = list(training(-1, 300))  # the very seed of the held-out pairs
    assert len(text) == 300
    assert not {pair.source for pair in kept} & {pair.source for pair in text}
    assert not {pair.target for pair in kept} & {pair.target for pair in text}
    assert list(training(6, 10))[:4] == list(training(6, 4))


def test_sentence_notes_what_it_is_made_of() -> None:
    draw = Draw("0:0:0")
    sentence(draw)
    assert draw.tags
