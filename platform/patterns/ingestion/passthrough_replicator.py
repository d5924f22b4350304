"""Passthrough Replicator: data is copied byte for byte, and a copy that is not whole is never seen.

Problem: the same data is needed elsewhere, exactly as it is. A copy that parses and rewrites the data changes
it: `1.0` becomes `1`, keys change their order, one of two equal keys is lost.

How it works: bytes are copied to a hidden name and hashed on the way (:func:`replicate`, :func:`land`). The copy is
read back and compared, and only then renamed to its final name. `log_splitter` replicates an access log into the
hours in which its lines were logged: each part is a byte range of the log, and the parts concatenated by offset are
the log again.

The trap: a log grows while it is read and is rotated when it is full. A last line without a line feed becomes a part
of its own, which is rewritten once the line is complete; a log whose replicated bytes have changed is refused. Rotation
gives a log another name, and its name to another log: :func:`land` knows a log by its beginning, never by its name. A
single wrong time stamp must not move lines to another period: times in the future are ignored, and hours never go
backwards within a log, because lines are appended in order of arrival.

When not to use it: where personal data may not be copied; then a Transformation Replicator removes it on
the way.

Source: Data Engineering Design Patterns, ch. 2.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from errors import PlatformError
from patterns.ingestion.landed_formats import DAMAGED
from patterns.ingestion.landed_links import leading_out, require_within
from patterns.ingestion.whole_files import (
    BLOCK,
    SourceMissing,
    checksum,
    content,
    hidden,
    opened,
    same_bytes,
    starts_with,
)

LandOutcome = Literal["new", "same", "grown", "renamed"]
_HEAD = 4096


class CorruptCopy(PlatformError):
    """Raised when a copy, read back, differs from what was copied."""

    transient = True


@dataclass(frozen=True, kw_only=True)
class Replica:
    """A complete, verified copy.

    Args:
        bytes: Its size.
        sha256: Its SHA-256, hexadecimal; equal to the source's.
    """

    bytes: int
    sha256: str


def replicate(source: Path, target: Path) -> Replica:
    """Copy a file byte for byte; the target appears only when it is complete and verified.

    Args:
        source: The file to copy.
        target: The copy; replaced in one step if it exists.

    Raises:
        SourceMissing: The source cannot be read.
        CorruptCopy: The copy, read back, differs from what was copied; it is removed.
    """
    partial = hidden(target)
    with opened(source) as reading, partial.open("wb") as writing:
        taken = hashlib.sha256()
        size = 0
        while block := reading.read(BLOCK):
            writing.write(block)
            taken.update(block)
            size += len(block)
        writing.flush()
        os.fsync(writing.fileno())
    if checksum(partial) != taken.hexdigest():
        partial.unlink()
        raise CorruptCopy(
            what="the copy does not read back as what was copied",
            where=f"{source} -> {target}",
            next_step="check the disk of the target, then copy again",
        )
    partial.replace(target)
    return Replica(bytes=size, sha256=taken.hexdigest())


@dataclass(frozen=True, kw_only=True)
class Replicated:
    """Result of landing a file.

    Args:
        path: The copy.
        outcome: `new`; `same` if all of it was there already, under any name; `grown` if an existing copy was its
            beginning and was replaced; `renamed` if another log has its name, so that a content hash was added to it.
        replica: The copy made; None if the file was there already.
    """

    path: Path
    outcome: LandOutcome
    replica: Replica | None


def land(source: Path, folder: Path) -> Replicated:
    """Replicate a log into a folder without ever losing existing data, and without landing a line twice.

    A copy whose content is the beginning of the log's, both decompressed, is a copy of that log, whatever its name.

    Args:
        source: The file, compressed or not; a link is followed, because a person has named it.
        folder: Target folder in the landing zone; created if absent. A link in it that leads out of the landing
            zone does not count as a copy: it is replaced.

    Raises:
        SourceMissing: The source cannot be read.
        CorruptCopy: The copy, read back, differs from what was copied.
        LinkRefused: The folder is a link that leads out of the landing zone.
    """
    require_within([folder], folder.parent)
    opened(source).close()
    target = folder / source.name
    # An empty log is the beginning of every other.
    copies = [copy for copy in _copies(folder, target) if copy == target or (_head(copy) and _head(source))]
    for copy in copies:
        if same_bytes(source, copy) or _begins(copy, source):
            return Replicated(path=copy, outcome="same", replica=None)
    # Earlier releases made several copies of a log that grew after it was rotated.
    if grown := [copy for copy in copies if _begins(source, copy)]:
        copy = max(grown, key=_length)
        return Replicated(path=copy, outcome="grown", replica=replicate(source, copy))
    if not _is_there(target):
        return Replicated(path=target, outcome="new", replica=replicate(source, target))
    stem, dot, rest = source.name.partition(".")
    target = folder / f"{stem}-{checksum(source)[:8]}{dot}{rest}"
    return Replicated(path=target, outcome="renamed", replica=replicate(source, target))


def _copies(folder: Path, target: Path) -> list[Path]:
    """List the landed logs in a folder, that of the same name first."""
    found = folder.iterdir() if folder.is_dir() else ()
    logs = [path for path in found if path.name[0] not in "_." and path.is_file() and _is_there(path)]
    return sorted(logs, key=lambda path: (path != target, path.name))


def _begins(whole: Path, beginning: Path) -> bool:
    """Return whether a log begins with another one; a damaged one does not, and is no beginning."""
    try:
        return _head(whole).startswith(_head(beginning)) and starts_with(whole, beginning)
    except (SourceMissing, *DAMAGED):
        return False


def _head(log: Path) -> bytes:
    """Read the first bytes of a log, which all logs but copies of it differ in; none of one that cannot be read."""
    try:
        with content(log) as file:
            return file.read(_HEAD)
    except (SourceMissing, *DAMAGED):
        return b""


def _length(log: Path) -> int:
    with content(log) as file:
        return sum(map(len, iter(lambda: file.read(BLOCK), b"")))


def _is_there(target: Path) -> bool:
    return target.exists() and leading_out(target, target.parent.parent) is None
