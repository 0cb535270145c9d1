"""Small checkpoints for the tests, good ones to begin with."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest
import torch

from align.models.checkpoint import read_checkpoint
from data.errors import CheckpointError


def weights() -> dict[str, torch.Tensor]:
    embedding = torch.arange(12, dtype=torch.float16).view(4, 3) / 8
    return {
        "encoder.embed_tokens.weight": embedding,
        "decoder.embed_tokens.weight": embedding,  # tied
        "decoder.bias": torch.tensor([0.5, 0.25], dtype=torch.float64),
        "decoder.steps": torch.tensor([3]),
    }


def args(**more: Any) -> argparse.Namespace:
    return argparse.Namespace(
        arch="transformer",
        task="translation",
        encoder_layers=2,
        lr=[0.1, 1],
        user_dir="/evil",
        data="bin",
        **more,
    )


def save(path: Path, content: dict[str, Any], legacy: bool = False, protocol: int = 2) -> Path:
    torch.save(content, path, _use_new_zipfile_serialization=not legacy, pickle_protocol=protocol)
    return path


def refusal(path: Path) -> str:
    with pytest.raises(CheckpointError) as caught:
        read_checkpoint(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "weights_only" not in message  # torch's advice to switch the safety off is not passed on
    return message
