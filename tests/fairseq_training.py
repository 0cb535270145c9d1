"""Trains tiny models by `fairseq-train` on a few sentences: `python -m tests.fairseq_training FOLDER NAME...`.

One process trains all of them, since importing fairseq is most of the work. fairseq's batching is compiled code, which
an installation for reading models leaves out; where it is missing, that of the bench takes its place.
"""

from __future__ import annotations

import random
import subprocess
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from unittest import mock

from data.bitext import Pair, read_bitext

if TYPE_CHECKING:
    from torch import Tensor

ALL = "--optimizer adam --lr 0.05 --max-update 4 --max-tokens 80 --clip-norm 1 --dropout 0.1 --seed 1 --num-workers 0"
ALL += " --cpu --no-progress-bar --no-epoch-checkpoints --no-save-optimizer-state --log-format none"
ALL += " --max-source-positions 64 --max-target-positions 64"
SHAPE = "--encoder-embed-dim 8 --decoder-embed-dim 8 --encoder-layers 2 --decoder-layers 2"
HEADS = "--encoder-ffn-embed-dim 12 --decoder-ffn-embed-dim 12 --encoder-attention-heads 2 --decoder-attention-heads 2"
NORMALIZED = "--encoder-normalize-before --decoder-normalize-before"
CONVOLUTIONS = f"--arch lightconv {SHAPE} {HEADS} --encoder-conv-dim 8 --decoder-conv-dim 8 --encoder-glu False "
CONVOLUTIONS += "--decoder-glu False --encoder-kernel-size-list [3,3] --decoder-kernel-size-list [3,3]"
MANY = "--task translation_multi_simple_epoch --langs de,en,fr --lang-pairs de-en --sampling-method temperature"
MANY += " --encoder-langtok src --decoder-langtok"
TUNED = "--task translation_from_pretrained_bart --langs de,en,fr -s de -t en"
MBART = f"--arch mbart_base --layernorm-embedding {NORMALIZED} {SHAPE} {HEADS}"
PAD = 1

# Options of each model beside those of all.
MODELS: dict[str, list[str]] = {
    "transformer": f"--arch transformer --share-decoder-input-output-embed {SHAPE} {HEADS}".split(),
    "transformer_align": "--arch transformer_align --alignment-heads 1 --alignment-layer 0 --load-alignments "
    f"--criterion label_smoothed_cross_entropy_with_alignment {SHAPE} {HEADS}".split(),
    "lstm": "--arch lstm --encoder-bidirectional --encoder-hidden-size 8 --decoder-hidden-size 8 "
    f"--decoder-out-embed-dim 6 {SHAPE}".split(),
    "fconv": "--arch fconv --encoder-layers [(8,3)]*2 --decoder-layers [(8,3)]*2 --decoder-attention True "
    "--encoder-embed-dim 8 --decoder-embed-dim 8 --decoder-out-embed-dim 6".split(),
    "lightconv": f"{CONVOLUTIONS} --encoder-conv-type lightweight --decoder-conv-type lightweight".split(),
    "dynamicconv": f"{CONVOLUTIONS} --encoder-conv-type dynamic --decoder-conv-type dynamic".split(),
    # As M2M-100 and NLLB-200 were trained.
    "m2m": f"{MANY} --arch transformer --share-all-embeddings {NORMALIZED} {SHAPE} {HEADS}".split(),
    "replacing": f"{MANY} --lang-tok-replacing-bos-eos --arch transformer {SHAPE} {HEADS}".split(),
    # As mBART-50 and mBART-25 were tuned.
    "mbart50": f"{MANY} --lang-tok-style mbart {MBART}".split(),
    "mbart25": f"{TUNED} {MBART}".split(),
    "mbart25_bos": f"{TUNED} --prepend-bos {MBART}".split(),
}


class Observed(NamedTuple):
    """Ids of a sentence in fairseq, and its answer: log p [T] and the attention it returns [T, S]."""

    source: tuple[int, ...]
    prefix: tuple[int, ...]
    target: tuple[int, ...]
    log_probs: Tensor
    attention: Tensor


def trained(folder: Path, *names: str) -> Path:
    """`folder`, once models of these names are trained in it."""
    command = [sys.executable, "-m", __name__, folder, *names]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return folder


