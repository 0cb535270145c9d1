"""Running text to pieces, each with the span of the text that it stands for; and the words that pieces belong to."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from align.models.subwords import Segmented, words_of_pieces
from align.models.text import words_between
from data.errors import ModelError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from align.models.text import Span, Text

PIECE_ENDS = ("word", "text")


@dataclass(frozen=True)
class Pieces:
    """A text in pieces: their ids, how they are spelt, and the span of the text that each stands for, in order."""

    ids: Sequence[int]
    spelling: Sequence[str]
    spans: Sequence[Span]


class Cutter(Protocol):
    """Anything that cuts running text into pieces."""

    def __call__(self, text: str) -> Pieces: ...

    def continued(self) -> Cutter:
        """The same for text that goes on from other text: its first piece has no mark of a beginning."""
        ...


@dataclass(frozen=True)
class WordCutter:
    """Cuts text so that no piece covers parts of two words.

    Words are cut one by one: by `first` where they begin the text or follow a space, else by `others`, as text that
    goes on. For a unigram model this is the best of all segmentations whose pieces end at the words.
    """

    first: Cutter
    others: Cutter

    def __call__(self, text: Text) -> Pieces:
        ids: list[int] = []
        spelling: list[str] = []
        spans: list[Span] = []
        for begin, end, follows in text.runs():
            found = (self.others if follows else self.first)(text.characters[begin:end])
            ids += found.ids
            spelling += found.spelling
            spans += [(begin + a, begin + b) for a, b in found.spans]
        return Pieces(ids, spelling, spans)


def cut_words(text: Text, cut: Cutter, ends: WordCutter | None = None) -> tuple[Pieces, list[int]]:
    """Pieces of a text and the word of each; by `ends`, if given, no piece covers parts of two words."""
    pieces = ends(text) if ends else cut(text.characters)
    return pieces, words_of_pieces(pieces.spelling, pieces.spans, text.word_of)


class SentencePieceCutter:
    """A SentencePiece model (a binary parser reads it: use files you trust).

    `id_of` gives the id that the translation model has for a piece; without it, pieces have no ids.
    """

    def __init__(self, model: Path, id_of: Callable[[str], int] | None = None) -> None:
        from sentencepiece import SentencePieceProcessor

        try:
            self._processor = SentencePieceProcessor(model_file=str(model))
        except (OSError, RuntimeError) as error:
            raise ModelError(f"{model} is not a SentencePiece model: {error}") from error
        self._id_of = id_of

    def __call__(self, text: str) -> Pieces:
        found = self._processor.encode(text, return_type="offset_mapping")
        pieces = list(found["pieces"])
        ids = [self._id_of(piece) for piece in pieces] if self._id_of else []
        return Pieces(ids, pieces, [(int(begin), int(end)) for begin, end in found["offsets"]])

    def continued(self) -> SentencePieceCutter:
        from sentencepiece import SentencePieceProcessor, sentencepiece_model_pb2

        description: Any = sentencepiece_model_pb2
        model = description.ModelProto.FromString(self._processor.serialized_model_proto())
        model.normalizer_spec.add_dummy_prefix = False
        other = copy(self)
        other._processor = SentencePieceProcessor(model_proto=model.SerializeToString())
        return other


class SentencePiece:
    """Words cut by a SentencePiece model, mapped back by character spans of the text that they are written as.

    A piece that covers parts of several words goes to the word with most of its characters, the earlier of equals.

    Args:
        model: the `.model` or `.spm` file.
        write: words to the text given to the model.
        unspaced: whether that text has no spaces between words.
        ends: `word` to end pieces at the words of unspaced text, `text` to let the model end them.
    """

    def __init__(
        self, model: Path, write: Callable[[Sequence[str]], Text], unspaced: bool = False, ends: str = "word"
    ) -> None:
        self._cut, self._write, self.unspaced = SentencePieceCutter(model), write, unspaced
        self.ends = word_cutter(self._cut, unspaced, ends)

    def __call__(self, tokens: Sequence[str]) -> Segmented:
        pieces, word_of = cut_words(self._write(tokens), self._cut, self.ends)
        return Segmented(tuple(tokens), tuple(pieces.spelling), tuple(word_of))

    def words(self, text: str) -> tuple[str, ...]:
        """Words of unspaced text."""
        return words_between(text, self._cut(text).spans)


def word_cutter(cut: Cutter, unspaced: bool, ends: str) -> WordCutter | None:
    """What ends pieces at words, for unspaced text and where `ends` is `word`.

    Raises:
        UsageError: `ends` is none of `PIECE_ENDS`.
    """
    if ends not in PIECE_ENDS:
        raise unknown_name("value of piece ends", ends, PIECE_ENDS)
    return WordCutter(cut, cut.continued()) if unspaced and ends == "word" else None


def written(source: object, target: object) -> str:
    """Which sides are unspaced and where their pieces end, such as `unspaced=source,ends=word`; empty for none."""
    sides = {name: side for name, side in (("source", source), ("target", target)) if getattr(side, "unspaced", False)}
    if not sides:
        return ""
    ends = "word" if all(getattr(side, "ends", None) for side in sides.values()) else "text"
    return f"unspaced={'both' if len(sides) == 2 else next(iter(sides))},ends={ends}"
