"""`nmt-align lexicon`: a bilingual lexicon, or a list of odd words, from text and links."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from align.lexicon import (
    MEASURES,
    MemoryTable,
    count,
    linked_phrases,
    linked_words,
    lowercased,
    recounted,
    select,
)
from align.lexicon_eflomal import Priors
from align.lexicon_examples import examples_on_disk
from align.lexicon_formats import (
    FORMATS,
    WITH_COLUMNS,
    WORDS_ONLY,
    Style,
    format_of,
    output_paths,
    write_lexicon,
)
from align.lexicon_input import LinkFile, read_linked
from align.lexicon_readers import read_entries
from align.lexicon_reports import (
    REPORTS,
    disagreements,
    punctuation_words,
    report_lines,
    unaligned_words,
)
from align.options import gathering, text_options
from align.signature import signature
from data.bitext import tokenize
from data.errors import UsageError
from data.links import FORMATS as LINK_FORMATS
from data.streams import STANDARD_STREAM, check_paths, read_lines, write_atomically

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from align.lexicon import Entry, Key, Lexicon, Table
    from align.lexicon_examples import Examples
    from align.lexicon_input import LinkedPair
    from align.lexicon_reports import Report
    from data.bitext import Pair

    Events = Callable[[LinkedPair], Iterable[tuple[Key, int]]]

F = TypeVar("F", bound="Callable[..., Any]")


@dataclass(frozen=True)
class Corpus:
    """The text and links that `corpus_options` name.

    Attributes:
        paths: the files, for `check_paths`.
        pairs: opens the text.
        links: how to read the links, if any are given.
        lowercase: whether to put the text in lower case.
    """

    paths: tuple[str, ...]
    pairs: Callable[[], Iterator[Pair]]
    links: LinkFile | None
    lowercase: bool

    def read(self) -> Iterator[LinkedPair]:
        """The pairs with their links, from the start.

        Raises:
            UsageError: no links are given.
        """
        if self.links is None:
            raise UsageError("--links is missing: the links of the text")
        return read_linked(lowercased(self.pairs()) if self.lowercase else self.pairs(), self.links)


def corpus_options(command: F) -> F:
    """Text, links and how to read both; collected as `corpus`."""
    names = ("links", "links_format", "scores", "one_based", "swap", "comment_prefix", "possible_weight", "lowercase")
    command = gathering(command, ("text", *names), "corpus", _corpus)
    for option in reversed(_LINK_OPTIONS):
        command = option(command)
    return text_options(command)


def _corpus(values: dict[str, Any]) -> Corpus:
    text, lowercase = values.pop("text"), values.pop("lowercase")
    path, form, scores = (values.pop(name) for name in ("links", "links_format", "scores"))
    links = LinkFile(path, form, scores=scores, **values) if path else None
    return Corpus(tuple(filter(None, (*text.paths, path, scores))), text.pairs, links, lowercase)


_LINK_OPTIONS = (
    click.option("-a", "--links", metavar="FILE", help="The links of the text."),
    click.option("--links-format", type=click.Choice(list(LINK_FORMATS)), default="pharaoh", show_default=True),
    click.option("--one-based/--zero-based", default=None, help="Base of the links (default: the format's own)."),
    click.option("--swap", is_flag=True, help="The links are target-source."),
    click.option("--comment-prefix", metavar="TEXT", help="Skip lines of links that begin with TEXT."),
    click.option(
        "--possible-weight",
        type=click.FloatRange(0, 1),
        default=1.0,
        show_default=True,
        help="What a possible link counts; a sure one counts 1.",
    ),
    click.option("--scores", metavar="FILE", help="A number from 0 to 1 for each link: what it counts."),
    click.option("--lowercase", is_flag=True, help="Put words in lower case."),
)


@dataclass(frozen=True)
class Options:
    """The options of `lexicon` apart from those of the corpus and the output file."""

    merge: tuple[str, ...]
    null: bool
    max_phrase: int | None
    engine: str
    min_count: float
    top: int | None
    source_stop: str | None
    target_stop: str | None
    measures: tuple[str, ...]
    context: int
    report: str | None
    other: str | None
    form: str | None
    source_lang: str | None
    target_lang: str | None
    quote_formulas: bool

    @property
    def events(self) -> Events:
        """What is counted in a pair."""
        if self.max_phrase:
            return partial(linked_phrases, longest=self.max_phrase)
        return partial(linked_words, null=self.null)

    @property
    def languages(self) -> tuple[str, str] | None:
        """The codes of both languages, if both are given."""
        return (self.source_lang, self.target_lang) if self.source_lang and self.target_lang else None


@click.command()
@corpus_options
@click.option(
    "--merge",
    multiple=True,
    metavar="FILE",
    help="Add the counts of a lexicon written before as tsv, jsonl or parquet, or those of a batch folder; repeatable.",
)
@click.option("--null/--no-null", default=True, help="Count unaligned words as linked to NULL (default) or not.")
@click.option(
    "--max-phrase",
    type=click.IntRange(1),
    metavar="N",
    help="Entries are phrases of up to N words that fit the links, instead of linked words.",
)
@click.option(
    "--engine",
    type=click.Choice(["memory", "duckdb"]),
    default="memory",
    show_default=True,
    help="Where counts are kept; duckdb is for large corpora and spills to disk (TMPDIR).",
)
@click.option("--min-count", type=click.FloatRange(0), default=0, metavar="N", help="Least count of an entry.")
@click.option("--top", type=click.IntRange(1), metavar="K", help="Keep the K best target words of a source word.")
@click.option("--source-stop", metavar="FILE", help="Source words to leave out.")
@click.option("--target-stop", metavar="FILE", help="Target words to leave out.")
@click.option(
    "--measure",
    "measures",
    type=click.Choice(list(MEASURES)),
    multiple=True,
    help="A further column; can be repeated.",
)
@click.option("--context", type=click.IntRange(0), default=0, metavar="N", help="Add N examples to each entry.")
@click.option(
    "--report",
    type=click.Choice(list(REPORTS)),
    help="Instead of the lexicon, list words that may be aligned badly.",
)
@click.option("--other", metavar="FILE", help="For --report disagreement: other links of the text.")
@click.option("--format", "form", type=click.Choice(FORMATS), help="Default: by the name of OUTPUT, else tsv.")
@click.option("--source-lang", metavar="LANG", help="Language code of the source, for tbx.")
@click.option("--target-lang", metavar="LANG", help="Language code of the target, for tbx.")
@click.option("--quote-formulas", is_flag=True, help="Make csv cells that begin with = + - @ harmless.")
@click.option("-o", "--output", default="-", metavar="FILE", help="Where to write (default: standard output).")
@click.option("--overwrite", is_flag=True, help="Replace an existing output file.")
def lexicon(corpus: Corpus, output: str, overwrite: bool, **values: Any) -> None:
    """Make a bilingual lexicon from sentence pairs and their links.

    An entry is a pair of words that links join, with its count, the counts of both words, p(target|source) and
    p(source|target). It is counted from text and links, from lexicons to --merge, or from both.

    With --report, list instead: all words by how often they are unaligned; words linked to punctuation only; or
    source words that two alignments of the text translate differently.
    """
    options = Options(**values)
    form = options.form or format_of(output)
    _check(corpus, form, options)
    inputs = (*corpus.paths, *options.merge, options.source_stop, options.target_stop, options.other)
    for path in (output,) if options.report else output_paths(output, form):
        check_paths(inputs, path, overwrite=overwrite)
    settings = signature(_settings(corpus, options))
    if options.report:
        rows = _report(corpus, options)
        with write_atomically(output) as out:
            out.writelines(report_lines(REPORTS[options.report], rows, options.min_count))
    else:
        with _examples(options.context) as examples, _table(options.engine, examples) as table:
            priors = _count(corpus, options, table, examples, with_priors=form == "eflomal")
            style = Style(settings, options.languages, options.quote_formulas, priors.lines())
            write_lexicon(_chosen(corpus, options, table.lexicon(options.measures)), output, form, style)
    click.echo(settings, err=True)


def _check(corpus: Corpus, form: str, options: Options) -> None:
    """Refuse options that do not go together."""
    disagreement = options.report == "disagreement"
    columns = options.measures or options.context
    wrong = (
        (not corpus.paths and not options.merge, "give the text and its --links, or lexicons to --merge"),
        (not corpus.paths and (options.report or options.context), "--report and --context need a text"),
        (disagreement and STANDARD_STREAM in corpus.paths, "--other reads the text twice; - can be read once"),
        (disagreement != (options.other is not None), "--report disagreement and --other belong together"),
        (options.report and (options.form or columns or options.merge), "--report writes no lexicon"),
        (options.max_phrase and form in WORDS_ONLY, f"{form} cannot hold phrases: leave out --max-phrase"),
        (columns and form not in WITH_COLUMNS, f"{form} has no place for --measure and --context"),
        (form == "tbx" and not options.languages, "tbx needs --source-lang and --target-lang, as de and en"),
        (options.quote_formulas and form != "csv", "--quote-formulas is for csv"),
    )
    for refused, message in wrong:
        if refused:
            raise UsageError(message)


def _settings(corpus: Corpus, options: Options) -> dict[str, object]:
    links = corpus.links
    return {
        "links": links and links.format,
        "possible": links and links.possible_weight,
        "scores": links and links.scores is not None,
        "merged": len(options.merge) or None,
        "case": "lower" if corpus.lowercase else "kept",
        "null": options.null,
        "max-phrase": options.max_phrase,
        "min-count": options.min_count,
        "top": options.top,
        "report": options.report,
    }


def _examples(most: int) -> AbstractContextManager[Examples | None]:
    return examples_on_disk(most) if most else nullcontext()


def _table(engine: str, examples: Examples | None = None) -> AbstractContextManager[Table]:
    if engine == "memory":
        return nullcontext(MemoryTable(examples))
    from align.lexicon_duckdb import duckdb_table

    return duckdb_table(examples)


def _count(
    corpus: Corpus, options: Options, table: Table, examples: Examples | None = None, with_priors: bool = False
) -> Priors:
    priors = Priors()
    if corpus.paths:
        pairs = priors.watch(corpus.read()) if with_priors else corpus.read()
        pairs = examples.watch(pairs) if examples else pairs
        count(chain.from_iterable(map(options.events, pairs)), table, examples=examples)
    for path in chain.from_iterable(map(_parts, options.merge)):
        count(recounted(read_entries(path, format_of(path)), path), table)
    return priors


def _parts(path: str) -> list[str]:
    """The lexicons to merge: the file itself, or the counts of all shards of a batch."""
    if not Path(path).is_dir():
        return [path]
    from align.batch.merge import lexicon_counts
    from align.batch.plan import load_plan

    return list(map(str, lexicon_counts(load_plan(Path(path)))))


def _chosen(corpus: Corpus, options: Options, made: Lexicon) -> Lexicon:
    """The entries that the options ask for."""
    stop = (_words(path, corpus.lowercase) for path in (options.source_stop, options.target_stop))
    return replace(made, entries=select(made.entries, options.min_count, options.top, *stop))


def _words(path: str | None, lowercase: bool) -> frozenset[str]:
    """The words of a file, of which each line may have any number."""
    texts = (text for _, text in read_lines(path)) if path is not None else ()
    return frozenset(word for text in texts for word in tokenize(text.lower() if lowercase else text))


def _report(corpus: Corpus, options: Options) -> Sequence[Report]:
    if options.report == "unaligned":
        return unaligned_words(corpus.read())
    if options.report == "punctuation":
        from align.matrix import is_punctuation

        return punctuation_words(_entries(corpus, options), is_punctuation)
    other = replace(corpus, links=corpus.links and replace(corpus.links, path=options.other or "", scores=None))
    return disagreements(_entries(corpus, options), _entries(other, options))


def _entries(corpus: Corpus, options: Options) -> Iterator[Entry]:
    with _table(options.engine) as table:
        _count(corpus, options, table)
        yield from table.lexicon().entries
