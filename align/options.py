"""Command-line options that several commands share: the text, the model, how links are taken."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from data.bitext import Pair, read_bitext, read_joint, read_tsv, tokenize
from data.errors import UsageError
from data.streams import read_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from align.extract import Extraction
    from align.models.load import LoadOptions

F = TypeVar("F", bound="Callable[..., Any]")
FILE = click.Path(path_type=Path)
EXISTING = click.Path(exists=True, dir_okay=False, path_type=Path)


@dataclass(frozen=True)
class TextArguments:
    """Everything `text_options` collects: where the sentence pairs are."""

    source: str | None
    target: str | None
    joint: str | None
    tsv: str | None
    columns: str

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that are given, for `check_paths`."""
        return tuple(path for path in (self.source, self.target, self.joint, self.tsv) if path is not None)

    def pairs(self) -> Iterator[Pair]:
        """The pairs, from the start.

        Raises:
            UsageError: none or several of the three ways, or columns that are not two numbers.
        """
        sides = self.source is not None or self.target is not None
        if sum((sides, self.joint is not None, self.tsv is not None)) != 1 or (sides and len(self.paths) != 2):
            raise UsageError(
                "give the text in one way: --source and --target, or --input, or --tsv (- is standard input)"
            )
        if self.joint is not None:
            return read_joint(self.joint)
        if self.tsv is not None:
            first, _, second = self.columns.partition(",")
            if not (first.isascii() and first.isdigit() and second.isascii() and second.isdigit()):
                raise UsageError(f"--columns takes two numbers from 1, such as 1,2, not {self.columns!r}")
            return read_tsv(self.tsv, (int(first), int(second)))
        return read_bitext(str(self.source), str(self.target))

    def sources(self) -> Iterator[Pair]:
        """Source sentences alone, as pairs without a target.

        Raises:
            UsageError: other text than `--source`.
        """
        if self.source is None or len(self.paths) != 1:
            raise UsageError("--translate takes the text as --source alone")
        return (Pair(number - 1, tokenize(text), ()) for number, text in read_lines(self.source))


def text_options(command: F) -> F:
    """`-s -t`, `-i` or `--tsv`: where the sentence pairs are; collected as `text`."""
    return collecting(command, _TEXT_OPTIONS, "text", lambda values: TextArguments(**values))


def collecting(command: F, options: Sequence[click.Option], name: str, make: Callable[[dict[str, Any]], object]) -> F:
    """`command` with these options, whose values it gets as the one argument `name`, made by `make`."""
    found = gathering(command, [str(option.name) for option in options], name, make)
    found.__click_params__ += reversed(options)  # type: ignore[attr-defined]
    return found


def gathering(command: F, names: Sequence[str], name: str, make: Callable[[dict[str, Any]], object]) -> F:
    """`command`, which gets the arguments `names` as the one argument `name`, made by `make`."""

    def collected(**values: Any) -> Any:
        return command(**{name: make({own: values.pop(own) for own in names}), **values})

    collected.__doc__, collected.__name__ = command.__doc__, command.__name__
    collected.__click_params__ = list(getattr(command, "__click_params__", []))  # type: ignore[attr-defined]
    return collected  # type: ignore[return-value]


_TEXT_OPTIONS = [
    click.Option(["-s", "--source"], metavar="FILE", help="Source sentences, one a line."),
    click.Option(["-t", "--target"], metavar="FILE", help="Target sentences, one a line."),
    click.Option(["-i", "--input", "joint"], metavar="FILE", help="Pairs as `source ||| target`, one a line."),
    click.Option(["--tsv"], metavar="FILE", help="Pairs as columns separated by tabs."),
    click.Option(["--columns"], default="1,2", show_default=True, help="Columns of --tsv, from 1."),
]


@dataclass(frozen=True)
class ModelArguments:
    """Everything `model_options` collects."""

    model: Path
    reverse_model: Path | None
    options: dict[str, Any]

    def load_options(self, pairs: Iterable[Pair]) -> tuple[LoadOptions, Iterator[Pair]]:
        """How to load the model for this text; the pairs come back unread."""
        from align.models.load import LoadOptions, Side
        from align.models.subwords import detect_input

        o = self.options
        rest = iter(pairs)
        first = list(islice(rest, 200))
        kind = o["input_kind"]
        if kind == "auto":
            kind = detect_input(side for pair in first for side in (pair.source, pair.target))
        source, target = (
            Side(
                language=o[f"{side}_lang"],
                dictionary=o[f"{side}_dict"],
                bpe_codes=o[f"{side}_bpe_codes"] or o["bpe_codes"],
                bpe_vocabulary=o[f"{side}_bpe_vocabulary"],
                sentencepiece=o[f"{side}_sentencepiece"] or o["sentencepiece"],
            )
            for side in ("source", "target")
        )
        options = LoadOptions(
            source,
            target,
            o["bpe_threshold"],
            kind,
            o["unspaced"],
            o["piece_ends"],
            o["allow_download"],
            o["device"],
            o["dtype"],
        )
        return options, chain(first, rest)


def model_options(command: F) -> F:
    """The model, its reverse, and the files that cut words into its pieces; collected as `model`."""
    return collecting(command, _MODEL_OPTIONS, "model", _model_arguments)


def _model_arguments(values: dict[str, Any]) -> ModelArguments:
    threads = values.pop("threads")
    if threads is not None:
        import torch

        torch.set_num_threads(threads)
    return ModelArguments(values.pop("model"), values.pop("reverse_model"), values)


