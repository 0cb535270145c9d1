"""Text in and out: lines of UTF-8 bytes, plain or compressed, and files that are whole or absent."""

from __future__ import annotations

import bz2
import gzip
import io
import logging
import lzma
import os
import re
import secrets
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, cast

from data.errors import AlignError, DataError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

STANDARD_STREAM = "-"
MAX_LINE_BYTES = 1 << 26
"""Longest line that is read; without a limit a small compressed file could fill the memory."""

log = logging.getLogger("nmt_align")


def _open_zstandard(stream: BinaryIO) -> IO[bytes]:
    """Raises UsageError where no reader is installed."""
    try:
        from backports import zstd
    except ImportError:
        raise UsageError("reading zstandard data needs the extra zst: pip install 'nmt-align[zst]'") from None
    # A small file can ask for a window of gigabytes; 128 MiB is what `zstd` itself accepts unasked.
    limit: dict[int, int] = {zstd.DecompressionParameter.window_log_max: 27}
    return cast("IO[bytes]", zstd.ZstdFile(stream, options=limit))


# What compressed input begins with, and how it is opened (None: named in the error, not read).
COMPRESSIONS: dict[str, tuple[re.Pattern[bytes], Callable[[BinaryIO], IO[bytes]] | None]] = {
    "gzip": (re.compile(rb"\x1f\x8b"), lambda stream: cast("IO[bytes]", gzip.GzipFile(fileobj=stream))),
    "bzip2": (re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)"), lambda stream: cast("IO[bytes]", bz2.BZ2File(stream))),
    "xz": (re.compile(rb"\xfd7zXZ\x00"), lambda stream: cast("IO[bytes]", lzma.LZMAFile(stream))),  # noqa: SIM115
    "zstandard": (re.compile(rb"\x28\xb5\x2f\xfd"), _open_zstandard),
    "zip": (re.compile(rb"PK\x03\x04"), None),
}


def read_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    r"""Line numbers, from 1, and lines of a UTF-8 file, one at a time.

    Lines end at `\n` only (U+2028, U+0085, VT, FF and a lone `\r` are ordinary characters); one `\r`
    before it and a byte order mark are dropped with a note. Compression (gzip, bzip2, xz, zstandard) is recognised
    by the first bytes, whatever the name, and all members are read.

    Args:
        path: the file; `-` is standard input.

    Raises:
        DataError: a file that cannot be opened, damaged compression, or text that is not UTF-8.
    """
    noted_cr = False
    for number, raw in enumerate(_raw_lines(path), 1):
        dropped = 0
        if number == 1 and raw.startswith(b"\xef\xbb\xbf"):
            log.warning("Note: %s: byte order mark dropped", path)
            raw, dropped = raw[3:], 3
            if not raw:
                return
        if raw.endswith(b"\r\n"):
            if not noted_cr:
                log.warning("Note: %s: Windows line ends (CR LF) read as LF", path)
                noted_cr = True
            raw = raw[:-2]
        elif raw.endswith(b"\n"):
            raw = raw[:-1]
        try:
            yield number, raw.decode("utf-8")
        except UnicodeDecodeError as error:
            utf16 = number == 1 and raw.startswith((b"\xff\xfe", b"\xfe\xff"))
            hint = "; it looks like UTF-16 (iconv -f UTF-16 -t UTF-8)" if utf16 else ""
            message = f"byte 0x{raw[error.start]:02X} is not UTF-8 text{hint}"
            raise DataError(message, path, number, dropped + error.start + 1) from None


def _raw_lines(path: str | Path) -> Iterator[bytes]:
    """Lines as bytes with their ends."""
    number = 0
    with open_bytes(path) as stream:
        while raw := stream.readline(MAX_LINE_BYTES + 1):
            number += 1
            if len(raw) > MAX_LINE_BYTES:
                raise DataError(f"line of more than {MAX_LINE_BYTES >> 20} MiB", path, number)
            yield raw


