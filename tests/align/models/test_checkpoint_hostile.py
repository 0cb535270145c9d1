"""Checkpoints that are hostile, broken or something else: refused by name, and they leave no trace."""

from __future__ import annotations

import argparse
import io
import os
import pickle
import struct
import threading
import time
import zipfile
from pathlib import Path
from typing import Any

import hostile
import pytest
import torch
from checkpoint_files import args, refusal, save, weights
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.serialization import add_safe_globals, clear_safe_globals, get_safe_globals

from align.models import container
from align.models.checkpoint import Inert, read_checkpoint
from data.errors import CheckpointError


@pytest.fixture(autouse=True)
def _host_list() -> Any:
    """Each test starts with an empty allow-list of the host program and leaves none behind."""
    before = get_safe_globals()
    clear_safe_globals()
    yield
    clear_safe_globals()
    add_safe_globals(before)


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return save(tmp_path / "good.pt", {"args": args(), "model": weights()})


# Hostile files


def as_zip(path: Path, pickled: bytes) -> Path:
    return hostile.write_zip(path, pickled)


def as_plain_pickle(path: Path, pickled: bytes) -> Path:
    path.write_bytes(pickled if pickled.startswith(b"\x80") else b"\x80\x02" + pickled)
    return path


def as_legacy(path: Path, pickled: bytes) -> Path:
    """The old format, with `pickled` where the object is."""
    head = (pickle.dumps(0x1950A86A20F9469CFC6C, 2), pickle.dumps(1001, 2), pickle.dumps({}, 2))
    path.write_bytes(b"".join(head) + pickled + pickle.dumps([], 2))
    return path


def as_old_protocol(path: Path, pickled: bytes) -> Path:
    """Says protocol 2 whatever it uses."""
    return as_zip(path, b"\x80\x02" + pickled.removeprefix(pickled[:2] if pickled[0] == 0x80 else b""))


CONTAINERS = [as_zip, as_plain_pickle, as_legacy, as_old_protocol]


@pytest.mark.parametrize("wrap", CONTAINERS)
@pytest.mark.parametrize("trick", hostile.TRICKS.values(), ids=hostile.TRICKS)
def test_no_trick_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trick: Any, wrap: Any) -> None:
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    canary = tmp_path / "canary"
    pickled, name = trick(canary)
    assert repr(name) in refusal(wrap(tmp_path / "evil.pt", pickled))
    assert not canary.exists()


@pytest.mark.parametrize("trick", hostile.TRICKS.values(), ids=hostile.TRICKS)
def test_the_tricks_are_alive(tmp_path: Path, trick: Any) -> None:
    """The control: an ordinary unpickler falls for every one of them."""
    canary = tmp_path / "canary"
    pickle.loads(trick(canary)[0])
    assert canary.exists()


def test_every_unknown_name_is_listed_and_printable(tmp_path: Path) -> None:
    pickled = b"\x80\x02ca\x1b[2Jb\nc\n0" + b"".join(b"cm\nn%03d\n0" % k for k in range(40)) + b"N."
    message = refusal(as_zip(tmp_path / "a.pt", pickled))
    assert "'m.n000'" in message
    assert "and 31 more" in message
    assert "sandbox" in message
    assert "\x1b" not in message


def test_names_that_torch_allows_but_weights_do_not_need(tmp_path: Path) -> None:
    pickled = b"\x80\x02cbuiltins\nbytearray\nJ\x00\x00\x00\x7f\x85R."
    assert "builtins.bytearray" in refusal(as_zip(tmp_path / "a.pt", pickled))


def test_code_behind_torch_storage(tmp_path: Path) -> None:
    """torch's own loader of nested files runs them unsafely; it is not on the list."""
    inner = io.BytesIO()
    torch.save(hostile.Call(os.system, hostile.shell(tmp_path / "canary")), inner)
    pickled = pickle.dumps(hostile.Call(torch.storage._load_from_bytes, inner.getvalue()), 2)
    assert "torch.storage._load_from_bytes" in refusal(as_zip(tmp_path / "a.pt", pickled))
    assert not (tmp_path / "canary").exists()


