"""Lines in, whole files out."""

from __future__ import annotations

import bz2
import contextlib
import errno
import gzip
import io
import lzma
import os
import sys
import tempfile
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data import streams
from data.errors import AlignError, DataError, UsageError
from data.streams import check_paths, read_lines, write_atomically, write_bytes_atomically

BOM = b"\xef\xbb\xbf"


def lines_of(raw: bytes, name: str = "text") -> list[str]:
    """What `read_lines` makes of a file with these bytes; numbers must count from 1."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(raw)
        rows = list(read_lines(path))
    assert [number for number, _ in rows] == list(range(1, len(rows) + 1))
    return [text for _, text in rows]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"", []),
        (BOM, []),
        (b"\n", [""]),
        (BOM + b"\n", [""]),
        (b"a", ["a"]),
        (b"a\n", ["a"]),
        (b"a\n\n", ["a", ""]),
        (b"a\n\nb", ["a", "", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\r\r\nb\r", ["a\r", "b\r"]),
        (b"a\rb\n", ["a\rb"]),
        (b"\r\n", [""]),
        (BOM + b"a\n" + BOM + b"b\n", ["a", "\ufeffb"]),
        ("a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg\n".encode(), ["a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg"]),
        (b"nul \x00 esc \x1b\n", ["nul \x00 esc \x1b"]),
        ("\u00a0\u3000\u200b\n".encode(), ["\u00a0\u3000\u200b"]),
    ],
)
def test_lines(raw: bytes, expected: list[str]) -> None:
    assert lines_of(raw) == expected
    for pack in (gzip.compress, bz2.compress, lzma.compress):
        assert lines_of(pack(raw)) == expected


@given(st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]))))
@settings(deadline=None)
def test_lines_come_back_as_written(texts: list[str]) -> None:
    # The two things that reading takes away.
    texts = [text.rstrip("\r") for text in texts]
    texts[:1] = [text.lstrip("\ufeff") for text in texts[:1]]
    assert lines_of("".join(text + "\n" for text in texts).encode()) == texts


@given(st.binary() | st.binary().map(lambda raw: b"\x1f\x8b" + raw))
@settings(deadline=None)
def test_any_bytes_are_text_or_a_data_error(raw: bytes) -> None:
    with contextlib.suppress(DataError):
        assert "".join(lines_of(raw)).isascii() or not raw.isascii()


def test_what_is_dropped_is_noted_once(caplog: pytest.LogCaptureFixture) -> None:
    lines_of(BOM + b"a\r\nb\r\nc\r\n")
    assert len(caplog.messages) == 2
    assert "byte order mark" in caplog.messages[0]
    assert "CR LF" in caplog.messages[1]


def test_bad_utf8_is_located(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"ok\n" * 6 + "ü".encode() + b"\xff\n")
    with pytest.raises(DataError, match="0xFF") as caught:
        list(read_lines(path))
    assert (caught.value.path, caught.value.line, caught.value.column) == (path, 7, 3)


def test_column_counts_the_byte_order_mark() -> None:
    with pytest.raises(DataError) as caught:
        lines_of(BOM + b"a\xff")
    assert (caught.value.line, caught.value.column) == (1, 5)


@pytest.mark.parametrize("raw", [b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\xc3"])
def test_utf8_is_strict(raw: bytes) -> None:
    with pytest.raises(DataError):
        lines_of(raw)


def test_utf16_is_recognised() -> None:
    with pytest.raises(DataError, match="UTF-16"):
        lines_of("das Haus\n".encode("utf-16"))


def test_type_is_told_by_content_not_by_name() -> None:
    assert lines_of(b"a\n", "text.gz") == ["a"]
    assert lines_of(gzip.compress(b"a\n"), "text.txt") == ["a"]


def test_all_members_are_read() -> None:
    assert lines_of(gzip.compress(b"a\nb") + gzip.compress(b"c\nd\n")) == ["a", "bc", "d"]


def test_cut_gzip_is_an_error_at_every_length() -> None:
    member = gzip.compress(b"one\ntwo\nthree\n" * 20)
    for cut in range(2, len(member)):
        with pytest.raises(DataError, match="gzip"):
            lines_of(member[:cut])
        with pytest.raises(DataError, match="gzip"):
            lines_of(member + member[:cut])


@pytest.mark.parametrize("position", [-1, -5, 15])
def test_damaged_gzip_is_an_error(position: int) -> None:
    raw = bytearray(gzip.compress(os.urandom(50)))
    raw[position] ^= 0xFF
    with pytest.raises(DataError):
        lines_of(bytes(raw))


def test_zstandard() -> None:
    zstd = pytest.importorskip("backports.zstd", reason="needs the extra zst")
    packed = zstd.compress(b"a\nb")
    assert lines_of(packed + zstd.compress(b"c\n")) == ["a", "bc"]
    with pytest.raises(DataError, match="cut-off zstandard"):
        lines_of(packed[:-2])


def test_bytes_after_gzip_are_an_error() -> None:
    with pytest.raises(DataError, match="gzip"):
        lines_of(gzip.compress(b"a\n") + b"tail")


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        (bz2.compress(b"a" * 99)[:-3], "bzip2"),
        (bz2.compress(b"a" * 99)[:20] + bytes(40), "bzip2"),
        (lzma.compress(b"a" * 99)[:-3], "xz"),
        (lzma.compress(b"a" * 99)[:20] + bytes(40), "xz"),
        (b"PK\x03\x04", "zip"),
    ],
)
def test_other_compression_that_is_damaged_or_unknown_is_named(raw: bytes, name: str) -> None:
    with pytest.raises(DataError, match=name):
        lines_of(raw)


def test_a_line_without_end_is_not_read_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MAX_LINE_BYTES", 1 << 20)
    raw = gzip.compress(b"short\n" + b"a" * 50_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="1 MiB") as caught:
            lines_of(raw)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()
    assert caught.value.line == 2


def test_memory_is_constant(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"a line of text\n" * 50_000)
    tracemalloc.start()
    try:
        assert sum(1 for _ in read_lines(path)) == 50_000
        assert tracemalloc.get_traced_memory()[1] < 500_000
    finally:
        tracemalloc.stop()


def test_standard_input_is_read_as_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, encoding="ascii") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        rows = read_lines("-")
        os.write(writing, b"one\ntw")
        assert next(rows) == (1, "one")
        os.write(writing, b"o\n")
        assert next(rows) == (2, "two")
        os.close(writing)
        assert list(rows) == []
        assert not stdin.buffer.closed


def test_standard_input_may_be_gzip_and_unseekable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(b"a\nb\n"))))
    assert [text for _, text in read_lines("-")] == ["a", "b"]


@pytest.mark.parametrize("name", ["absent", "."])
def test_unreadable_files_are_data_errors(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        list(read_lines(tmp_path / name))


# Writing


def test_file_appears_only_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with write_atomically(path) as file:
        file.write("ü\u2028\r\n")
        assert not path.exists()
    assert path.read_bytes() == "ü\u2028\r\n".encode()
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize("name", ["out", "out.gz"])
def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("old")
    with contextlib.suppress(KeyboardInterrupt), write_atomically(path) as file:
        file.write("new" * 100_000)
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == [name]


def test_a_failing_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "out"
    path.write_text("old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(AlignError, match="No space left"), write_atomically(path) as file:
        file.write("new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out"]


def test_a_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    check_paths((), path)
    with write_atomically(path) as file:
        file.write("text")
    assert os.read(reader, 10) == b"text"
    with pytest.raises(BrokenPipeError), write_atomically(path) as file:
        print("text", os.close(reader), file=file)
    assert path.is_fifo()
    assert os.listdir(tmp_path) == ["pipe"]


def test_errors_about_other_files_pass(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), write_atomically(tmp_path / "out"):
        open(tmp_path / "absent").close()


def test_the_folder_must_exist(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written"), write_atomically(tmp_path / "no" / "out"):
        pass


def test_permissions_follow_the_umask(tmp_path: Path) -> None:
    with write_atomically(tmp_path / "out"):
        pass
    (tmp_path / "plain").touch()
    assert (tmp_path / "out").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with write_atomically(tmp_path / "link") as file:
        file.write("text")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "text"


def test_gzip_of_equal_content_is_equal(tmp_path: Path) -> None:
    for name in ("a.gz", "b.gz"):
        with write_atomically(tmp_path / name) as file:
            file.write("text\n" * 100)
    raw = (tmp_path / "a.gz").read_bytes()
    assert raw == (tmp_path / "b.gz").read_bytes()
    assert raw[3] == 0  # no name
    assert raw[4:8] == bytes(4)  # no time
    assert gzip.decompress(raw) == b"text\n" * 100


def test_bytes_can_be_written(tmp_path: Path) -> None:
    with write_bytes_atomically(tmp_path / "out") as file:
        file.write(b"\x00\xff")
    assert (tmp_path / "out").read_bytes() == b"\x00\xff"


def test_standard_output_stays_open(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    for text in ("ü\n", "b\n"):
        with write_atomically("-") as file:
            file.write(text)
    assert capsysbinary.readouterr().out == "ü\nb\n".encode()


def test_paths(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.touch()
    check_paths(("-", None, old), new)
    check_paths(("-",), "-")
    check_paths((new,), old, overwrite=True)
    with pytest.raises(UsageError, match="more than one"):
        check_paths(("-", None, "-"))
    with pytest.raises(UsageError, match="--overwrite"):
        check_paths((), old)
    with pytest.raises(UsageError, match="folder"):
        check_paths((), tmp_path / "no" / "out")


def test_an_input_is_no_output_under_any_name(tmp_path: Path) -> None:
    (tmp_path / "old").touch()
    (tmp_path / "link").symlink_to(tmp_path / "old")
    os.link(tmp_path / "old", tmp_path / "hard")
    for name in ("old", "link", "hard"):
        with pytest.raises(UsageError, match="is an input"):
            check_paths((tmp_path / name,), tmp_path / "old", overwrite=True)