@contextmanager
def open_bytes(path: str | Path) -> Iterator[IO[bytes]]:
    """The decompressed bytes of `path`. Errors of the system and of decompression become `DataError`."""
    from_stdin, packed = str(path) == STANDARD_STREAM, None
    try:
        with ExitStack() as files:
            stream = sys.stdin.buffer if from_stdin else files.enter_context(open(path, "rb"))
            if not isinstance(stream, io.BufferedReader):
                stream = io.BufferedReader(cast("io.RawIOBase", stream))
            packed = next((name for name, (magic, _) in COMPRESSIONS.items() if magic.match(stream.peek(16))), None)
            opener = COMPRESSIONS[packed][1] if packed else None
            if packed and opener is None:
                raise DataError(f"{packed} data is not read; decompress it first, or pipe it in as -", path)
            yield files.enter_context(opener(stream)) if opener else stream
    except (AlignError, MemoryError):
        raise
    except Exception as error:  # each kind of compression has errors of its own
        if packed and getattr(error, "errno", None) is None:
            raise DataError(f"damaged or cut-off {packed} data ({error})", path) from None
        if isinstance(error, OSError):
            raise DataError(f"cannot be read: {error.strerror or error}", path) from None
        raise


def check_paths(
    inputs: Sequence[str | Path | None], output: str | Path | None = None, *, overwrite: bool = False
) -> None:
    """Refuse, before any work, paths that cannot be used together. None stands for an option not given.

    Raises:
        UsageError: `-` given for two inputs; an output that exists without `overwrite`, or that is an input.
    """
    named = [path for path in inputs if path is not None]
    if sum(str(path) == STANDARD_STREAM for path in named) > 1:
        raise UsageError("standard input (-) is given for more than one input")
    if output is None or str(output) == STANDARD_STREAM or _is_special(output):
        return
    if not Path(output).absolute().parent.is_dir():
        raise UsageError(f"{output}: its folder does not exist")
    if not os.path.exists(output):
        return
    for path in named:
        if str(path) != STANDARD_STREAM and os.path.exists(path) and os.path.samefile(path, output):
            raise UsageError(f"{output}: is an input; write to another file")
    if not overwrite:
        raise UsageError(f"{output}: exists already; --overwrite replaces it")


def _is_special(path: str | Path) -> bool:
    """Whether `path` exists and is a device, a pipe or the like, which is written to and never replaced."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


@contextmanager
def write_bytes_atomically(path: str | Path) -> Iterator[IO[bytes]]:
    """A file that appears under `path` only when the block ends without an error, replacing what was there.

    `-` is standard output. A name that ends in `.gz` is compressed, equal content to equal bytes. Devices and
    pipes are written to directly.

    Raises:
        UsageError: a place that cannot be written to.
        AlignError: a write that failed, on a full disk for example.
    """
    if str(path) == STANDARD_STREAM:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    special = _is_special(path)
    final = Path(path) if special else Path(path).resolve()  # a symbolic link stays one
    place = final if special else final.with_name(f".{final.name}.{secrets.token_hex(4)}.tmp")
    try:
        raw = open(place, "wb" if special else "xb")  # noqa: SIM115 (closed below)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None
    try:
        with raw:
            if final.suffix == ".gz":
                with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
                    yield cast("IO[bytes]", packed)
            else:
                yield raw
            raw.flush()
            if not special:
                os.fsync(raw.fileno())
        if not special:
            os.replace(place, final)
            sync_folder(final.parent)
    except BaseException as error:
        if not special:
            place.unlink(missing_ok=True)
        # An error in writing to an open file names no file; one that names a file is not ours to explain.
        if isinstance(error, OSError) and error.filename is None and not isinstance(error, BrokenPipeError):
            raise AlignError(f"{path}: cannot be written: {error.strerror or error}") from error
        raise


def sync_folder(folder: Path) -> None:
    """Make new names in `folder` outlast a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def write_atomically(path: str | Path) -> Iterator[IO[str]]:
    """As `write_bytes_atomically`, for text: UTF-8, no translation of line ends."""
    with write_bytes_atomically(path) as raw:
        text = io.TextIOWrapper(raw, encoding="utf-8", newline="\n")
        try:
            yield text
        finally:
            text.detach()  # flushes, and leaves standard output open
