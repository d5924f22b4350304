"""Writes files whole or not at all, and reads them as raw bytes."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from blogdata.errors import ConfigurationError
from blogdata.landing import landed_formats

BLOCK = 1 << 20
PARTIAL = ".partial"
"""Ending of the hidden name under which a file is written until it is whole."""
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


def hidden(target: Path) -> Path:
    """Return the hidden name under which a file is written until it is whole; its folder is created."""
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}{PARTIAL}")
    # Writing through a foreign link at this path would overwrite the link's target.
    if partial.is_symlink():
        partial.unlink()
    return partial


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


def write_whole(target: Path, data: bytes) -> None:
    """Write a small file under a hidden name, and rename it once it is whole."""
    partial = hidden(target)
    partial.write_bytes(data)
    partial.replace(target)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Be the only process that adds whole files to a folder; others wait, and the death of the process ends it."""
    folder.mkdir(parents=True, exist_ok=True)
    # A file, because file systems of a network lock no folder.
    lock = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
