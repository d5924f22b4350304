"""Replays of dead letters (see Dead-Letter): a corrected line arrives again, in the hour of the line it corrects.

The correction is a landed file of its own, named after the position of the dead letter, so that replaying
twice, or with a better correction, replaces the file instead of adding a row. It is read like anything that was landed,
and every row that comes of it says by its `source_file` that it was replayed.

Source: Data Engineering Design Patterns, ch. 3.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from patterns.core.errors import PlatformError
from patterns.ingestion.landed_lines import REPLAY_PREFIX
from patterns.ingestion.readiness_marker import FLAG, mark
from patterns.ingestion.whole_files import write_whole

Position = tuple[str, int]
HOUR_FOLDER = re.compile(r"date=(\d{4}-\d{2}-\d{2})/hour=(\d{2})/")


class ReplayRefused(PlatformError):
    """A correction cannot be replayed; nothing was landed."""


@dataclass(frozen=True, kw_only=True)
class Correction:
    """The line a dead letter should have been.

    Args:
        source_file: Where the dead letter lies, relative to the landing zone.
        source_offset: Byte at which it begins.
        payload: The corrected line.
    """

    source_file: str
    source_offset: int
    payload: str

    @property
    def position(self) -> Position:
        """What it corrects."""
        return (self.source_file, self.source_offset)

    @property
    def arrival_hour(self) -> str:
        """Hour of arrival of the dead letter, and so of its replay."""
        found = HOUR_FOLDER.search(self.source_file)
        if found is None:
            raise ReplayRefused(
                what=f"'{self.source_file}' is not a file of an hour of arrival",
                where="source_file",
                next_step="take source_file and source_offset from bronze.dead_letters as they are",
            )
        return f"{found[1]}T{found[2]}"


@dataclass(frozen=True, kw_only=True)
class Replay:
    """What a replay landed: its files, relative to the landing zone, and the hours of arrival they make stale."""

    files: tuple[str, ...]
    hours: tuple[str, ...]


def read(lines: Iterable[str], where: str) -> list[Correction]:
    """Read corrections, one JSON object a line with source_file, source_offset and payload (text or an object).

    Raises:
        ReplayRefused: A line is not one.
    """
    corrections = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            item = json.loads(line)
            payload = item["payload"]
            text = payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False)
            correction = Correction(
                source_file=str(item["source_file"]), source_offset=int(item["source_offset"]), payload=text
            )
        except (ValueError, KeyError, TypeError) as error:
            raise ReplayRefused(
                what=f"line {number} is not a correction: {error!r}",
                where=where,
                next_step='write {"source_file": …, "source_offset": …, "payload": …} a line',
            ) from error
        try:
            correction.payload.encode()
        except UnicodeEncodeError as error:
            raise ReplayRefused(
                what=f"the payload of line {number} is no text: {error.reason} at character {error.start}",
                where=where,
                next_step="write it without lone surrogates (\\ud800 to \\udfff)",
            ) from error
        if "\n" in correction.payload:
            raise ReplayRefused(
                what=f"the payload of line {number} has a line break", where=where, next_step="write it as one line"
            )
        corrections.append(correction)
    return corrections


def land(corrections: Sequence[Correction], dead: Iterable[Position], landing: Path) -> Replay:
    """Land corrections, all or none, in the hours of their dead letters.

    Args:
        corrections: What to replay.
        dead: Positions of the dead letters there are.
        landing: The landing zone.

    Returns:
        What was landed; the same corrections again land the same files.

    Raises:
        ReplayRefused: A position is not that of a dead letter.
    """
    unknown = sorted({correction.position for correction in corrections} - set(dead))
    if unknown:
        raise ReplayRefused(
            what=f"{len(unknown)} position(s) are not those of dead letters, the first is {unknown[0]}",
            where="bronze.dead_letters",
            next_step="list them: blogdata sql 'SELECT source_file, source_offset, reasons FROM bronze.dead_letters'",
        )
    contents = {_place(correction): correction.payload.encode() + b"\n" for correction in corrections}
    # A file that is written anew has another time, and its hour would be published again for nothing.
    changed = {
        place: content
        for place, content in contents.items()
        if not (landing / place).is_file() or (landing / place).read_bytes() != content
    }
    for place, content in changed.items():
        write_whole(landing / place, content)
    for folder in sorted({(landing / place).parent for place in contents}):
        if not (folder / FLAG).is_file() or any((landing / place).parent == folder for place in changed):
            mark(folder)
    return Replay(files=tuple(contents), hours=tuple(sorted({correction.arrival_hour for correction in corrections})))


def _place(correction: Correction) -> str:
    hour = correction.arrival_hour
    name = file_name(correction.position, log=correction.source_file.removesuffix(".gz").endswith(".log"))
    return f"visits/date={hour[:10]}/hour={hour[11:]}/{name}"


def file_name(position: Position, *, log: bool) -> str:
    """Give the name of the file that corrects a dead letter."""
    digest = hashlib.sha256(f"{position[0]}:{position[1]}".encode()).hexdigest()[:16]
    return f"{REPLAY_PREFIX}{digest}.{'log' if log else 'json'}"
