"""Writing lexicons: for people, for other programs of this kind, and for terminology tools.

A format that cannot hold a word (a program that splits at some blank inside it, say) goes without the entries of
that word, and a note says how many they are.
"""

from __future__ import annotations

import csv
import json
import logging
import re
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import islice
from typing import IO, TYPE_CHECKING, Any
from xml.sax.saxutils import escape, quoteattr

from align.lexicon import MEASURES, NULL, Entry, Lexicon
from align.lexicon_input import NUMBER
from data.corpus import pyarrow
from data.errors import UsageError, printable, unknown_name
from data.streams import STANDARD_STREAM, write_atomically, write_bytes_atomically

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

log = logging.getLogger("nmt_align")

COLUMNS = (
    "source",
    "target",
    "count",
    "source_count",
    "target_count",
    "p_target_given_source",
    "p_source_given_target",
)
WITH_COLUMNS = ("csv", "jsonl", "parquet", "tsv")
"""Formats that tell measures and examples."""
WORDS_ONLY = ("eflomal", "marian", "moses", "muse")
"""Formats in which a blank ends a word, so that there are no phrases in them."""
BY_SUFFIX = ("csv", "jsonl", "parquet", "tbx")
"""Formats that are also the suffix of a file name."""
SIGNATURE = "nmt_align.signature"
"""The key of the signature in the metadata of a Parquet file."""
_BATCH = 10_000  # entries of a Parquet row group

