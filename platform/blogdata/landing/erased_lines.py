"""Lines of landed files that the In-Place Overwriter has erased, to DELs: they keep their place and are no rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from blogdata.landing.landed_formats import MARK, content

FILLER = b"\x7f"
"""What an erased line consists of: as many of it as the line had bytes."""
LONGEST = 64 << 20
"""Bytes of a line that are read at once; a longer one is no landed line."""


def is_erased(raw: bytes) -> bool:
    """Return whether a line, without its line feed, was erased."""
    return bool(raw) and not raw.strip(FILLER)


def lines(file: Path) -> Iterator[tuple[int, bytes]]:
    """Read the lines of a file, plain or compressed, with their byte offsets; with line feeds and byte order mark."""
    offset = 0
    with content(file) as stream:
        while line := stream.readline(LONGEST):
            yield offset, line
            offset += len(line)


def raw_of(offset: int, line: bytes) -> bytes:
    """Return a line of :func:`lines` without its line feed, and without the mark at the beginning of the file."""
    raw = line.removesuffix(b"\n")
    return raw if offset else raw.removeprefix(MARK)


def kept(file: Path) -> Iterator[tuple[int, bytes]]:
    """Read the lines of a file that were not erased, with their byte offsets, as :func:`raw_of` returns them."""
    for offset, line in lines(file):
        raw = raw_of(offset, line)
        # A byte order mark alone is no line.
        if not is_erased(raw) and (offset or line != MARK):
            yield offset, raw


def count(file: Path) -> tuple[int, int]:
    """Count the erased lines of a file, and their bytes as if the last line ended in a line feed, too."""
    sizes = [len(raw) + 1 for offset, line in lines(file) if is_erased(raw := raw_of(offset, line))]
    return len(sizes), sum(sizes)
