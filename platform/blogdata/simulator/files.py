"""Atomic file writes, and the flag that marks a folder as complete."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

FLAG = "_SUCCESS"
ENDED = "_ENDED"


def write_whole(path: Path, blocks: Iterable[Any], *, synced: bool = False) -> None:
    """Writes a file under a hidden name and renames it when it is complete, if `synced` once its bytes are on disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    with partial.open("wb") as file:
        for block in blocks:
            file.write(block)
        if synced:
            file.flush()
            os.fsync(file.fileno())
    partial.replace(path)


def flag_complete(folder: Path) -> None:
    write_whole(folder / FLAG, ())


def is_complete(folder: Path) -> bool:
    return (folder / FLAG).exists()