def test_the_file_cannot_use_what_the_host_allowed(tmp_path: Path) -> None:
    add_safe_globals([hostile.touch])
    canary = tmp_path / "canary"
    content = {"args": hostile.Call(hostile.touch, str(canary)), "model": weights()}
    path = save(tmp_path / "a.pt", content)
    torch.load(path, weights_only=True)
    assert canary.exists()  # the host's own choice
    canary.unlink()
    assert "hostile.touch" in refusal(path)
    assert not canary.exists()


NAMESPACE = b"cargparse\nNamespace\n"
ARCH = b"}" + hostile.text("arch") + hostile.text("transformer") + b"s"


@pytest.mark.parametrize(
    ("target", "state"),
    [
        pytest.param(NAMESPACE, ARCH, id="on the class"),
        *(
            pytest.param(NAMESPACE + b")\x81", b"N}" + hostile.text(slot) + NAMESPACE + b"s\x86", id=slot)
            for slot in ("state", "__class__", "__setstate__")
        ),
    ],
)
def test_build_changes_nothing_outside(tmp_path: Path, target: bytes, state: bytes) -> None:
    """Attributes set on a class, or slots set on an object, by way of names that are allowed."""
    before = dict(vars(Inert)), dict(vars(argparse.Namespace))
    pickled = b"\x80\x02}(" + hostile.text("args") + target + state + b"b"
    refusal(as_zip(tmp_path / "a.pt", pickled + hostile.text("model") + b"}u."))
    assert (dict(vars(Inert)), dict(vars(argparse.Namespace))) == before


def test_inert_objects_keep_plain_state_only() -> None:
    inert = Inert(1, "two")
    inert.__setstate__(("not", "a dict"))
    assert inert.state == {}
    assert not hasattr(inert, "__dict__")


HUGE = {
    "text": b"X\xff\xff\xff\xff",
    "long": b"\x8a\xff\x01",
    "text of protocol 4": b"\x8d" + b"\xff" * 7 + b"\x7f",
    "frame": b"\x95" + b"\xff" * 8,
    "memo": b"Nr\xff\xff\xff\xff.",
    "missing memo": b"h\x07.",
    "empty stack": b"\x85.",
    "no mark": b"u.",
    "persistent id": b"K\x07Q.",
    "module": b"(" + hostile.text("module") + b"NNNtQ.",
    "deep tuple as key": b"})" + b"\x85" * 1_000_000 + b"K\x01s.",
    "long pickle": b"N0" * (1 << 17) + b"N.",
}


@pytest.mark.parametrize("wrap", CONTAINERS)
@pytest.mark.parametrize("pickled", HUGE.values(), ids=HUGE)
def test_absurd_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pickled: bytes, wrap: Any) -> None:
    monkeypatch.setattr(container, "MAX_PICKLE_BYTES", 1 << 17)
    refusal(wrap(tmp_path / "a.pt", b"\x80\x02" + pickled))


def tampered(path: Path, old: bytes, new: bytes, **more: bytes) -> Path:
    """A copy of the checkpoint whose pickle has `new` for `old`, with the same tensors."""
    with zipfile.ZipFile(path) as archive:
        content = {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}
    pickled = content.pop("data.pkl")
    assert old in pickled
    tensors = {"data_" + name[5:]: data for name, data in content.items() if name.startswith("data/")}
    return hostile.write_zip(path.with_name("tampered.pt"), pickled.replace(old, new), **(tensors | more))


HUGE_INT = b"J" + struct.pack("<i", 2**31 - 1)