_MODEL_OPTIONS = [
    click.Option(
        ["-m", "--model"],
        type=FILE,
        required=True,
        metavar="PATH",
        help="The model: a fairseq checkpoint (.pt) or a Hugging Face folder.",
    ),
    click.Option(["--reverse-model"], type=FILE, metavar="PATH", help="The model of the other direction."),
    click.Option(["--source-lang"], metavar="LANG", help="Language of the source text (default: the model's)."),
    click.Option(["--target-lang"], metavar="LANG", help="Language of the target text (default: the model's)."),
    click.Option(
        ["--source-dict"], type=EXISTING, help="fairseq dictionary (default: dict.LANG.txt beside the model)."
    ),
    click.Option(["--target-dict"], type=EXISTING, help="fairseq dictionary of the target text."),
    click.Option(
        ["--input-kind"],
        type=click.Choice(["auto", "words", "@@", "▁"]),
        default="auto",
        show_default=True,
        help="Whether the text is in words or already in pieces, with which mark.",
    ),
    click.Option(["--bpe-codes"], type=EXISTING, help="subword-nmt codes (default: codes beside the model)."),
    click.Option(["--source-bpe-codes"], type=EXISTING, help="Codes of the source text where they differ."),
    click.Option(["--target-bpe-codes"], type=EXISTING, help="Codes of the target text where they differ."),
    click.Option(
        ["--source-bpe-vocabulary"],
        type=EXISTING,
        help="subword-nmt vocabulary (default: vocab.LANG beside the model).",
    ),
    click.Option(["--target-bpe-vocabulary"], type=EXISTING, help="subword-nmt vocabulary of the target text."),
    click.Option(
        ["--bpe-threshold"],
        type=click.IntRange(1),
        metavar="N",
        help="Least count of a piece in its vocabulary (default: pieces that the dictionary has).",
    ),
    click.Option(["--sentencepiece"], type=EXISTING, help="SentencePiece model of both sides."),
    click.Option(["--source-sentencepiece"], type=EXISTING, help="SentencePiece model of the source text."),
    click.Option(["--target-sentencepiece"], type=EXISTING, help="SentencePiece model of the target text."),
    click.Option(
        ["--unspaced"],
        type=click.Choice(["auto", "source", "target", "both", "none"]),
        default="auto",
        show_default=True,
        help="Sides written without spaces between words, for models with SentencePiece (auto: by language).",
    ),
    click.Option(
        ["--piece-ends"],
        type=click.Choice(["word", "text"]),
        default="word",
        show_default=True,
        help="Where pieces of unspaced sides end: at the words given, or where the model ends them in running text.",
    ),
    click.Option(["--allow-download"], is_flag=True, help="Let --model name a model on the Hugging Face hub."),
    click.Option(["--device"], default="cpu", show_default=True, help="cpu, cuda or cuda:N."),
    click.Option(
        ["--dtype"],
        type=click.Choice(["float32", "float64", "bfloat16"]),
        default="float32",
        show_default=True,
    ),
    click.Option(["--threads"], type=click.IntRange(1), metavar="N", help="CPU threads (default: torch's choice)."),
]


def method_options(command: F) -> F:
    """Which method, how its pieces become words, how directions are combined."""
    return _apply(
        command,
        click.option(
            "--method",
            default="attention-x-gradient",
            show_default=True,
            help="Method and options, such as `lrp:sign=absolute`; `compare` or `choose` tells which suits a model.",
        ),
        click.option(
            "--reverse-method", metavar="SPEC", help="The method of --reverse-model where it differs from --method."
        ),
        click.option(
            "--pooling",
            type=click.Choice(["piece", "word"]),
            default="word",
            show_default=True,
            help="Choose links by pieces, then project them to words; or pool scores of words, then choose.",
        ),
        click.option(
            "--symmetrize",
            "symmetrisation",
            default="agreement",
            show_default=True,
            help="With --reverse-model: how to combine both directions: by their soft scores, "
            "`agreement:threshold=0.2:mean=harmonic`, or by a rule of `nmt-align symmetrize`. With `:lexicon=0.25` two "
            "words also need to be joined elsewhere in the text, all of which is then kept in memory.",
        ),
    )


def extraction_options(command: F) -> F:
    """How links are taken from scores, apart from pooling, and `batch_options`."""
    return _apply(
        batch_options(command),
        click.option(
            "--extract",
            "extractor",
            type=click.Choice(["argmax", "mutual", "threshold"]),
            default="argmax",
            show_default=True,
            help="One source word for each target word, only mutual choices, or every cell above --threshold.",
        ),
        click.option(
            "--threshold",
            type=click.FloatRange(0, 1),
            default=0.0,
            show_default=True,
            help="Least share of its row that a link must hold.",
        ),
        click.option(
            "--eos",
            type=click.Choice(["mask", "keep"]),
            default="mask",
            show_default=True,
            help="Leave </s> and tags out before choosing, or let them win (which gives no link).",
        ),
        click.option("--punctuation", is_flag=True, help="SHIFT-ATT's rule for sentence-final punctuation."),
    )


def batch_options(command: F) -> F:
    """`--batch-pieces` and `--max-unknown`: how text goes through the model."""
    return _apply(
        command,
        click.option(
            "--batch-pieces",
            type=click.IntRange(1),
            default=400,
            show_default=True,
            help="Size of a batch: sentences times pieces of the longest pair (4 times that for few passes).",
        ),
        click.option(
            "--max-unknown",
            type=click.FloatRange(0, 1),
            default=0.2,
            show_default=True,
            help="Stop where more than this share of the pieces is unknown to the model.",
        ),
    )


def extraction(pooling: str, extractor: str, threshold: float, eos: str, punctuation: bool) -> Extraction:
    """The `Extraction` of the values of `extraction_options`."""
    from align.extract import Extraction

    return Extraction(pooling, extractor, threshold, eos, punctuation)


def _apply(command: F, *options: Callable[[F], F]) -> F:
    for option in reversed(options):
        command = option(command)
    return command
