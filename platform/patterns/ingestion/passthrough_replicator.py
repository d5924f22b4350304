"""Passthrough Replicator: data is copied byte for byte, and a copy that is not whole is never seen.

Problem: the same data is needed elsewhere, exactly as it is. A copy that parses and rewrites the data changes
it: `1.0` becomes `1`, keys change their order, one of two equal keys is lost.

How it works: bytes are copied to a hidden name and hashed on the way. The copy is read back and compared, and only
then renamed to its final name. `log_splitter` replicates an access log into the hours in which its lines were logged:
each part is a byte range of the log, and the parts concatenated by offset are the log again.

The trap: a log grows while it is read and is rotated when it is full. A last line without a line feed becomes a part
of its own, which is rewritten once the line is complete; a log whose replicated bytes have changed is refused. A single
wrong time stamp must not move lines to another period: times in the future are ignored, and hours never go backwards
within a log, because lines are appended in order of arrival.

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
from patterns.ingestion.landed_links import leading_out, require_within
from patterns.ingestion.whole_files import BLOCK, checksum, hidden, opened, same_bytes, starts_with

LandOutcome = Literal["new", "same", "grown", "renamed"]


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
        outcome: `new`; `same` if all of it was there already; `grown` if the existing copy was its beginning and
            was replaced; `renamed` if another file has its name, so that a content hash was added to the name.
        replica: The copy made; None if the file was there already.
    """

    path: Path
    outcome: LandOutcome
    replica: Replica | None


def land(source: Path, folder: Path) -> Replicated:
    """Replicate a file into a folder under its own name, without ever losing existing data.

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
    target = folder / source.name
    outcome: LandOutcome = "new"
    with opened(source):
        present = _is_there(target)
    if present:
        if same_bytes(source, target) or starts_with(target, source):
            return Replicated(path=target, outcome="same", replica=None)
        outcome = "grown"
        if not starts_with(source, target):
            stem, dot, rest = source.name.partition(".")
            target = folder / f"{stem}-{checksum(source)[:8]}{dot}{rest}"
            outcome = "renamed"
            if _is_there(target) and same_bytes(source, target):
                return Replicated(path=target, outcome="same", replica=None)
    return Replicated(path=target, outcome=outcome, replica=replicate(source, target))


def _is_there(target: Path) -> bool:
    return target.exists() and leading_out(target, target.parent.parent) is None