def test_a_tensor_may_not_claim_more_than_the_file(tmp_path: Path) -> None:
    """Strides of 0 repeat one number; a shape may then ask for any amount of memory."""
    path = save(tmp_path / "a.pt", {"args": args(), "model": {"w": torch.zeros(1).expand(7, 11)}})
    assert read_checkpoint(path).weights["w"].shape == (7, 11)
    assert "'w' claims more data" in refusal(tampered(path, b"K\x07K\x0b", HUGE_INT + HUGE_INT))


def test_sizes_that_disagree_with_the_storage(tmp_path: Path) -> None:
    content = {"args": args(), "model": {"w": torch.zeros(77)}}
    path = save(tmp_path / "a.pt", content)
    assert "does not match" in refusal(tampered(path, b"K\x4dt", HUGE_INT + b"t"))
    assert "resize" in refusal(tampered(path, b"K\x4d\x85", HUGE_INT + b"\x85"))
    legacy = save(tmp_path / "b.pt", content, legacy=True).read_bytes()
    assert b"K\x4dN" in legacy
    path.write_bytes(legacy.replace(b"K\x4dN", b"\x8a\x06\0\0\0\0\0\x01N"))
    refusal(path)


# Files that are something else, or broken


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "git lfs pull"),
        (b"\n<!DOCTYPE html><html>", "HTML"),
        (b"<HTML><body>404", "HTML"),
        (b"\x1f\x8b\x08", "gzip"),
        (b"BZh9", "bzip2"),
        (struct.pack("<Q", 20) + b'{"w":{"dtype":"F32"}}', "safetensors"),
        (b"PK\x03\x04" + b"\0" * 99, "cut short"),
        (b"\x80\x02}.", "not one that torch.save wrote"),
        (b"\x80\x02}", "damaged or cut short"),
        (b"hello", "starts with b'hello'"),
    ],
)
def test_other_files_are_named(tmp_path: Path, content: bytes, expected: str) -> None:
    path = tmp_path / "a.pt"
    path.write_bytes(content)
    assert expected in refusal(path)


def test_absent_files_and_folders(tmp_path: Path) -> None:
    assert "No such file" in refusal(tmp_path / "absent.pt")
    assert "directory" in refusal(tmp_path)


def test_size_limit(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container, "MAX_BYTES", good.stat().st_size - 1)
    assert "more than the limit" in refusal(good)
    monkeypatch.setattr(container, "MAX_BYTES", good.stat().st_size)
    read_checkpoint(good)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["a/data.pkl", "a/version", "a/version"], "a name twice"),
        (["a/data.pkl", "b/version"], "outside its one folder"),
        (["a/data.pkl", "a/../../x"], "outside its one folder"),
        (["a/data.pkl", "a/..\\x"], "outside its one folder"),
        (["a/version"], "no data.pkl"),
        ([], "cut short|not a checkpoint"),
        (["a/data.pkl", "a/constants.pkl"], "TorchScript"),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_odd_zips(tmp_path: Path, names: list[str], expected: str) -> None:
    path = tmp_path / "a.pt"
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, b"\x80\x02}.")
    with pytest.raises(CheckpointError, match=expected):
        read_checkpoint(path)


def test_compressed_zip(tmp_path: Path) -> None:
    """Torch writes stored entries only; compression would allow a bomb."""
    path = tmp_path / "a.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/data.pkl", b"N" * 1_000_000 + b".")
    assert "compressed" in refusal(path)


def test_tensor_marked_as_a_folder(good: Path) -> None:
    """torch would leave such a tensor uninitialised: memory of the process in place of weights."""
    content = bytearray(good.read_bytes())
    entry = content.rfind(b"good/data/1") - 46
    assert content[entry : entry + 4] == b"PK\x01\x02"
    content[entry + 38] |= 0x10
    good.write_bytes(content)
    assert "folders" in refusal(good)