def load_trained(folder: Path, name: str, dtype=None, languages=("de", "en")):
    import torch

    from align.models.fairseq_loading import load_fairseq
    from align.models.subwords import joined_bpe

    files = folder / "dict.de.txt", folder / "dict.en.txt"
    weights = folder / name / "checkpoint_last.pt"
    cut = lambda source, target: (joined_bpe, joined_bpe)  # noqa: E731
    return load_fairseq(weights, files, cut, dtype or torch.float64, languages=languages)


def validation_pairs(folder: Path) -> list[Pair]:
    return list(read_bitext(folder / "valid.de", folder / "valid.en"))


def observed(folder: Path, name: str) -> list[Observed]:
    """What fairseq fed and answered in the last step of validation, sentence by sentence, without padding."""
    import torch

    batch = torch.load(folder / f"{name}.observed", weights_only=True)
    rows = []
    for n in range(len(batch["source"])):
        written = batch["target"][n].ne(PAD)
        ids = (tuple(batch[side][n][batch[side][n].ne(PAD)].tolist()) for side in ("source", "prefix", "target"))
        weights = batch["attention"][n][written]
        rows.append(Observed(*ids, batch["log_probs"][n][written], weights[:, (weights > 0).any(0)]))
    return rows


def write_data(folder: Path) -> None:
    """Sixteen pairs in pieces, and their alignments."""
    rng = random.Random(0)
    symbols = {"de": [f"s{n}" for n in range(8)] + ["s8@@"], "en": [f"t{n}" for n in range(8)] + ["t8@@"]}
    for split in ("train", "valid"):
        lengths = [rng.randint(2, 6) for _ in range(16)]
        for language, known in symbols.items():
            lines = [" ".join(rng.choices(known, k=length)) for length in lengths]
            (folder / f"{split}.{language}").write_text("\n".join(lines) + "\n")
        links = [" ".join(f"{n}-{n}" for n in range(length)) for length in lengths]
        (folder / f"{split}.align").write_text("\n".join(links) + "\n")


def observe(path: Path):
    """Let validation save what fairseq feeds the model (the last batch) and the model's own answer."""
    import torch
    from fairseq.tasks import FairseqTask

    validate = FairseqTask.valid_step

    def valid_step(task, sample, model, criterion):
        model.eval()
        fed, target = sample["net_input"], sample["target"]
        with torch.no_grad():
            logits, extra = model(**fed)
        log_probs = logits.log_softmax(-1).gather(-1, target[..., None])[..., 0]
        attention = extra["attn"][0] if isinstance(extra, dict) else extra
        names = {"source": fed["src_tokens"], "prefix": fed["prev_output_tokens"], "target": target}
        torch.save({**names, "log_probs": log_probs, "attention": attention}, path)
        return validate(task, sample, model, criterion)

    return mock.patch.object(FairseqTask, "valid_step", valid_step)


def main(folder: Path, names: list[str]) -> None:
    warnings.simplefilter("ignore")
    try:
        import fairseq.data.data_utils_fast  # noqa: F401
    except ImportError:
        from bench.fairseq_peer import batching

        sys.modules["fairseq.data.data_utils_fast"] = batching()
    import fairseq_cli.preprocess
    import fairseq_cli.train
    from fairseq.tasks.translation_from_pretrained_bart import TranslationFromPretrainedBARTTask

    TranslationFromPretrainedBARTTask.args = property(lambda task: task.cfg)  # which fairseq 0.12 forgot to rename
    texts = ["--trainpref", folder / "train", "--validpref", folder / "valid", "--align-suffix", "align"]
    sys.argv = [*"fairseq-preprocess -s de -t en --joined-dictionary --destdir".split(), str(folder), *map(str, texts)]
    fairseq_cli.preprocess.cli_main()
    for name in names:
        place = folder / name
        sys.argv = ["fairseq-train", str(folder), "--save-dir", str(place), *ALL.split(), *MODELS[name]]
        with observe(folder / f"{name}.observed"):
            fairseq_cli.train.cli_main()


if __name__ == "__main__":
    write_data(Path(sys.argv[1]))
    main(Path(sys.argv[1]), sys.argv[2:])
