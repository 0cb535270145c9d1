"""Three ways to write a source without spaces: what the model finds natural, and what aligns best.

    python -m bench.unspaced MODEL GOLD_FOLDER

MODEL is the folder of a Hugging Face model, GOLD_FOLDER has `src`, `tgt` and `gold`. Lone marks are pieces of no word
other than `</s>` and tags; their share is of the attention of one layer, averaged over heads.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import torch

from align.extract import Extraction
from align.methods import make_method
from align.models.cutters import cut_words
from align.models.hf_loading import load_huggingface
from align.models.subwords import NO_WORD
from align.pipeline import align_pairs, encode_pairs, plan_batches
from data.bitext import read_bitext
from data.links import read_gold
from eval.aer import corpus_stats, scores, total

if TYPE_CHECKING:
    from align.models.huggingface import HuggingFaceModel
    from data.bitext import Pair

WAYS = {"--piece-ends text": {"piece_ends": "text"}, "default": {}, "--unspaced none": {"unspaced": "none"}}


@click.command()
@click.argument("model", type=click.Path(exists=True, path_type=Path))
@click.argument("gold", type=click.Path(exists=True, path_type=Path))
@click.option("--methods", default="attention:layer=2:position=awi,vector-norm:layer=1:position=awi", show_default=True)
@click.option("--layer", default=2, show_default=True, help="Layer whose attention to lone marks is measured.")
def main(model: Path, gold: Path, methods: str, layer: int) -> None:
    """Print a row for each way."""
    pairs, links = list(read_bitext(gold / "src", gold / "tgt")), list(read_gold(gold / "gold"))
    print("way", "pieces", "over two words", "log p of a word", "on lone marks", *methods.split(","), sep="\t")
    for way, options in WAYS.items():
        loaded = load_huggingface(model, **options)
        found = [*pieces(loaded, pairs), *natural(loaded, pairs, layer)]
        for method in methods.split(","):
            results = align_pairs(loaded, iter(pairs), make_method(method), Extraction(pooling="piece"))
            found.append(scores(total(corpus_stats([result.links for result in results], links))).aer or 0.0)
        print(way, *(f"{x:.3f}" if isinstance(x, float) else x for x in found), sep="\t", flush=True)


def pieces(model: HuggingFaceModel, pairs: list[Pair]) -> tuple[int, int]:
    """Source pieces, and those with characters of several words."""
    count = over = 0
    side = model.tokens.source
    for pair in pairs:
        text = side.write(pair.source)
        spans = cut_words(text, side.cut, side.ends)[0].spans
        count += len(spans)
        over += sum(len({*text.word_of[begin:end]} - {NO_WORD}) > 1 for begin, end in spans)
    return count, over


@torch.no_grad()
def natural(model: HuggingFaceModel, pairs: list[Pair], layer: int) -> tuple[float, float]:
    """log p of a target word, and the share of attention on lone marks."""
    side = model.tokens.source
    around = torch.tensor([*side.before, *side.after])
    log_p = words = lone = rows = 0.0
    for group in plan_batches(encode_pairs(model, pairs), 1000):
        batch = model.batch(group)
        log_p += float(model.log_probs(batch, model.embed(batch)).sum())
        words += sum(len(pair.target_words) for pair in group)
        marks = (batch.source_word_of == NO_WORD) & batch.source_mask & ~torch.isin(batch.source, around)  # [B, S]
        weights = model.cross_attention(batch, [layer])[0].mean(1) * batch.target_mask[..., None]  # [B, T, S]
        lone += float((weights * marks[:, None]).sum())
        rows += float(batch.target_mask.sum())
    return log_p / words, lone / rows


if __name__ == "__main__":
    main()
