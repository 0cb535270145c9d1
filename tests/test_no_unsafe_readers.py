"""No code of the packages can run what is in a file: one place calls `torch.load`, and safely."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted(path for package in ("align", "data", "eval") for path in (ROOT / package).rglob("*.py"))
READER = ROOT / "align" / "models" / "checkpoint.py"

MODULES = {"pickle", "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}
CALLS = {"eval", "exec", "builtins.eval", "builtins.exec", "torch.jit.load", "torch.hub.load"}
CALLS |= {"torch.storage._load_from_bytes", "pandas.read_pickle", "torch.serialization.add_safe_globals"}
YAML = {"yaml.load", "yaml.load_all", "yaml.unsafe_load", "yaml.full_load", "yaml.unsafe_load_all"}
LOADS = {"torch.load", "torch.serialization.load"}
FLAGS = {"allow_pickle", "trust_remote_code"}


def unsafe(source: str, may_load: bool = False) -> Iterator[str]:
    """What in `source` could run data as code; `may_load` lets `torch.load(..., weights_only=True)` pass."""
    tree = ast.parse(source)
    full_names = dict(imported(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            yield from (f"line {node.lineno}: import {n}" for n in names if n.partition(".")[0] in MODULES)
        elif isinstance(node, ast.Name | ast.Attribute):
            name = dotted(node, full_names)
            if name in CALLS - {"torch.serialization.add_safe_globals" if may_load else ""} | YAML:
                yield f"line {node.lineno}: {name}"
            elif name in LOADS and not may_load:
                yield f"line {node.lineno}: {name} outside {READER.name}"
        if isinstance(node, ast.Call):
            options = {k.arg: k.value for k in node.keywords}
            for flag in FLAGS & options.keys():
                if not is_literal(options[flag], False):
                    yield f"line {node.lineno}: {flag}"
            if dotted(node.func, full_names) in LOADS and not is_literal(options.get("weights_only"), True):
                yield f"line {node.lineno}: torch.load without weights_only=True"


def imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """(name in this file, full name) of each import."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((a.asname, a.name) for a in node.names if a.asname)
        elif isinstance(node, ast.ImportFrom):
            yield from ((a.asname or a.name, f"{node.module}.{a.name}") for a in node.names)


def dotted(node: ast.AST, full_names: dict[str, str]) -> str:
    """`a.b.c` with `a` replaced by what it was imported from; empty for anything but names."""
    if isinstance(node, ast.Name):
        return full_names.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        owner = dotted(node.value, full_names)
        return f"{owner}.{node.attr}" if owner else ""
    return ""


def is_literal(node: ast.expr | None, value: bool) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_unsafe_reader(path: Path) -> None:
    assert list(unsafe(path.read_text("utf-8"), path == READER)) == []


def test_the_reader_is_seen() -> None:
    assert READER in SOURCES
    assert any("torch.load" in found for found in unsafe(READER.read_text("utf-8")))


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "import os, pickle as p",
        "from pickle import loads",
        "import joblib.externals",
        "def f():\n    from dill import load",
        "eval('1')",
        "exec(code)",
        "run = eval",
        "import builtins\nbuiltins.exec(code)",
        "from builtins import eval as f\nf('1')",
        "import torch\ntorch.load(f, weights_only=True)",
        "import torch as t\nt.load(f)",
        "from torch import load\nload(f)",
        "read = torch.load",
        "torch.jit.load(f)",
        "import yaml as y\ny.load(f)",
        "from yaml import unsafe_load",
        "yaml.full_load(f)\n",
        "np.load(f, allow_pickle=True)",
        "np.load(f, allow_pickle=flag)",
        "Model.from_pretrained(x, trust_remote_code=True)",
        "torch.serialization.add_safe_globals([x])",
    ],
)
def test_unsafe_source_is_found(source: str) -> None:
    assert list(unsafe(source if "unsafe_load" not in source else source + "\nunsafe_load(f)"))


@pytest.mark.parametrize("options", ["", ", weights_only=False", ", weights_only=flag", ", **options"])
def test_the_reader_itself_must_load_safely(options: str) -> None:
    assert list(unsafe(f"import torch\ntorch.load(f{options})", may_load=True))
    assert not list(unsafe("import torch\ntorch.load(f, weights_only=True)", may_load=True))


@pytest.mark.parametrize(
    "source",
    [
        "model.eval()",
        "import pickletools",
        "json.load(f)",
        "np.load(f, allow_pickle=False)",
        "from eval.aer import score\nscore()",
        "yaml.safe_load(f)",
        "module.load_state_dict(w)",
    ],
)
def test_harmless_source_passes(source: str) -> None:
    assert not list(unsafe(source))
