"""Files that several processes share: permissions, checksums and locks."""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from blogdata.errors import PlatformError


class LockTimeout(PlatformError):
    """Raised when another process holds a lock for too long."""

    transient = True


def for_owner(path: str, flags: int) -> int:
    """Open a file as :func:`open` does; a new one is readable and writable by its owner only, whatever the umask."""
    return os.open(path, flags, 0o600)


def sha256_of(path: Path) -> str:
    """Compute the SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as handle:
        while chunk := handle.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def is_same_folder(recorded: str, folder: Path) -> bool:
    """Return whether a recorded path is that of a folder now: it is not if folder and record were copied or moved."""
    return Path(recorded).is_absolute() and Path(recorded).is_dir() and folder.is_dir() and folder.samefile(recorded)


@contextmanager
def locked(path: Path, *, seconds: float = 300.0) -> Iterator[None]:
    """Hold an exclusive lock between processes; the system releases it when its holder dies.

    Raises:
        LockTimeout: Another process still holds the lock after so many seconds.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + seconds
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise LockTimeout(
                        what=f"Another process has been at work here for more than {seconds:g} s",
                        where=str(path),
                        next_step="Wait for it and run this again, or end that process",
                    ) from None
                time.sleep(0.05)
        yield
    finally:
        os.close(descriptor)
