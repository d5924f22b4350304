"""Runs code as a user whom file permissions stop: the superuser may read everything."""

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
    """Run the whole process as an unprivileged user inside the block, if it is the superuser."""
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
    """A new folder that other users may read; pytest's own folders are readable by their owner only."""
    folder = Path(tempfile.mkdtemp(dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
