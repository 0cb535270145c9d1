"""Corpora of many files: plain text as in `data.bitext`, JSONL, Parquet and TMX, one after the other."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.bitext import Pair, read_bitext, read_joint, read_tsv, tokenize
from data.errors import DataError, UsageError, printable
from data.streams import check_paths, open_bytes, read_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

log = logging.getLogger("nmt_align")

_XML_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_TMX_CODES = {"bpt", "ept", "it", "ph", "ut"}
_ROWS = 1000  # of a Parquet file in memory


@dataclass(frozen=True)
class Corpus:
    """Where sentence pairs are. Files are read in this order, and their pairs are numbered through.

    Attributes:
        source, target: files with a sentence a line, as many of both.
        joint: files with `source ||| target`.
        tsv: files with columns, of which `columns` hold source and target.
        files: `.jsonl`, `.parquet` and `.tmx` files (`.jsonl` and `.tmx` also compressed).
        fields: where source and target are in JSONL and Parquet; a point leads into an object.
        languages: of source and target in TMX.
        tokenize: languages of source and target to tokenise text by with Moses' rules; None: words are as given.
    """

    source: tuple[str, ...] = ()
    target: tuple[str, ...] = ()
    joint: tuple[str, ...] = ()
    tsv: tuple[str, ...] = ()
    columns: tuple[int, int] = (1, 2)
    files: tuple[str, ...] = ()
    fields: tuple[str, str] = ("src", "tgt")
    languages: tuple[str, str] | None = None
    tokenize: tuple[str, str] | None = None

    @property
    def paths(self) -> dict[str, str]:
        """All files by kind and number, such as `source 1`."""
        kinds = ("source", "target", "joint", "tsv", "files")
        return {f"{kind} {n}": path for kind in kinds for n, path in enumerate(getattr(self, kind), 1)}

    @property
    def reading(self) -> dict[str, str | None]:
        """How the files are read."""
        pairs = {name: getattr(self, name) for name in ("columns", "fields", "languages", "tokenize")}
        return {name: pair and ",".join(map(str, pair)) for name, pair in pairs.items()}

    def pairs(self) -> Iterator[Pair]:
        """All pairs, one at a time.

        Raises:
            UsageError: no file, more source than target files, a kind that is not known, a package that is missing.
            DataError: malformed files; see the readers.
        """
        if len(self.source) != len(self.target):
            raise UsageError(f"{len(self.source)} source files, but {len(self.target)} target files")
        if not self.paths:
            raise UsageError("no text: give --source and --target, --input, --tsv or --corpus")
        check_paths([*self.paths.values()])
        split = [_moses(language) for language in self.tokenize] if self.tokenize else None
        number = 0
        for pairs in self._readers():
            for pair in pairs:
                if split:
                    pair = Pair(number, split[0](pair.source), split[1](pair.target))
                yield replace(pair, id=number)
                number += 1

    def _readers(self) -> Iterator[Iterator[Pair]]:
        for source, target in zip(self.source, self.target, strict=True):
            yield read_bitext(source, target)
        for path in self.joint:
            yield read_joint(path)
        for path in self.tsv:
            yield read_tsv(path, self.columns)
        for path in self.files:
            kinds = set(Path(path).suffixes)
            if ".jsonl" in kinds:
                yield read_jsonl(path, self.fields)
            elif ".parquet" in kinds:
                yield read_parquet(path, self.fields)
            elif ".tmx" in kinds:
                if self.languages is None:
                    raise UsageError(f"{path}: which languages of it? Give --languages, such as de,en")
                yield read_tmx(path, self.languages)
            else:
                raise UsageError(f"{path}: what is it? Names end in .jsonl, .parquet or .tmx")


def _moses(language: str) -> Callable[[Iterable[str]], tuple[str, ...]]:
    """A function that tokenises words that were split at blanks. Characters stay as they are, unescaped."""
    try:
        from sacremoses import MosesTokenizer
    except ImportError:
        raise UsageError("tokenising needs sacremoses: pip install sacremoses") from None
    tokenizer = MosesTokenizer(lang=language)
    return lambda words: tokenize(tokenizer.tokenize(" ".join(words), escape=False, return_str=True))


def read_jsonl(path: str, fields: tuple[str, str] = ("src", "tgt")) -> Iterator[Pair]:
    """Pairs of a file with a JSON object a line. A side is a list of words, or a string that is split at blanks.

    Raises:
        DataError: not such an object, a key twice, a field that is not there, a word with a blank in it.
    """
    for number, text in read_lines(path):
        try:
            record = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            raise DataError(f"not JSON: {error}", path, number) from None
        source, target = (_words(_field(record, name, path, number), name, path, number) for name in fields)
        yield Pair(number - 1, source, target)


def _unique(items: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(items)
    if len(found) < len(items):
        raise ValueError("a key is there twice")
    return found


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number in JSON")


def _field(record: Any, name: str, path: str, line: int) -> Any:
    for key in name.split("."):
        if not isinstance(record, dict) or key not in record:
            raise DataError(f"no field {printable(name)}; --fields names those of source and target", path, line)
        record = record[key]
    return record


def _words(side: Any, name: str, path: str, line: int) -> tuple[str, ...]:
    """The words of one side; a string is a sentence."""
    words = tokenize(side) if isinstance(side, str) else side
    if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words):
        raise DataError(f"field {printable(name)} is neither a list of words nor a string", path, line)
    for word in words:
        if not word or any(c in " \t\n" or "\ud800" <= c <= "\udfff" for c in word):
            raise DataError(f"{printable(word)} in field {printable(name)} is not a word", path, line)
    return tuple(words)


def read_parquet(path: str, fields: tuple[str, str] = ("src", "tgt")) -> Iterator[Pair]:
    """Pairs of a Parquet file; columns are as the fields of `read_jsonl`.

    Raises:
        DataError: not a Parquet file, or columns that `read_jsonl` would refuse.
        UsageError: pyarrow is not installed.
    """
    arrow, parquet = pyarrow()
    try:
        with parquet.ParquetFile(path) as file:
            number = 0
            columns = sorted({name.partition(".")[0] for name in fields} & set(file.schema_arrow.names))
            for batch in file.iter_batches(batch_size=_ROWS, columns=columns):
                for record in batch.to_pylist():
                    number += 1
                    source, target = (_words(_field(record, f, path, number), f, path, number) for f in fields)
                    yield Pair(number - 1, source, target)
    except (arrow.ArrowException, OSError) as error:
        raise DataError(f"cannot be read as Parquet: {error}", path) from None


def read_tmx(path: str, languages: tuple[str, str]) -> Iterator[Pair]:
    """Pairs of a translation memory (TMX 1.4); units without one of `languages` are left out and counted.

    A language is given as in the file or without its region (`en` finds `en-GB`). Inline codes are dropped.
    Nothing outside the file is read: no entities, no DTD, no network.

    Raises:
        DataError: not well-formed, or with entities or text beyond the limits of libxml2.
        UsageError: lxml is not installed.
    """
    try:
        from lxml import etree
    except ImportError:
        raise UsageError("TMX needs lxml: pip install 'nmt-align[tmx]'") from None
    safely = {"resolve_entities": False, "no_network": True, "load_dtd": False, "huge_tree": False}
    number = skipped = 0
    with open_bytes(path) as stream:
        try:
            for _, unit in etree.iterparse(stream, events=("end",), tag="tu", **safely):
                source, target = _sides(unit, languages, path)
                if source is None or target is None:
                    skipped += 1
                else:
                    yield Pair(number, source, target)
                    number += 1
                unit.clear()
                while unit.getprevious() is not None:
                    del unit.getparent()[0]
        except etree.XMLSyntaxError as error:
            raise DataError(f"not well-formed TMX: {error.msg}", path, error.lineno) from None
    if skipped:
        log.warning("Note: %s: %d units without %s or %s left out", path, skipped, *languages)


def _sides(unit: Any, languages: tuple[str, str], path: str) -> list[tuple[str, ...] | None]:
    """The words of a unit in each language."""
    found: dict[str, tuple[str, ...]] = {}
    for variant in unit.iterchildren("tuv"):
        name = (variant.get(_XML_LANGUAGE) or variant.get("lang") or "").lower()
        segment = variant.find("seg")
        if segment is not None:
            words = tokenize("".join(_text(segment, path)).replace("\n", " "))
            for key in (name, name.partition("-")[0]):
                found.setdefault(key, words)
    return [found.get(language.lower()) for language in languages]


def _text(element: Any, path: str) -> Iterator[str]:
    """The text of a segment, without the codes of another format that are marked in it."""
    yield element.text or ""
    for child in element:
        if isinstance(child.tag, str):
            if child.tag not in _TMX_CODES:
                yield from _text(child, path)
        elif child.text.startswith("&"):
            raise DataError(f"entity {printable(child.text)}, which is not looked up", path, child.sourceline)
        yield child.tail or ""


def pyarrow() -> tuple[Any, Any]:
    """The modules `pyarrow` and `pyarrow.parquet`. Raises UsageError where they are not installed."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise UsageError("Parquet needs pyarrow: pip install 'nmt-align[parquet]'") from None
    return pyarrow, pyarrow.parquet
