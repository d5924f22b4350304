"""Files that several processes share: permissions, checksums and locks.

Who may reach the files of a deployment: its owner, and nobody else.

The home folder is the wall: it is closed to all other users, so what lies in it is out of their reach whatever its own
permissions. Files with secrets or persons are created for their owner only all the same, because a file may be copied
to another place. A landing zone or a lake outside the home keeps the permissions that its owner gave it: producers and
readers of other users need them.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from blogdata.errors import PlatformError

_OTHERS = 0o077
_SECRETS = ("blogdata.toml", "secrets/*", "services/*/*.json", "services/*/*.conf")


def exposed_secrets(home: Path) -> list[Path]:
    patterns = _SECRETS if _is_open(home) else ("secrets/*",)
    found = (file for pattern in patterns for file in home.glob(pattern))
    return sorted(file for file in found if file.is_file() and _is_open(file))


def _is_open(path: Path) -> bool:
    return bool(path.stat().st_mode & _OTHERS)


class LockTimeout(PlatformError):
    transient = True


def for_owner(path: str, flags: int) -> int:
    """Open a file as :func:`open` does; a new one is readable and writable by its owner only, whatever the umask."""
    return os.open(path, flags, 0o600)


def sha256_of(path: Path) -> str:
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
    """Hold an exclusive lock between processes; the system releases it when its holder dies."""
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
