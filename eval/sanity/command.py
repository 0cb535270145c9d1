"""`nmt-align sanity`: is there something to read, before it is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from align.options import ModelArguments, TextArguments, batch_options, gathering, model_options, text_options
from data.errors import DataError
from data.streams import check_paths, write_atomically
from eval.options import result_options
from eval.purpose import opening, purpose_option, render_report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from align.models.base import Encoded, TranslationModel
    from data.bitext import Pair
    from eval.tables import Format

F = TypeVar("F", bound="Callable[..., Any]")


@click.group()
def sanity() -> None:
    """Check attention, and the methods, before reading them.

    `attention` replaces cross-attention and tells which layers and heads matter; `manipulate` looks for other attention
    with the same prediction; `methods` asks whether maps depend on the model, and whether they hold what they promise.
    """


@dataclass(frozen=True)
class Sample:
    """The options that say which text is explained."""

    files: TextArguments
    limit: int | None
    max_unknown: float
    batch_pieces: int


def text_and_model(command: F) -> F:
    """Model, text and purpose; the text is collected as `text`."""
    names = ("text", "limit", "max_unknown", "batch_pieces")
    command = gathering(command, names, "text", lambda values: Sample(values.pop("text"), **values))
    limit = click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the first N pairs.")
    return model_options(text_options(purpose_option(limit(batch_options(command)))))


def load(model: ModelArguments, text: Sample, output: str, overwrite: bool) -> tuple[TranslationModel, list[Encoded]]:
    """The model and the pairs that can go through it.

    Raises:
        DataError: there is no such pair.
    """
    check_paths(text.files.paths, output, overwrite=overwrite)
    from itertools import islice

    loaded, stream = load_model_and_text(model, text)
    return loaded, passable(loaded, islice(stream, text.limit), text.max_unknown)


def load_model_and_text(model: ModelArguments, text: Sample) -> tuple[TranslationModel, Iterator[Pair]]:
    """The model, and every pair of the text."""
    from align.models.load import load_model

    options, stream = model.load_options(text.files.pairs())
    return load_model(model.model, options), iter(stream)


def passable(model: TranslationModel, pairs: Iterable[Pair], max_unknown: float) -> list[Encoded]:
    """The pairs that can go through the model; how many cannot is noted.

    Raises:
        DataError: there is no such pair.
    """
    from align.pipeline import encode_pairs

    encoded = encode_pairs(model, pairs, max_unknown)
    good = [pair for pair in encoded if pair.status == "ok"]
    if len(good) < len(encoded):
        click.echo(f"note: {len(encoded) - len(good)} pairs are empty or too long and left out", err=True)
    if not good:
        raise DataError("the text has no pair that can go through the model")
    return good


def signed(rows: Sequence[dict[str, object]], model: TranslationModel, settings: dict[str, object]) -> None:
    """Put the signature into every row."""
    from align.signature import signature

    line = signature({**settings, "model": model.identity})
    for row in rows:
        row["signature"] = line


@sanity.command()
@text_and_model
@click.option(
    "--kinds",
    default="uniform,random,permuted,row-mean,corpus-mean,pruned",
    show_default=True,
    help="What stands in for attention.",
)
@click.option("--units", default="all,layer,head", show_default=True, help="What is replaced at a time.")
@click.option("--least", type=click.FloatRange(0), default=0.01, show_default=True, help="Loss that matters, in nats.")
@click.option("--translate", is_flag=True, help="Also translate freely, and report BLEU and chrF lost (slow).")
@result_options
def attention(
    model: ModelArguments,
    text: Sample,
    reader: str,
    kinds: str,
    units: str,
    least: float,
    translate: bool,
    bootstrap: int,
    seed: int,
    form: Format,
    output: str,
    overwrite: bool,
) -> None:
    """Tell which layers and heads of cross-attention matter at all.

    Replaces the weights of all layers, each layer, each head by others and reports what the model loses of log p of the
    target text (nats a piece, 95% interval over sentences) and of its own translations. `kept` is the share of pieces
    whose best prediction stays. Where nothing is lost, reading attention cannot tell what the prediction rests on.
    """
    loaded, pairs = load(model, text, output, overwrite)
    from align.progress import progress_bar
    from eval.quality import translation_quality
    from eval.sanity.attention import QUALITY_KEYS, attention_rows, conclusions, replacement_losses
    from eval.sanity.patterns import KINDS, variants

    chosen = variants(loaded, kinds.split(","), units.split(","))
    advance = progress_bar(len(pairs) * (len(chosen) + 1))
    losses, patterns = replacement_losses(loaded, pairs, chosen, seed, text.batch_pieces, advance)
    clean = translation_quality(loaded, [pair.pair for pair in pairs]) if translate else None
    advance = progress_bar(len(pairs) * len(chosen) if translate else 0)
    rows = attention_rows(loaded, pairs, losses, patterns, least, bootstrap, seed, clean, advance)
    signed(rows, loaded, {"check": "attention", "pairs": len(pairs), "least": least, "seed": seed})
    first = opening(reader, "does the prediction rest on cross-attention, and on which layers and heads of it?")
    first += [f"{kind}: {KINDS[kind]}" for kind in dict.fromkeys(kinds.split(","))]
    columns = [key for key in rows[0] if translate or key not in QUALITY_KEYS]
    last = [f"As it is, the model has BLEU {clean.bleu:.1f} and chrF {clean.chrf:.1f} here."] if clean else []
    with write_atomically(output) as out:
        out.write(render_report(form, first, rows, last + conclusions(rows, least), columns))


@sanity.command()
@text_and_model
@click.option("--epsilon", type=float, default=0.05, show_default=True, help="Most total variation of a prediction.")
@click.option("--steps", type=click.IntRange(1), default=80, show_default=True, help="Steps of the search.")
@click.option(
    "--distance", type=click.Choice(["tv", "jsd"]), default="tv", show_default=True, help="Distance to maximise."
)
@click.option("--units", default="all,layer", show_default=True, help="Move `all` layers together, each `layer`.")
@result_options
def manipulate(
    model: ModelArguments,
    text: Sample,
    reader: str,
    epsilon: float,
    steps: int,
    distance: str,
    units: str,
    bootstrap: int,
    seed: int,
    form: Format,
    output: str,
    overwrite: bool,
) -> None:
    """Look for other attention with the same predictions: can attention lie?

    For each sentence, moves the weights of a layer, or of all layers, as far as it can while the distribution of every
    target piece stays within --epsilon (total variation). `tv` is how far the mean over heads has moved, 0 to 1;
    `moved` the share of target pieces whose most attended source piece is another one.
    """
    loaded, pairs = load(model, text, output, overwrite)
    from align.progress import progress_bar
    from eval.sanity.manipulate import Search, conclusions, manipulation_row
    from eval.sanity.manipulate import manipulate as search_weights
    from eval.sanity.patterns import check_names

    asked = check_names("unit", units.split(","), ("all", "layer"))
    search = Search(epsilon, steps, distance, seed)
    places = {"all": list(range(loaded.layers))} if "all" in asked else {}
    places |= {str(layer): [layer] for layer in range(loaded.layers)} if "layer" in asked else {}
    advance = progress_bar(len(pairs) * steps * len(places))
    rows = [
        manipulation_row(
            name, search_weights(loaded, pairs, layers, search, text.batch_pieces, advance), bootstrap, seed
        )
        for name, layers in places.items()
    ]
    settings = {"check": "manipulate", "pairs": len(pairs), "epsilon": epsilon, "steps": steps, "distance": distance}
    signed(rows, loaded, {**settings, "seed": seed})
    first = opening(reader, "is there other attention that goes with the same predictions?")
    with write_atomically(output) as out:
        out.write(render_report(form, first, rows, conclusions(rows, epsilon)))


METHODS = ",".join(
    (
        "attention:layer=-1:position=awo",
        "vector-norm:layer=-1:position=awo",
        "rollout:layer=-1:position=awo:scope=decoder",
        "alti:layer=-1:position=awo:scope=decoder",
        "gradient-norm:norm=l1",
        "gradient-x-input:sign=signed",
        "smoothgrad:samples=5:base=input",
        "integrated-gradients:sign=signed:steps=8",
        "integrated-gradients:baseline=unk:sign=signed:steps=8",
        "lrp:attention=propagated:sign=signed",
        "occlusion:baseline=zero:sign=signed",
        "occlusion:baseline=unk:sign=signed",
        "omission:sign=signed",
    )
)


@sanity.command("methods")
@text_and_model
@click.option(
    "--methods", "specs", default=METHODS, help="Names with options, as for `compare` (default: one a family)."
)
@click.option(
    "--checks",
    default="cascading,independent,invariance",
    show_default=True,
    help="Randomise weights cascading from the output, block by block; check what maps ought to withstand.",
)
@click.option("--samples", type=click.IntRange(1), default=5, show_default=True, help="Draws of noise.")
@click.option(
    "--radius",
    type=click.FloatRange(0, min_open=True),
    default=0.1,
    show_default=True,
    help="Size of the noise, as a share of the embeddings' root mean square.",
)
@click.option(
    "--fade",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.5,
    show_default=True,
    help="The most that a word fades, for infidelity.",
)
@click.option("--fadings", type=click.IntRange(1), default=20, show_default=True, help="Draws of words that fade.")
@result_options
def check_methods(
    model: ModelArguments,
    text: Sample,
    reader: str,
    specs: str,
    checks: str,
    samples: int,
    radius: float,
    fade: float,
    fadings: int,
    bootstrap: int,
    seed: int,
    form: Format,
    output: str,
    overwrite: bool,
) -> None:
    """Tell whether maps depend on the model, and hold what they promise.

    Randomisation: Spearman's rho of word maps before and after weights are drawn anew. Invariance: how much maps change
    when nothing changes for the model, or little; and how well they foretell what fading words cost.
    """
    loaded, pairs = load(model, text, output, overwrite)
    from eval.faithfulness_report import usable
    from eval.sanity.methods import check, report

    methods, notes = usable(specs.split(","), loaded)
    for note in notes:
        click.echo(f"note: {note}", err=True)
    settings = {"samples": samples, "radius": radius, "fade": fade, "fadings": fadings, "seed": seed}
    found = check(loaded, pairs, methods, checks.split(","), settings, text.batch_pieces, bootstrap)
    for rows in found.values():
        signed(rows, loaded, {"check": "methods", "pairs": len(pairs), **settings})
    first = opening(reader, "do the maps of a method depend on the model, and hold what they promise?", methods)
    with write_atomically(output) as out:
        out.write(report(form, first, found))
