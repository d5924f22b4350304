"""Passthrough Replicator: data is copied byte for byte, and a copy that is not whole is never seen.

Problem: the same data is needed elsewhere, exactly as it is. A copy that parses and rewrites the data changes it: `1.0`
becomes `1`, keys change their order, one of two equal keys is lost.
How it works: bytes are copied to a hidden name and hashed on the way (:func:`replicate`, :func:`land`). The copy is
read back and compared, and only then renamed. `log_splitter` replicates an access log into the hours in which its lines
were logged: its parts concatenated by offset are the log again, but for the `#Fields` line repeated above a part.
The trap: a log grows while it is read and is rotated when it is full. A last line without a line feed becomes a part of
its own, which makes way for the whole line; a log whose replicated bytes have changed is refused. Rotation gives a log
another name, and its name to another log, at any moment: :func:`land` knows a log by its beginning, never by its name.
A single wrong time must not move lines to another period: times in the future are ignored, and hours never go back.
When not to use it: where personal data may not be copied; then a Transformation Replicator removes it on the way.
Source: Data Engineering Design Patterns, ch. 2.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, repeat
from pathlib import Path
from typing import IO, Literal

from blogdata.errors import ConfigurationError, PlatformError, TransientError
from blogdata.files import alone, hidden, sha256_of
from blogdata.landing.landed_formats import BLOCK, DAMAGED, content, digested, shortened
from blogdata.landing.landed_links import leading_out, require_within

LandOutcome = Literal["new", "same", "beginning", "grown", "renamed", "empty"]
_HEAD = 1 << 16
"""Bytes at the beginning of a log, in which most logs differ."""
STAGED = ".landing"
"""Name of a copy until it is known which log it is of."""


def replicate(source: Path, target: Path) -> str:
    """Copy a file byte for byte; the target appears only when it is complete and verified. Return its SHA-256."""
    partial = hidden(target)
    try:
        sha256 = _copied(source, partial)
    except PlatformError:
        partial.unlink(missing_ok=True)
        raise
    partial.replace(target)
    return sha256


def _copied(source: Path, partial: Path) -> str:
    taken, size = hashlib.sha256(), 0
    with source.open("rb") as reading, partial.open("wb") as writing:
        before = os.fstat(reading.fileno())
        while block := reading.read(BLOCK):
            writing.write(block)
            taken.update(block)
            size += len(block)
        writing.flush()
        os.fsync(writing.fileno())
        unchanged = _still_begins(reading, before, size, taken.hexdigest())
    if sha256_of(partial) != taken.hexdigest():
        raise TransientError(
            what="the copy does not read back as what was copied",
            where=f"{source} -> {partial}",
            next_step="check the disk of the target, then copy again",
        )
    if not unchanged:
        raise TransientError(
            what="the file was truncated or rewritten while it was read",
            where=str(source),
            next_step="nothing of it landed; land it again",
        )
    # The times of copies tell which of them was written to last, as those of the sources do.
    os.utime(partial, ns=(before.st_mtime_ns, before.st_mtime_ns))
    return taken.hexdigest()


def _still_begins(file: IO[bytes], before: os.stat_result, size: int, sha256: str) -> bool:
    after = os.fstat(file.fileno())
    if (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns):
        return True
    file.seek(0)
    again = hashlib.sha256()
    digested(file, size, again)
    return again.hexdigest() == sha256


@dataclass(frozen=True, kw_only=True)
class Replicated:
    path: Path
    """The copy; of an empty log, where it would be."""
    outcome: LandOutcome
    """`same`: all of it was there, under any name; `beginning`: more than that; `grown`: an existing copy was its
    beginning and was replaced; `renamed`: another log has its name, so a content hash was added; `empty`: it has no
    byte yet, and needs no copy."""
    sha256: str | None = None
    """Of a copy that was made."""


def land(
    source: Path, folder: Path, *, name: str | None = None, prepare: Callable[[Path], object] = lambda _: None
) -> Replicated:
    """Replicate a log into a folder without ever losing existing data, and without landing a line twice.

    A copy whose content is the beginning of the log's, both decompressed, is a copy of that log, whatever its name. A
    link to the source is followed, because a person has named it; one in the folder that leads out of the landing zone
    is replaced. `prepare` may overwrite lines of a new copy before it is compared with the landed ones.
    """
    require_within([folder], folder.parent)
    # What begins with one of these is hidden, and would never be split.
    target = folder / ((name or source.name).lstrip("._") or "log")
    with alone(folder):
        # Most files of each hour have not changed: what is there is not copied to be compared.
        known = _known(source, folder)
        if known is not None and known[0] != "grown":
            return Replicated(path=known[1], outcome=known[0])
        staged = folder / STAGED
        try:
            sha256 = replicate(source, staged)
            if _is_empty(staged, source):
                return Replicated(path=target, outcome="empty")
            prepare(staged)
            # The source may have changed, and be another log by now.
            outcome, path = _known(staged, folder) or _unused(target, sha256)
            if outcome in ("same", "beginning"):
                return Replicated(path=path, outcome=outcome)
            staged.replace(path)
            return Replicated(path=path, outcome=outcome, sha256=sha256)
        finally:
            for left in (staged, hidden(staged)):
                left.unlink(missing_ok=True)


def _known(log: Path, folder: Path) -> tuple[LandOutcome, Path] | None:
    """Find the landed copy that has all of a log, or else the longest that is its beginning, decompressed."""
    compared = ((_compared(log, copy), copy) for copy in sorted(folder.iterdir()) if copy.name[0] not in "_.")
    relations = [(*relation, copy) for relation, copy in compared if relation is not None]
    order: list[LandOutcome] = ["same", "beginning", "grown"]
    nearest = min(relations, key=lambda relation: (order.index(relation[0]), -relation[1]), default=None)
    return nearest and (nearest[0], nearest[2])


def _compared(log: Path, copy: Path) -> tuple[LandOutcome, int] | None:
    """Return what a log is to a copy, and how many bytes both have; a damaged file is a copy of none, and has none."""
    if not _is_there(copy):
        return None
    common = 0
    try:
        with content(log) as ours, content(copy) as theirs:
            for size in chain([_HEAD], repeat(BLOCK)):
                block, other = ours.read(size), theirs.read(size)
                shared = min(len(block), len(other))
                if block[:shared] != other[:shared]:
                    return None
                common += shared
                # Only the last block of a file is not full.
                if len(block) != len(other):
                    return ("grown" if len(block) > len(other) else "beginning", common) if common else None
                if len(block) < size:
                    break
    except DAMAGED:
        return None
    return ("same", common) if common else None


def _is_there(path: Path) -> bool:
    """Return whether a path in the landing zone is a file with content, and no link that leads out of the zone."""
    return path.is_file() and leading_out(path, path.parent.parent) is None and path.stat().st_size > 0


def _unused(target: Path, sha256: str) -> tuple[LandOutcome, Path]:
    if not _is_there(target):
        return "new", target
    stem, dot, rest = target.name.partition(".")
    return "renamed", target.with_name(shortened(f"{stem}-{sha256[:8]}{dot}{rest}"))


def _is_empty(copy: Path, source: Path) -> bool:
    """Read a copy to its end, decompressed: a damaged one that has landed would fail each run."""
    try:
        with content(copy) as file:
            return sum(map(len, iter(lambda: file.read(BLOCK), b""))) == 0
    except DAMAGED as error:
        raise ConfigurationError(
            what=f"the file cannot be read: {error}",
            where=str(source),
            next_step="name an undamaged copy of it, or a decompressed one; if it is being written, land it later",
        ) from error


@contextlib.contextmanager
def spooled(stream: IO[bytes], folder: Path) -> Iterator[Path]:
    """Write a stream that can be read only once, such as a pipe, to a file without a name, which no kill leaves."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as spool:
        shutil.copyfileobj(stream, spool, BLOCK)
        spool.flush()
        yield Path(f"/proc/self/fd/{spool.fileno()}")
