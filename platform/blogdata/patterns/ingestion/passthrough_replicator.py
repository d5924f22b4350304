"""Passthrough Replicator: data is copied byte for byte, and a copy that is not whole is never seen.

Problem: the same data is needed elsewhere, exactly as it is. A copy that parses and rewrites the data changes
it: `1.0` becomes `1`, keys change their order, one of two equal keys is lost.

How it works: bytes are copied to a hidden name and hashed on the way (:func:`replicate`, :func:`land`). The copy is
read back and compared, and only then renamed to its final name. `log_splitter` replicates an access log into the
hours in which its lines were logged: each part is a byte range of the log, and the parts concatenated by offset are
the log again, but for the `#Fields` line above a part, which is repeated at its beginning.

The trap: a log grows while it is read and is rotated when it is full. A last line without a line feed becomes a part
of its own, which is rewritten once the line is complete; a log whose replicated bytes have changed is refused. Rotation
gives a log another name, and its name to another log, at any moment: :func:`land` knows a log by its beginning, never
by its name, and decides by what it has copied. A single wrong time stamp must not move lines to another period: times
in the future are ignored, and hours never go backwards within a log, because lines are appended in order of arrival.

When not to use it: where personal data may not be copied; then a Transformation Replicator removes it on
the way.

Source: Data Engineering Design Patterns, ch. 2.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from blogdata.errors import ConfigurationError, PlatformError
from blogdata.landing.landed_formats import DAMAGED
from blogdata.landing.landed_links import require_within
from blogdata.patterns.ingestion import log_comparison
from blogdata.patterns.ingestion.log_comparison import Known
from blogdata.patterns.ingestion.whole_files import (
    BLOCK,
    SourceMissing,
    alone,
    checksum,
    content,
    digested,
    hidden,
    opened,
    shortened,
)

LandOutcome = Literal["new", "same", "beginning", "grown", "renamed", "empty"]
_ATTEMPTS = 3
SPOOL = ".spooled-"
STAGED = ".landing"
"""Name of a copy until it is known which log it is of."""


class CorruptCopy(PlatformError):
    """Raised when a copy, read back, differs from what was copied."""

    transient = True


class SourceChanged(PlatformError):
    """Raised when a file was truncated or rewritten while it was copied."""

    transient = True


@dataclass(frozen=True, kw_only=True)
class Replica:
    bytes: int
    sha256: str


def replicate(source: Path, target: Path) -> Replica:
    """Copy a file byte for byte; the target appears only when it is complete and verified."""
    partial = hidden(target)
    try:
        replica = _copied(source, partial)
    except PlatformError:
        partial.unlink(missing_ok=True)
        raise
    partial.replace(target)
    return replica


def _copied(source: Path, partial: Path, attempts: int = _ATTEMPTS) -> Replica:
    with opened(source) as reading, partial.open("wb") as writing:
        before = os.fstat(reading.fileno())
        taken = hashlib.sha256()
        size = 0
        while block := reading.read(BLOCK):
            writing.write(block)
            taken.update(block)
            size += len(block)
        writing.flush()
        os.fsync(writing.fileno())
        unchanged = _still_begins(reading, before, size, taken.hexdigest())
    if checksum(partial) != taken.hexdigest():
        raise CorruptCopy(
            what="the copy does not read back as what was copied",
            where=f"{source} -> {partial}",
            next_step="check the disk of the target, then copy again",
        )
    if unchanged:
        # The times of copies tell which of them was written to last, as those of the sources do.
        os.utime(partial, ns=(before.st_mtime_ns, before.st_mtime_ns))
        return Replica(bytes=size, sha256=taken.hexdigest())
    if attempts > 1:
        return _copied(source, partial, attempts - 1)
    raise SourceChanged(
        what="the file was truncated or rewritten while it was read",
        where=str(source),
        next_step="nothing of it landed; land it again",
    )


def _still_begins(file: IO[bytes], before: os.stat_result, size: int, sha256: str) -> bool:
    """Return whether a file that has been read begins with what was read; it may have grown."""
    after = os.fstat(file.fileno())
    if (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns):
        return True
    file.seek(0)
    again = hashlib.sha256()
    digested(file, size, again)
    return again.hexdigest() == sha256


@dataclass(frozen=True, kw_only=True)
class Replicated:
    """Result of landing a file.

    Args:
        path: The copy; of an empty log, where it would be.
        outcome: `new`; `same` if all of it was there already, under any name; `beginning` if more than that was there;
            `grown` if an existing copy was its beginning and was replaced; `renamed` if another log has its name, so
            that a content hash was added to it; `empty` if it has no byte yet, and needs no copy.
        replica: The copy made; None if none was.
    """

    path: Path
    outcome: LandOutcome
    replica: Replica | None = None


def land(
    source: Path, folder: Path, *, name: str | None = None, prepare: Callable[[Path], object] = lambda _: None
) -> Replicated:
    """Replicate a log into a folder without ever losing existing data, and without landing a line twice.

    A copy whose content is the beginning of the log's, both decompressed, is a copy of that log, whatever its name; so
    is one that the log begins within, such as the copy of several logs in one file.

    Args:
        source: The file, compressed or not; a link is followed, because a person has named it. It is read more than
            once: see :func:`spooled` for a pipe.
        folder: Target folder in the landing zone; created if absent. A link in it that leads out of the landing
            zone does not count as a copy: it is replaced.
        prepare: Called with a new copy before it is compared with the landed ones; it may overwrite lines of it.
    """
    require_within([folder], folder.parent)
    opened(source).close()
    # What begins with one of these is hidden, and would never be split.
    target = folder / ((name or source.name).lstrip("._") or "log")
    with alone(folder):
        copies = log_comparison.landed_logs(folder)
        # Most files of each hour have not changed: what is there is not copied to be compared.
        known = log_comparison.alike(source, copies)
        if known is not None and known.relation != "grown":
            return Replicated(path=known.copy, outcome=known.relation)
        staged = folder / STAGED
        try:
            return _settled(source, staged, target, copies, prepare)
        finally:
            for left in (staged, hidden(staged)):
                left.unlink(missing_ok=True)


def _settled(
    source: Path, staged: Path, target: Path, copies: list[Path], prepare: Callable[[Path], object]
) -> Replicated:
    """Copy a log, and name the copy by what it is: the source may change at any time, and be another log by now."""
    replica = replicate(source, staged)
    if _is_empty(staged, source):
        return Replicated(path=target, outcome="empty")
    prepare(staged)
    known = log_comparison.alike(staged, copies) or log_comparison.within(staged, copies)
    if known is not None and known.relation != "grown":
        return Replicated(path=known.copy, outcome=known.relation)
    others = [copy for copy in copies if not known or copy != known.copy]
    if twice := log_comparison.repeated(staged, others, behind=known.bytes if known else 0):
        raise ConfigurationError(
            what=f"from its byte {twice[1]:,} on (decompressed) it has the lines that landed as {twice[0].name}",
            where=str(source),
            next_step="nothing of it landed; land the logs that it was put together of, each as a file of its own",
        )
    if known is not None:
        if known.at:
            replica = _prepended(known, staged)
        staged.replace(known.copy)
        return Replicated(path=known.copy, outcome="grown", replica=replica)
    outcome: LandOutcome = "new"
    if log_comparison.is_there(target):
        stem, dot, rest = target.name.partition(".")
        target, outcome = target.with_name(shortened(f"{stem}-{replica.sha256[:8]}{dot}{rest}")), "renamed"
    staged.replace(target)
    return Replicated(path=target, outcome=outcome, replica=replica)


def _prepended(known: Known, log: Path) -> Replica:
    """Put what a copy has before a log begins in it before the log, decompressed."""
    whole, status = hidden(log), log.stat()
    with content(known.copy) as before, content(log) as rest, whole.open("wb") as writing:
        left = known.at
        while left and (block := before.read(min(BLOCK, left))):
            writing.write(block)
            left -= len(block)
        shutil.copyfileobj(rest, writing, BLOCK)
        writing.flush()
        os.fsync(writing.fileno())
    os.utime(whole, ns=(status.st_mtime_ns, status.st_mtime_ns))
    whole.replace(log)
    return Replica(bytes=log.stat().st_size, sha256=checksum(log))


def _is_empty(copy: Path, source: Path) -> bool:
    """Read a copy to its end, decompressed: a damaged one that has landed would fail each run."""
    try:
        with content(copy) as file:
            return sum(map(len, iter(lambda: file.read(BLOCK), b""))) == 0
    except DAMAGED as error:
        raise SourceMissing(
            what=f"the file cannot be read: {error}",
            where=str(source),
            next_step="name an undamaged copy of it, or a decompressed one; if it is being written, land it later",
        ) from error


@contextlib.contextmanager
def spooled(stream: IO[bytes], folder: Path) -> Iterator[Path]:
    """Write a stream that can be read only once, such as a pipe, to a hidden file that is removed at the end."""
    with alone(folder):
        remove_left(folder)
        spool = tempfile.NamedTemporaryFile(dir=folder, prefix=SPOOL)  # noqa: SIM115 - closed below
        fcntl.flock(spool, fcntl.LOCK_EX)
    with spool:
        while block := stream.read(BLOCK):
            spool.write(block)
        spool.flush()
        yield Path(spool.name)


def remove_left(folder: Path) -> None:
    """Remove what killed processes have spooled: it is no longer locked."""
    for left in folder.glob(f"{SPOOL}*"):
        with left.open("rb") as file, contextlib.suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            left.unlink()
