"""`fairseq-generate`, as installed here: its arguments are those of the command.

    python -m bench.fairseq_peer DATA --path MODEL --score-reference --print-alignment --cpu

fairseq's batching is compiled code, which an installation for reading models leaves out; where it is missing, the few
lines below take its place.
"""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def main() -> None:
    """Run fairseq-generate on the arguments of this process."""
    torch.serialization.add_safe_globals([argparse.Namespace])
    if find_spec("fairseq.data.data_utils_fast") is None:
        sys.modules["fairseq.data.data_utils_fast"] = batching()
    from fairseq_cli.generate import cli_main

    cli_main()


def batching() -> ModuleType:
    """What `fairseq.data.data_utils` asks of its compiled module: batches of `max_tokens` in the order given."""
    module: Any = ModuleType("fairseq.data.data_utils_fast")

    # The names and the order of arguments are fairseq's.
    def by_sizes(
        indices: Iterable[int], sizes: Iterable[int], max_tokens: int, max_sentences: int, multiple: int
    ) -> list[list[int]]:
        batches: list[list[int]] = [[]]
        longest = 0
        for index, size in zip(indices, sizes, strict=True):
            longest = max(longest, size)
            full = max_tokens > 0 and longest * (len(batches[-1]) + 1) > max_tokens
            if batches[-1] and (full or len(batches[-1]) == max_sentences):
                batches.append([])
                longest = size
            batches[-1].append(index)
        return batches

    def by_function(indices: Iterable[int], size_of: Callable[[int], int], *limits: int) -> list[list[int]]:
        found = list(indices)
        return by_sizes(found, map(size_of, found), *limits)

    module.batch_by_size_vec, module.batch_by_size_fn = by_sizes, by_function
    module.batch_fixed_shapes_fast = None
    found: ModuleType = module
    return found


if __name__ == "__main__":
    main()