def test_overlapping_entries(tmp_path: Path) -> None:
    path = hostile.write_zip(tmp_path / "a.pt", b"\x80\x02}.", data_0=b"\0" * 999, data_1=b"\0" * 999)
    content = bytearray(path.read_bytes())
    first, second = (content.rfind(b"archive/data/" + k) - 46 for k in (b"0", b"1"))
    assert content[first : first + 4] == content[second : second + 4] == b"PK\x01\x02"
    content[second + 42 : second + 46] = content[first + 42 : first + 46]  # one place for both
    path.write_bytes(content)
    refusal(path)
    size = struct.pack("<I", 1 << 30)
    content[first + 20 : first + 28] = size + size
    path.write_bytes(content)
    assert "more bytes than the file" in refusal(path)


@pytest.mark.parametrize("order", ["good first", "good last"])
def test_two_zips_in_one(tmp_path: Path, good: Path, order: str) -> None:
    evil = hostile.write_zip(tmp_path / "evil.pt", hostile.reduce(tmp_path / "canary")[0])
    parts = [good.read_bytes(), evil.read_bytes()]
    both = tmp_path / "both.pt"
    both.write_bytes(b"".join(parts if order == "good first" else parts[::-1]))
    refusal(both)
    assert not (tmp_path / "canary").exists()


def test_pickle_before_a_zip(tmp_path: Path, good: Path) -> None:
    path = tmp_path / "both.pt"
    path.write_bytes(hostile.reduce(tmp_path / "canary")[0] + good.read_bytes())
    assert "posix.system" in refusal(path)
    assert not (tmp_path / "canary").exists()


@pytest.mark.parametrize("legacy", [False, True])
def test_truncated_anywhere(tmp_path: Path, legacy: bool) -> None:
    whole = save(tmp_path / "whole.pt", {"args": args(), "model": weights()}, legacy).read_bytes()
    path = tmp_path / "cut.pt"
    for end in {*range(0, len(whole), 23), *range(len(whole) - 40, len(whole))}:
        path.write_bytes(whole[:end])
        refusal(path)


@given(position=st.floats(0, 0.9999), flip=st.integers(1, 255), legacy=st.booleans())
@settings(deadline=None, max_examples=150)
def test_a_changed_byte_raises_only_our_error(
    tmp_path_factory: pytest.TempPathFactory, position: float, flip: int, legacy: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "changed.pt"
    content = bytearray(save(path, {"args": args(), "model": weights()}, legacy).read_bytes())
    content[int(position * len(content))] ^= flip
    path.write_bytes(content)
    try:
        read = read_checkpoint(path)
    except CheckpointError:
        return
    if not legacy:  # a zip has checksums: what is read is what was written
        assert list(read.weights) == list(weights())
        assert all(torch.equal(read.weights[k], v.to(read.weights[k].dtype)) for k, v in weights().items())


# The process-wide allow-list of torch


@pytest.mark.parametrize("works", [True, False])
def test_the_host_keeps_its_allow_list(tmp_path: Path, good: Path, works: bool) -> None:
    host: list[Any] = [argparse.Namespace, (Path, "host.Path"), (Inert, "argparse.Namespace")]
    add_safe_globals(host)
    if works:
        assert read_checkpoint(good).config["arch"] == "transformer"
    else:  # fails inside torch, after all checks
        refusal(as_zip(tmp_path / "a.pt", b"\x80\x02h\x07."))
    assert set(get_safe_globals()) == set(host)


def test_threads(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers take turns at the allow-list: none finds it without its entries."""
    load, inside, most = torch.load, [], []

    def slow(*arguments: Any, **options: Any) -> Any:
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.005)
        result = load(*arguments, **options)
        inside.pop()
        return result

    monkeypatch.setattr(torch, "load", slow)
    add_safe_globals([argparse.Namespace])
    found: list[object] = []
    threads = [
        threading.Thread(target=lambda: found.extend(read_checkpoint(good).config["arch"] for _ in range(10)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["transformer"] * 20
    assert max(most) == 1
    assert get_safe_globals() == [argparse.Namespace]