# What a word cannot be or contain where a reader of the format would take it for something else: a C++ stream and
# str.split end a word at some characters, a file in text mode ends a line at \r, a first byte order mark gets lost.
_MOSES_UNFIT = re.compile(r"[ \r\v\f]|^\ufeff|^NULL$")
_MUSE_UNFIT = re.compile(r"\s|^\ufeff")
_EFLOMAL_UNFIT = re.compile(r"[ \r]|^<NULL>$")
_NOT_XML = re.compile("[^ -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Style:
    """What some formats need to know.

    Attributes:
        signature: of the lexicon; kept in Parquet files and TBX headers.
        languages: codes of source and target, for TBX.
        quote_formulas: put an apostrophe before CSV cells that a spreadsheet would run as a formula.
        priors: more lines for eflomal, of fertilities and jumps.
    """

    signature: str = ""
    languages: tuple[str, str] | None = None
    quote_formulas: bool = False
    priors: Iterable[str] = ()


def format_of(path: str) -> str:
    """The format that the name of a file tells; TSV if it tells none."""
    name = path.removesuffix(".gz").lower()
    return next((form for form in BY_SUFFIX if name.endswith(f".{form}")), "tsv")


def output_paths(path: str, form: str) -> tuple[str, ...]:
    """The files that `write_lexicon` writes; Moses has one for each direction.

    Raises:
        UsageError: an unknown format, or standard output for a format that cannot go there.
    """
    if form not in FORMATS:
        raise unknown_name("lexicon format", form, FORMATS)
    if form == "moses":
        if path == STANDARD_STREAM:
            raise UsageError("the moses format is two files, PREFIX.f2e and PREFIX.e2f: give -o PREFIX")
        return f"{path}.f2e", f"{path}.e2f"
    return (path,)


def write_lexicon(lexicon: Lexicon, path: str, form: str, style: Style | None = None) -> None:
    """Write `lexicon` in one of the `FORMATS`; `-` is standard output.

    Raises:
        UsageError: an unknown format, one that lacks what `style` should tell, or a package that is missing.
    """
    style, paths = style or Style(), output_paths(path, form)
    if form == "parquet":
        _write_parquet(lexicon, path, style)
        return
    with ExitStack() as files:
        TEXT_FORMATS[form](lexicon, style, *(files.enter_context(write_atomically(name)) for name in paths))


def _holdable(entries: Iterable[Entry], unfit: re.Pattern[str], form: str, null: bool = False) -> Iterator[Entry]:
    """The entries without a word in which `unfit` is found, and without `NULL` unless `null`."""
    omitted, example = 0, ""
    for entry in entries:
        if not null and NULL in entry.key:
            continue
        found = next((word for word in entry.key if unfit.search(word)), None)
        if found is None:
            yield entry
        else:
            omitted, example = omitted + 1, found
    if omitted:
        message = "note: %d entries left out: %s cannot hold a word such as %s"
        log.warning(message, omitted, form, printable(example))


def exact(count: float) -> int | float:
    """A count as it is written: whole, or with the decimals it has."""
    return int(count) if count == int(count) else count


def _record(entry: Entry, lexicon: Lexicon) -> dict[str, Any]:
    """The fields of an entry, without its examples."""
    counts = map(exact, (entry.count, entry.source_count, entry.target_count))
    measures = (MEASURES[name](entry, lexicon.total) for name in lexicon.measures)
    shares = (entry.p_target_given_source, entry.p_source_given_target, *measures)
    values = (entry.source, entry.target, *counts, *(float(f"{share:.7g}") for share in shares))
    return dict(zip(COLUMNS + lexicon.measures, values, strict=True))


def _grid(lexicon: Lexicon) -> Iterator[list[str]]:
    """A row of names and a row for each entry; every example is a cell `source ||| target`."""
    width = lexicon.examples.most if lexicon.examples else 0
    yield [*COLUMNS, *lexicon.measures, *(f"example_{number}" for number in range(1, width + 1))]
    for entry in lexicon.entries:
        found = lexicon.examples_of(entry)
        examples = [f"{' '.join(each.source)} ||| {' '.join(each.target)}" for each in found]
        padding = [""] * (width - len(examples))
        yield [*map(str, _record(entry, lexicon).values()), *examples, *padding]


def _tsv(lexicon: Lexicon, style: Style, out: IO[str]) -> None:
    out.writelines("\t".join(row) + "\n" for row in _grid(lexicon))


def _jsonl(lexicon: Lexicon, style: Style, out: IO[str]) -> None:
    for entry in lexicon.entries:
        out.write(json.dumps(_document(entry, lexicon), ensure_ascii=False, allow_nan=False) + "\n")


def _document(entry: Entry, lexicon: Lexicon) -> dict[str, Any]:
    """The fields of an entry as an object: None for `NULL`, examples as objects."""
    document = _record(entry, lexicon) | {"source": entry.source or None, "target": entry.target or None}
    if lexicon.examples:
        document["examples"] = [
            {"line": found.line, "source": found.source, "target": found.target, "links": sorted(found.links)}
            for found in lexicon.examples_of(entry)
        ]
    return document


def _csv(lexicon: Lexicon, style: Style, out: IO[str]) -> None:
    """As RFC 4180 has it, lines ending in CR LF."""
    terms = replace(lexicon, entries=(entry for entry in lexicon.entries if NULL not in entry.key))
    quote = _harmless if style.quote_formulas else str
    csv.writer(out).writerows(map(quote, row) for row in _grid(terms))


def _harmless(cell: str) -> str:
    """`cell` behind an apostrophe if a spreadsheet would take it for a formula; numbers are none."""
    formula = cell.startswith(("=", "+", "-", "@", "\r")) and not NUMBER.fullmatch(cell)
    return "'" + cell if formula else cell


def _tbx(lexicon: Lexicon, style: Style, out: IO[str]) -> None:
    """TBX version 3 (ISO 30042:2019), core dialect: a concept for each entry, with a term in each language."""
    if style.languages is None:
        raise UsageError("tbx needs --source-lang and --target-lang, such as de and en")
    languages = [quoteattr(language) for language in style.languages]
    out.write(
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<tbx type="TBX-Core" style="dca" xml:lang={languages[0]} xmlns="urn:iso:std:iso:30042:ed-2">\n'
        f"<tbxHeader><fileDesc><sourceDesc><p>{escape(style.signature)}</p></sourceDesc></fileDesc></tbxHeader>\n"
        "<text><body>\n"
    )
    for number, entry in enumerate(_holdable(lexicon.entries, _NOT_XML, "tbx"), 1):
        sections = "".join(
            f"<langSec xml:lang={language}><termSec><term>{escape(term)}</term></termSec></langSec>"
            for language, term in zip(languages, entry.key, strict=True)
        )
        out.write(f'<conceptEntry id="c{number}">{sections}</conceptEntry>\n')
    out.write("</body></text>\n</tbx>\n")


def _moses(lexicon: Lexicon, style: Style, f2e: IO[str], e2f: IO[str]) -> None:
    """`target source p(target|source)` and `source target p(source|target)`; | is escaped as Moses does."""
    for entry in _holdable(lexicon.entries, _MOSES_UNFIT, "moses", null=True):
        source, target = (word.replace("|", "&#124;") or "NULL" for word in entry.key)
        f2e.write(f"{target} {source} {entry.p_target_given_source:.7f}\n")
        e2f.write(f"{source} {target} {entry.p_source_given_target:.7f}\n")


def _marian(lexicon: Lexicon, style: Style, out: IO[str]) -> None:
    for entry in _holdable(lexicon.entries, _MOSES_UNFIT, "marian"):
        out.write(f"{entry.target} {entry.source} {entry.p_target_given_source:.7f}\n")


def _eflomal(lexicon: Lexicon, style: Style, out: IO[str]) -> None:
    for entry in _holdable(lexicon.entries, _EFLOMAL_UNFIT, "eflomal"):
        out.write(f"LEX\t{entry.source}\t{entry.target}\t{exact(entry.count)}\n")
    out.writelines(style.priors)


def _muse(lexicon: Lexicon, style: Style, out: IO[str]) -> None:
    for entry in _holdable(lexicon.entries, _MUSE_UNFIT, "muse"):
        out.write(f"{entry.source} {entry.target}\n")


TEXT_FORMATS: dict[str, Callable[..., None]] = {
    "csv": _csv,
    "eflomal": _eflomal,
    "jsonl": _jsonl,
    "marian": _marian,
    "moses": _moses,
    "muse": _muse,
    "tbx": _tbx,
    "tsv": _tsv,
}
FORMATS = (*TEXT_FORMATS, "parquet")


def _write_parquet(lexicon: Lexicon, path: str, style: Style) -> None:
    """Columns as the fields of JSONL; the signature is in the metadata of the file."""
    pa, pq = pyarrow()
    words, links = pa.list_(pa.string()), pa.list_(pa.list_(pa.int32()))
    example = {"line": pa.int64(), "source": words, "target": words, "links": links}
    fields = dict.fromkeys(COLUMNS + lexicon.measures, pa.float64())
    fields |= {"source": pa.string(), "target": pa.string()}
    if lexicon.examples:
        fields["examples"] = pa.list_(pa.struct(example))
    schema = pa.schema(fields, metadata={SIGNATURE: style.signature})
    entries = iter(lexicon.entries)
    with write_bytes_atomically(path) as raw, pq.ParquetWriter(raw, schema) as writer:
        while batch := list(islice(entries, _BATCH)):
            rows = [_document(entry, lexicon) for entry in batch]
            writer.write_table(pa.Table.from_pylist(rows, schema))
