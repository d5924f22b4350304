"""In-Place Overwriter: rows of a person leave raw files that know no DELETE, and all other bytes stay in their place.

Problem: every backfill and replay reads landed files again, so a person who was deleted from the tables alone comes
back. Text files cannot delete a row: a file has to be written anew, and a process that is killed while it overwrites
the file leaves neither the old nor the new one.
How it works: a line that is to go is overwritten by as many bytes of filler (:func:`overwrite`). The new file is
written beside the old one, flushed to the disk, and takes its name in one step. A line of filler is no row any more
(:mod:`blogdata.landing.lines`): it is counted as `erased`, and not read. All tables that were computed from it are
computed again, by the plan that knows what is stale; nothing is patched.
The trap: removing the bytes. All lines behind would move, and with them everything that is known by its place in a
file: ids of visits in access logs, corrections of dead letters, the account of each file. What is overwritten cannot
be brought back, so a person sees the plan before. Requests are better collected, since a file is read and written as a
whole, for one line as for thousands.
When not to use it: on a file that a process keeps open to append to, since what it writes after the rename goes into a
file without a name. Where all personal data lie in one small table, delete there (Vertical Partitioner).
Source: "Data Engineering Design Patterns", ch. 7.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any, cast

from blogdata.errors import PlatformError, TransientError
from blogdata.landing.landed_formats import MARK, content, stored_as
from blogdata.landing.lines import FILLER, LONGEST, kept_lines

STAGED = ".erasing"
"""Ending of the hidden file in which a file is written anew."""
_LONGEST_STEM = 60
"""Characters of a file's name that the name of the hidden one has, of up to four bytes each."""
_COARSE = 2 * 10**9
"""Nanoseconds of which the clock of any file system tells two times apart."""
Goes = Callable[[Iterator[tuple[int, bytes]]], Iterable[int]]
"""Decides which lines of a file go: from all lines, as offset and bytes, it picks the offsets."""


def overwrite(file: Path, goes: Goes, *, before: Callable[[Path], None] = lambda _: None) -> int:
    """Overwrite lines of a file by filler of the same length, all of them or none; return their number.

    The file, of a link the target, keeps its compression, permissions and name. Killed at any moment, this leaves it as
    it was or as it will be, and perhaps a hidden one beside it, which the next call replaces.
    """
    target = file.resolve()
    state = _state(target)
    gone = frozenset(goes(line for line in kept_lines(target) if line[1]))
    if gone:
        try:
            _replace(target, gone, state, before)
        except OSError as error:
            raise PlatformError(
                what=f"lines that are to go cannot be overwritten: {error.strerror}",
                where=str(target),
                next_step="make room, or have the file and its folder writable for the platform; it is tried again",
            ) from error
    return len(gone)


def _replace(target: Path, gone: Set[int], state: tuple[int, int, int], before: Callable[[Path], None]) -> None:
    staged = target.with_name(f".{target.name[:_LONGEST_STEM]}{STAGED}")
    staged.unlink(missing_ok=True)
    try:
        with _writer(staged, stored_as(target)) as out:
            for offset, line in _lines(target):
                out.write(_blank(offset, line) if offset in gone else line)
        sync(staged)
        shutil.copymode(target, staged)
        before(staged)
        if _state(target) != state:
            raise TransientError(
                what="the file was changed by somebody else while lines of it were overwritten",
                where=str(target),
                next_step="nothing of it was overwritten; run it again when the producer has ended",
            )
        # What was published of it is stale by its time, also where a file system's clock is coarse.
        later = max(staged.stat().st_mtime_ns, state[2] + _COARSE)
        os.utime(staged, ns=(later, later))
        staged.replace(target)
    finally:
        staged.unlink(missing_ok=True)
    sync(target.parent)


def sync(path: Path) -> None:
    """Have a file, or the names in a folder, on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _state(file: Path) -> tuple[int, int, int]:
    status = file.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


def _lines(file: Path) -> Iterator[tuple[int, bytes]]:
    """Read the lines of a file with their byte offsets, with line feeds and byte order mark."""
    offset = 0
    with content(file) as stream:
        while line := stream.readline(LONGEST):
            yield offset, line
            offset += len(line)


def _blank(offset: int, line: bytes) -> bytes:
    raw = line.removesuffix(b"\n")
    raw = raw if offset else raw.removeprefix(MARK)
    return line.replace(raw, FILLER * len(raw), 1)


def _writer(file: Path, packed: str | None) -> AbstractContextManager[IO[bytes]]:
    """Open a new file, which only its owner may read, for writing in a compression."""
    os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    if packed == "zstd":
        import pyarrow as pa

        return cast("AbstractContextManager[IO[bytes]]", pa.CompressedOutputStream(str(file), "zstd"))
    opened: Mapping[str | None, Callable[..., Any]] = {"gzip": gzip.open, "bzip2": bz2.open, "xz": lzma.open}
    return cast("AbstractContextManager[IO[bytes]]", opened.get(packed, open)(file, "wb"))
