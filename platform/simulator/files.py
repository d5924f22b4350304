"""Files that are never visible half written, and the flag that says a folder is complete."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

FLAG = "_SUCCESS"
_BLOCK = 1 << 20


def write_whole(path: Path, blocks: Iterable[Any]) -> None:
    """Writes a file under a hidden name and renames it when it is whole.

    Args:
        path: Final name; its folder is created.
        blocks: Buffers, in order.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    with partial.open("wb") as file:
        for block in blocks:
            file.write(block)
    partial.replace(path)


def compressed(block: Any) -> Iterable[bytes]:
    """The gzip stream of a buffer, the same bytes every time (it carries no time and no name)."""
    gzip = zlib.compressobj(level=1, wbits=31)
    view = memoryview(block)
    for begin in range(0, len(view), _BLOCK):
        yield gzip.compress(view[begin : begin + _BLOCK])
    yield gzip.flush()


def complete(folder: Path) -> None:
    """Sets the flag of a folder, creating the folder if nothing is in it."""
    write_whole(folder / FLAG, ())


def is_complete(folder: Path) -> bool:
    """Whether the flag of a folder is set."""
    return (folder / FLAG).exists()
