"""Runs as a user whom permissions stop: the superuser reads everything."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65534


@contextmanager
def unprivileged() -> Iterator[None]:
    """Have the whole process be an unprivileged user inside the block, if it is the superuser."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@contextmanager
def readable_folder() -> Iterator[Path]:
    """A new folder that other users may read; those of pytest are its user's own."""
    folder = Path(tempfile.mkdtemp(dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def give_away(folder: Path) -> None:
    """Have the unprivileged user own a folder and all that is in it."""
    for path in (folder, *folder.rglob("*")):
        if os.geteuid() == 0 and not path.is_symlink():
            os.chown(path, NOBODY, NOBODY)
            path.chmod(0o755 if path.is_dir() else 0o644)
