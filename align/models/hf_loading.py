"""From a folder, or a name on the Hugging Face hub, to a model. Nothing in the folder is executed."""

from __future__ import annotations

import hashlib
import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from align.models.checkpoint import check_finite
from align.models.container import listed
from align.models.hf_families import FAMILIES, Folder, read_json
from align.models.huggingface import FsmtModel, HuggingFaceModel, T5Model
from data.errors import AlignError, CheckpointError, ModelError, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

_ADAPTERS = {"fsmt": FsmtModel, "t5": T5Model, "mt5": T5Model}
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
_REFUSED = re.compile(r"Unsupported global: GLOBAL (\S+)")  # of torch's weights_only reader
_FETCHED = ("*.json", "*.model", "*.spm", "merges.txt")


def is_huggingface(path: str | Path) -> bool:
    """Whether `path` is a folder with the configuration of a Hugging Face model."""
    return (Path(path) / "config.json").is_file()


def load_huggingface(
    path: str | Path,
    source_lang: str | None = None,
    target_lang: str | None = None,
    unspaced: str = "auto",
    dtype: torch.dtype = torch.float32,
    device: str = "cpu",
    allow_download: bool = False,
    piece_ends: str = "word",
) -> HuggingFaceModel:
    """Load a Marian, M2M-100, NLLB-200, mBART, FSMT, T5, mT5 or MADLAD-400 model.

    Args:
        path: a folder that `save_pretrained` wrote or the hub gave; with `allow_download` also a name on the hub.
        source_lang, target_lang: by the codes of the model; models of one language pair need none.
        unspaced: the sides that are written without spaces between words: `source`, `target`, `both`, `none`, or
            `auto`, which goes by the language.
        dtype, device: in what precision and where it runs.
        allow_download: fetch what is not in the cache of the hub.
        piece_ends: on unspaced sides, end pieces at the words given (`word`) or where the model ends them (`text`).

    Raises:
        ModelError: no such model, a family that is not supported, or a tokenizer that cannot be read.
        CheckpointError: weights that are damaged, unsafe, or do not fit the configuration.
        UsageError: a language that is missing or unknown.
    """
    folder = _folder(path, allow_download)
    family = read_json(folder / "config.json").get("model_type")
    if family not in FAMILIES:
        raise ModelError(f"{folder}: models of type {family!r} are not supported; supported are {', '.join(FAMILIES)}")
    class_name, tokens_of = FAMILIES[family]
    weights = _weight_files(folder)
    with _transformers(folder) as transformers:
        model_class = getattr(transformers, class_name)
        config = model_class.config_class.from_pretrained(folder, local_files_only=True)
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        tokens = tokens_of(Folder(folder, config, tokenizer, source_lang, target_lang, unspaced, piece_ends))
        module, loaded = model_class.from_pretrained(
            folder,
            config=config,
            dtype=dtype,
            attn_implementation="eager",  # other implementations give no weights
            use_safetensors=weights[0].suffix == ".safetensors",
            weights_only=True,
            local_files_only=True,
            ignore_mismatched_sizes=True,  # they are told by name below
            output_loading_info=True,
        )
    _check_loaded(module, loaded, folder)
    adapter = _ADAPTERS.get(family, HuggingFaceModel)
    return adapter(module.to(device), tokens, tokenizer, Path(path).name, _sha256(weights))


def _folder(path: str | Path, allow_download: bool) -> Path:
    """The folder of the model, fetched from the hub where that is allowed."""
    if is_huggingface(path):
        return Path(path)
    if Path(path).exists() or not _HUB_NAME.fullmatch(str(path)):
        raise ModelError(f"{path} is not a folder with a config.json")
    if not allow_download:
        raise ModelError(
            f"{path}: no such folder; if it is a model on the Hugging Face hub, --allow-download fetches it from there"
        )
    return _download(str(path))


def _download(name: str) -> Path:
    """Fetch text files, vocabularies and weights, `.bin` only where there are no safetensors; nothing else."""
    try:
        from huggingface_hub import snapshot_download

        folder = Path(snapshot_download(name, allow_patterns=[*_FETCHED, "model*.safetensors"]))
        if not any(folder.glob("model*.safetensors")):
            folder = Path(snapshot_download(name, allow_patterns=[*_FETCHED, "pytorch_model*.bin"]))
    except Exception as error:  # of many kinds: name, network, rights, disk
        raise ModelError(f"{name} cannot be fetched from the hub: {printable(str(error), 200)}") from error
    return folder


def _weight_files(folder: Path) -> list[Path]:
    """The files with the weights, safetensors before `.bin`.

    Raises:
        CheckpointError: none, or an index that names files outside the folder.
    """
    for name in ("model.safetensors", "pytorch_model.bin"):
        if (folder / name).is_file():
            return [folder / name]
        shards = set(read_json(folder / f"{name}.index.json").get("weight_map", {}).values())
        if shards:
            if outside := [shard for shard in shards if Path(shard).name != shard]:
                raise CheckpointError(f"{folder / name}.index.json names files elsewhere: {listed(outside)}")
            return [folder / shard for shard in sorted(shards)]
    raise CheckpointError(f"{folder} has no weights that can be read: neither model.safetensors nor pytorch_model.bin")


def _sha256(files: list[Path]) -> str:
    """SHA-256 of the content of the files, one after the other."""
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


@contextmanager
def _transformers(folder: Path) -> Iterator[Any]:
    """transformers, quiet; its errors become ours."""
    try:
        import transformers
    except ImportError as error:
        raise ModelError(f"{folder}: {error}; Hugging Face models need `pip install nmt-align[hf]`") from error
    logging = transformers.utils.logging
    verbosity, progress = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield transformers
    except AlignError:
        raise
    except Exception as error:  # of many kinds, by whatever is wrong in the folder
        if found := _REFUSED.search(str(error)):  # torch would go on to tell how to switch the safety off
            reason = f"its weights ask for {printable(found[1])}, which is not known to be harmless"
        else:
            reason = f"{type(error).__name__}: {printable(str(error), 300)}"
        raise CheckpointError(f"{folder} is damaged, unsafe or incomplete, and was not loaded ({reason})") from error
    finally:
        logging.set_verbosity(verbosity)
        if progress:
            logging.enable_progress_bar()


def _check_loaded(module: Any, loaded: dict[str, Any], folder: Path) -> None:
    """Raise CheckpointError unless every parameter came from the files and is finite, and every tensor was used."""
    for kind in ("missing", "unexpected", "mismatched"):
        if keys := loaded[f"{kind}_keys"]:
            names = (key if isinstance(key, str) else key[0] for key in keys)  # mismatched ones come with shapes
            raise CheckpointError(f"{folder}: weights and config.json do not fit; {kind}: {listed(names)}")
    check_finite(module.state_dict(), folder)
