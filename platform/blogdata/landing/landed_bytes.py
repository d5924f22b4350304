"""Writes files whole or not at all, and reads them as raw bytes."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import IO

from blogdata.errors import ConfigurationError
from blogdata.landing import landed_formats

BLOCK = 1 << 20
LONGEST_NAME = 255
"""Length of a file's name that file systems take, bytes."""


def checksum(path: Path) -> str:
    digest = hashlib.sha256()
    with opened(path) as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def opened(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        raise ConfigurationError(
            what=f"the file cannot be read: {error.strerror}",
            where=str(path),
            next_step="give the path of a file that exists and may be read",
        ) from error


def content(path: Path) -> IO[bytes]:
    opened(path).close()
    return landed_formats.content(path)


def skip(file: IO[bytes], count: int) -> None:
    """Read on by a number of bytes: not every compressed file can be positioned."""
    while count and (block := file.read(min(BLOCK, count))):
        count -= len(block)


def digested(file: IO[bytes], count: int, digest: hashlib._Hash) -> int:
    """Add the next bytes of a file to a digest, up to a number of them; return how many there were."""
    taken = 0
    while taken < count and (block := file.read(min(BLOCK, count - taken))):
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


def same_bytes(one: Path, other: Path) -> bool:
    """Return whether two files have the same bytes; False if the second one does not exist."""
    return other.exists() and one.stat().st_size == other.stat().st_size and checksum(one) == checksum(other)
