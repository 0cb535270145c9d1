"""Words to pieces and back: which word every subword piece belongs to.

A segmenter takes the tokens of one side of a pair and gives `Segmented`: the words that links count, the pieces
that the model reads, and for each piece the index of its word (-1 for a piece that belongs to none).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from data.errors import ModelError, UsageError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from pathlib import Path

NO_WORD = -1
BPE_MARK = "@@"
SPM_MARK = "▁"
INPUT_KINDS = ("auto", "words", BPE_MARK, SPM_MARK)


@dataclass(frozen=True)
class Segmented:
    """One side of a pair: I words, S pieces, and `word_of[s]` in 0..I-1 or -1."""

    words: tuple[str, ...]
    pieces: tuple[str, ...]
    word_of: tuple[int, ...]


class Segmenter(Protocol):
    """Anything that turns tokens into pieces; every piece belongs to one word or none, in order."""

    def __call__(self, tokens: Sequence[str]) -> Segmented: ...


def whole_words(tokens: Sequence[str]) -> Segmented:
    """Every word is one piece: models without subwords."""
    return Segmented(tuple(tokens), tuple(tokens), tuple(range(len(tokens))))


def joined_bpe(tokens: Sequence[str]) -> Segmented:
    """Tokens are subword-nmt pieces: `un@@ believ@@ able` is one word."""
    word_of, word = [], 0
    for token in tokens:
        word_of.append(word)
        word += not token.endswith(BPE_MARK)
    return _group(tokens, word_of, lambda pieces: "".join(p.removesuffix(BPE_MARK) for p in pieces))


def joined_spm(tokens: Sequence[str]) -> Segmented:
    """Tokens are SentencePiece pieces: `▁un believ able` is one word.

    A lone `▁` opens the word that an unmarked piece continues; before a marked piece, or at the end, it
    belongs to no word. A first piece without the mark opens the first word.
    """
    word_of, word = [], NO_WORD
    for position, token in enumerate(tokens):
        if token == SPM_MARK:
            following = tokens[position + 1] if position + 1 < len(tokens) else SPM_MARK
            if following.startswith(SPM_MARK):
                word_of.append(NO_WORD)
                continue
        if token.startswith(SPM_MARK) or word == NO_WORD:
            word += 1
        word_of.append(word)
    return _group(tokens, word_of, lambda pieces: "".join(pieces).replace(SPM_MARK, ""))


def _group(tokens: Sequence[str], word_of: list[int], join: JoinPieces) -> Segmented:
    groups: list[list[str]] = [[] for _ in range(max(word_of, default=NO_WORD) + 1)]
    for token, word in zip(tokens, word_of, strict=True):
        if word != NO_WORD:
            groups[word].append(token)
    return Segmented(tuple(join(group) for group in groups), tuple(tokens), tuple(word_of))


class JoinPieces(Protocol):
    def __call__(self, pieces: Sequence[str], /) -> str: ...


class SubwordNmt:
    """Words cut by subword-nmt codes (Sennrich et al. 2016).

    Args:
        codes: the merge operations, a file that `subword-nmt learn-bpe` wrote.
        vocabulary: a file of `piece count` lines; pieces not in it are cut further.
        threshold: the least count that keeps a piece in the vocabulary. Without one, the vocabulary is what the
            model's dictionary (`known`) has, so that no piece is cut off from the model.
        known: the pieces of the model's dictionary.
    """

    def __init__(self, codes: Path, vocabulary: Path | None, threshold: int | None, known: Collection[str]) -> None:
        from subword_nmt.apply_bpe import BPE, read_vocabulary

        pieces = None
        if vocabulary is not None:
            with vocabulary.open(encoding="utf-8") as lines:
                pieces = read_vocabulary(lines, threshold)
            if threshold is None:
                pieces &= set(known)
        elif threshold is not None:
            raise UsageError("--bpe-threshold needs a BPE vocabulary (--bpe-vocabulary or vocab.LANG)")
        try:
            with codes.open(encoding="utf-8") as lines:
                self._bpe = BPE(lines, vocab=pieces)
        except (SystemExit, ValueError, UnicodeDecodeError) as error:
            raise ModelError(f"{codes} is not a file of subword-nmt codes") from error
        self._cache: dict[str, tuple[str, ...]] = {}

    def __call__(self, tokens: Sequence[str]) -> Segmented:
        pieces: list[str] = []
        word_of: list[int] = []
        for word, token in enumerate(tokens):
            parts = self._cache.get(token)
            if parts is None:
                parts = self._cache[token] = tuple(self._bpe.segment_tokens([token]))
            pieces += parts
            word_of += [word] * len(parts)
        return Segmented(tuple(tokens), tuple(pieces), tuple(word_of))


def character_owners(tokens: Sequence[str], gap: int) -> list[int]:
    """The word of each character of the tokens joined by `gap` characters; -1 for the gaps."""
    owner: list[int] = []
    for word, token in enumerate(tokens):
        owner += ([NO_WORD] * gap if word else []) + [word] * len(token)
    return owner


def words_of_spans(spans: Iterable[tuple[int, int]], owner: Sequence[int]) -> list[int]:
    """The word with most characters in each span, the earlier of equals; -1 where there is none."""
    result = []
    for begin, end in spans:
        inside = [word for word in owner[begin:end] if word != NO_WORD]
        result.append(max(sorted(set(inside)), key=inside.count) if inside else NO_WORD)
    return result


def presegmented(kind: str) -> Segmenter:
    """The segmenter for input that is already in pieces, `@@` or `▁`.

    Raises:
        UsageError: for another kind.
    """
    known: dict[str, Segmenter] = {BPE_MARK: joined_bpe, SPM_MARK: joined_spm}
    if kind not in known:
        raise unknown_name("input kind", kind, INPUT_KINDS)
    return known[kind]


def detect_input(sides: Iterable[Sequence[str]], sample: int = 200) -> str:
    """`@@` or `▁` if the first sides show such marks, otherwise `words`.

    A mark must stand where its segmenter writes it: `@@` at the end of a token that is not the last one, `▁` at the
    start of a side.
    """
    for tokens in islice(sides, sample):
        if any(re.fullmatch(r".+@@", token, re.DOTALL) for token in tokens[:-1]):
            return BPE_MARK
        if tokens and tokens[0].startswith(SPM_MARK):
            return SPM_MARK
    return "words"


def words_of_pieces(pieces: Sequence[str], spans: Sequence[tuple[int, int]], owner: Sequence[int]) -> list[int]:
    """The word of each SentencePiece piece by its span, as `words_of_spans`.

    A piece with an empty span (a byte of a character, or a part of one that normalisation expands) goes with the
    character it starts at. A lone `▁` belongs to no word.
    """
    words = words_of_spans([(begin, max(end, begin + 1)) for begin, end in spans], owner)
    return [word if piece.strip(SPM_MARK) else NO_WORD for piece, word in zip(pieces, words, strict=True)]
