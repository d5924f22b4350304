"""Reads files as decompressed bytes: the first bytes of a file determine its compression, never its name."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import os
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, cast

from blogdata.files import sha256_of

BLOCK = 1 << 20
LONGEST_NAME = 255
"""Length of a file's name that file systems take, bytes."""
MARK = b"\xef\xbb\xbf"
"""The UTF-8 byte order mark."""
XZ_MEMORY = 128 << 20
"""Maximum memory for the dictionary of an xz file, bytes: twice what `xz -9` needs."""
DAMAGED = (EOFError, OSError, zlib.error, lzma.LZMAError)
"""What reading a damaged or unreadable file raises."""
HEAD = 16
"""Bytes that identify a format, at most."""
_BZIP2 = (b"1AY&SY", b"\x17\x72\x45\x38\x50\x90")
_FOREIGN = (
    (b"PK\x03\x04", "a zip archive"),
    (b"PAR1\x15", "a Parquet file"),
    (b"Obj\x01", "an Avro file"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"\x04\x22\x4d\x18", "compressed by lz4"),
    (b"\xff\x06\x00\x00sNaPpY", "compressed by snappy"),
    (b"\x1f\x9d", "compressed by compress"),
    (b"\xff\xfe", "text in UTF-16"),
    (b"\xfe\xff", "text in UTF-16"),
)
"""First bytes of formats that are known and not read."""


_PACKED = re.compile(r"\.(gz|bz2|xz|zst|part)$")
"""What may come behind the extension: a compression, or that a line of an access log has not ended yet."""


def extension(name: str) -> str:
    """Return the last extension of a file name, in lower case, without what may come behind it: `log` of `a.LOG.gz`."""
    return _PACKED.sub("", name.lower()).rpartition(".")[2]


def compression(head: bytes) -> str | None:
    """Return the compression that the first bytes of a file show: `gzip`, `bzip2`, `xz`, `zstd`; None for none."""
    if head.startswith(b"\x1f\x8b\x08"):
        return "gzip"
    if head.startswith(b"BZh") and head[4:].startswith(_BZIP2):
        return "bzip2"
    if head.startswith(b"\xfd7zXZ\x00"):
        return "xz"
    # A zstd file may begin with a frame that is to be skipped.
    if head.startswith(b"\x28\xb5\x2f\xfd") or (head[1:4] == b"\x2a\x4d\x18" and head[0] & 0xF0 == 0x50):
        return "zstd"
    return None


def foreign(head: bytes) -> str | None:
    """Return which format the first bytes of decompressed content show, if it is one that is not read as lines."""
    packed = compression(head)
    if packed is not None:
        return f"compressed twice, the second time by {packed}"
    return next((name for first, name in _FOREIGN if head.startswith(first)), None)


def stored_as(file: Path) -> str | None:
    with file.open("rb") as stream:
        return compression(stream.read(HEAD))


def content(file: Path) -> IO[bytes]:
    """Open a file for reading its decompressed content, which may raise any of :data:`DAMAGED`."""
    packed = stored_as(file)
    if packed is None:
        return file.open("rb")
    if packed == "gzip":
        return cast("IO[bytes]", gzip.open(file, "rb"))
    if packed == "zstd":
        import pyarrow as pa

        # Arrow's stream reads no lines.
        return io.BufferedReader(pa.input_stream(str(file), compression="zstd"), BLOCK)
    decompressor: Callable[[], _Decompressor] = (
        bz2.BZ2Decompressor if packed == "bzip2" else lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, XZ_MEMORY)
    )
    return io.BufferedReader(_Streams(file.open("rb"), decompressor), BLOCK)


_Decompressor = bz2.BZ2Decompressor | lzma.LZMADecompressor


class _Streams(io.RawIOBase):
    """Decompresses all streams of a file, each whole.

    The standard library's readers ignore damage after the first stream, and take any amount of memory.
    """

    def __init__(self, stored: IO[bytes], decompressor: Callable[[], _Decompressor]) -> None:
        self._stored = stored
        self._new = decompressor
        self._current = decompressor()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        while True:
            if self._current.eof:
                following = self._current.unused_data or self._stored.read(BLOCK)
                if not following:
                    return 0
                self._current = self._new()
            elif self._current.needs_input:
                following = self._stored.read(BLOCK)
                if not following:
                    raise EOFError("the compressed data end too early")
            else:
                following = b""
            piece = self._current.decompress(following, len(buffer))
            if piece:
                buffer[: len(piece)] = piece
                return len(piece)

    def close(self) -> None:
        self._stored.close()
        super().close()


def digested(file: IO[bytes], count: int, digest: hashlib._Hash | None = None) -> int:
    """Read on by a number of bytes, which are added to a digest; return how many there were."""
    taken = 0
    while taken < count and (block := file.read(min(BLOCK, count - taken))):
        if digest is not None:
            digest.update(block)
        taken += len(block)
    return taken


def shortened(name: str, longest: int = LONGEST_NAME) -> str:
    """Cut a file's name to a number of bytes; a digest of the whole name then keeps it distinct."""
    whole = os.fsencode(name)
    if len(whole) <= longest:
        return name
    digest = hashlib.sha256(whole).hexdigest()[:8]
    return f"{whole[: longest - len(digest) - 1].decode(errors='ignore')}-{digest}"


def same_bytes(file: Path, other: Path) -> bool:
    """Return whether two files have the same bytes; False if the second one does not exist."""
    return other.exists() and file.stat().st_size == other.stat().st_size and sha256_of(file) == sha256_of(other)
