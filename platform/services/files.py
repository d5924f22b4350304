"""Files that several processes share: whole or absent, and one writer at a time."""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from errors import PlatformError


class LockTimeout(PlatformError):
    """Another process holds a lock for longer than its work should take."""

    transient = True


def write_atomically(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Write a file so that nobody ever sees a part of it.

    Args:
        path: The file; its folder exists.
        content: The bytes.
        mode: Permissions of the new file.
    """
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(content)
            handle.flush()
            os.fsync(handle.fileno())
        Path(name).chmod(mode)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def sha256_of(path: Path) -> str:
    """Checksum of a file.

    Args:
        path: The file.

    Returns:
        The SHA-256 of its bytes, in hexadecimal.
    """
    digest = hashlib.sha256()
    with path.open("rb") as handle:
        while chunk := handle.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


@contextmanager
def locked(path: Path, *, seconds: float = 300.0) -> Iterator[None]:
    """Hold an exclusive lock between processes; the system frees it when its holder dies.

    Args:
        path: The lock file; made if absent, never removed.
        seconds: How long to wait for the present holder.

    Raises:
        LockTimeout: The holder did not finish in time.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + seconds
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
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
