"""Files that are written whole or not at all, and read as the bytes they are."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, ClassVar, cast

from errors import PlatformError

BLOCK = 1 << 20
GZIP_MAGIC = b"\x1f\x8b"


class SourceMissing(PlatformError):
    """A file to be replicated is not there or cannot be read."""

    exit_code: ClassVar[int] = 2


def checksum(path: Path) -> str:
    """SHA-256 of a file, hexadecimal, in constant memory."""
    digest = hashlib.sha256()
    with opened(path) as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def opened(path: Path) -> IO[bytes]:
    """Opens a file for reading its bytes as they are.

    Raises:
        SourceMissing: There is no such file, or it may not be read.
    """
    try:
        return path.open("rb")
    except OSError as error:
        raise SourceMissing(
            what=f"the file cannot be read: {error.strerror}",
            where=str(path),
            next_step="give the path of a file that exists and may be read",
        ) from error


def content(path: Path) -> IO[bytes]:
    """Opens a file for reading what it holds: gzip is told by its first bytes, not by its name."""
    with opened(path) as file:
        packed = file.read(2) == GZIP_MAGIC
    return cast("IO[bytes]", gzip.open(path, "rb")) if packed else opened(path)


def hidden(target: Path) -> Path:
    """The hidden name under which a file is written until it is whole; its folder is created."""
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.partial")
    # Somebody else's link in this place would be written through.
    if partial.is_symlink():
        partial.unlink()
    return partial


def same_bytes(one: Path, other: Path) -> bool:
    """Whether two files hold the same bytes."""
    return other.exists() and one.stat().st_size == other.stat().st_size and checksum(one) == checksum(other)


def starts_with(path: Path, prefix: Path) -> bool:
    """Whether what a file holds begins with all that another one holds (both decompressed)."""
    with content(path) as whole, content(prefix) as beginning:
        return all(whole.read(len(block)) == block for block in _blocks(beginning))


def write_whole(target: Path, data: bytes) -> None:
    """Writes a small file under a hidden name and gives it its own when it is whole."""
    partial = hidden(target)
    partial.write_bytes(data)
    partial.replace(target)


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    while block := file.read(BLOCK):
        yield block
