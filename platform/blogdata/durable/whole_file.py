"""Files and folders that readers see as they were or with all of the new content."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path
from uuid import uuid4


def write_atomically(path: Path, content: bytes, *, mode: int = 0o600) -> None:
    """Write a file so that readers see the old content or all of the new one."""
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


CURRENT = "current"
"""The link that readers open."""


def appear(home: Path, name: str, write: Callable[[Path], None]) -> None:
    """Write a folder beside where readers look, and rename it once it is whole; one that is there already stays."""
    if (home / name).exists():
        # Of a process that died before it switched the link.
        return
    home.mkdir(parents=True, exist_ok=True)
    staged = home / f".{uuid4()}"
    write(staged)
    staged.rename(home / name)


def switch(home: Path, name: str) -> None:
    """Let readers find another folder from now on."""
    link = home / f".{uuid4()}"
    link.symlink_to(name)
    link.replace(home / CURRENT)


def remove_others(home: Path, *, keep: Collection[str]) -> None:
    """Remove the folders that are not to be kept, and what processes that died have left; the link stays."""
    for path in list(home.iterdir()) if home.is_dir() else []:
        if path.name in {CURRENT, *keep}:
            continue
        if path.is_symlink():
            path.unlink()
            continue
        # A folder goes as it came, by one rename: no half of it is read.
        hidden = path if path.name.startswith(".") else path.rename(home / f".{uuid4()}")
        shutil.rmtree(hidden)
