"""Replicates a growing access log, byte for byte, into the hours in which its lines were logged.

Part of the Passthrough Replicator, whose card explains the reasons. The progress of a log is stored in a small file
beside it and written last: after a crash at any moment, the same call again produces the same parts.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import IO

from errors import PlatformError
from patterns.idempotency.keyed_idempotency import STAMP, stamp
from patterns.ingestion.landed_links import StrayLink, leading_out, require_within, stray
from patterns.ingestion.readiness_marker import FLAG, mark
from patterns.ingestion.whole_files import BLOCK, content, hidden, same_bytes, write_whole
from publish.partitions import Grain, between, following, key_of

LOGS = "access_logs"
PROGRESS = ".replicated"
LONGEST_SILENCE_HOURS = 31 * 24
"""Maximum length of a gap, in hours, whose hours count as empty; a longer gap gets no folders."""
PART = rf"([^/]+)-({STAMP})-(\d{{12}})\.log$"
"""File name of a part: log, time taken, start offset in the log. Older parts have no time and do not match."""
HourOf = Callable[[bytes], str | None]


class LogRewritten(PlatformError):
    """Raised when a log no longer begins with the bytes that were taken from it before."""


class LogUnreadable(PlatformError):
    """Raised when a compressed log is damaged."""


@dataclass(frozen=True, kw_only=True)
class LogPart:
    """Consecutive lines of a log that were logged in one hour.

    Args:
        path: The landed file.
        hour: Arrival hour.
        offset: Start in the (decompressed) log, bytes.
        bytes: Its size.
    """

    path: Path
    hour: str
    offset: int
    bytes: int


@dataclass(frozen=True, kw_only=True)
class SplitReport:
    """What one call of :func:`split_by_hour` took from a log.

    Args:
        parts: The parts written, in the log's order.
        empty_hours: Hours between the log's lines in which nothing was logged; flagged, without a file.
        lines: Lines in the parts.
        unreadable: Number of those lines whose time could not be read or lies in the future.
    """

    parts: tuple[LogPart, ...]
    empty_hours: tuple[str, ...]
    lines: int
    unreadable: int


@dataclass(frozen=True, kw_only=True)
class Taken:
    """Progress of a log: its complete lines, and possibly an incomplete last line in a part of its own."""

    covered: int
    sha256: str
    hour: str | None
    open_part: str | None
    source_size: int
    source_mtime_ns: int


def unsplit_logs(landing: Path) -> list[Path]:
    """List landed logs that are new or have changed since they were split, by name; none behind a refused link."""
    logs = [log for log in _logs(landing) if not isinstance(log, StrayLink)]
    return [log for log in logs if log.is_file() and not _is_done(log, _taken(_progress_file(log)))]


def refused_logs(landing: Path) -> list[StrayLink]:
    """List the links among the landed logs that are refused (see :func:`stray`), by name: they are not split."""
    return [log for log in _logs(landing) if isinstance(log, StrayLink)]


def _logs(landing: Path) -> list[Path | StrayLink]:
    folder, zone = landing / LOGS, os.path.realpath(landing)
    for place in (folder, folder / PROGRESS):
        if place.is_symlink() and (link := stray(place, zone)):
            return [link]
    if not folder.is_dir():
        return []
    logs = [path for path in sorted(folder.iterdir()) if path.name[0] not in "_."]
    return [(stray(path, zone) if path.is_symlink() else None) or path for path in logs]


def split_by_hour(
    log_file: Path,
    landing: Path,
    hour_of: HourOf,
    *,
    now: datetime,
) -> SplitReport:
    """Split a landed log into landing/visits/date=/hour=; a later call splits only what was appended since.

    The hour of a line is the latest hour logged so far in the file. A line whose time cannot be read, or lies
    after `now`, stays with the line before it; such lines at the start go with the first readable line. The name of a
    part contains the time at which it was first taken (Keyed Idempotency), which distinguishes it from later parts.

    Args:
        log_file: The log in landing/access_logs, plain or gzip.
        landing: The landing zone.
        hour_of: Returns the hour of a line as `2026-01-31T05`, None if it cannot be read.
        now: Current time, timezone-aware; its hour is used for a log without a readable time.

    Returns:
        What this call took from the log.

    Raises:
        LinkRefused: The log, or the hour of one of its lines, lies behind a link that leads out of the landing zone.
        LogRewritten: The log no longer begins with what was taken from it.
        LogUnreadable: The log is compressed and damaged; nothing was taken.
    """
    progress = _progress_file(log_file)
    require_within([log_file, progress], landing)
    newest = key_of(now, Grain.HOUR)
    taken = _taken(progress)
    try:
        survey = _survey(log_file, taken)
        hour = (taken and taken.hour) or _first_hour(log_file, hour_of, newest)
    except (EOFError, OSError, zlib.error) as error:
        raise LogUnreadable(
            what=f"the log cannot be read to its end: {error}",
            where=str(log_file),
            next_step="land an undamaged copy of it, or a decompressed one",
        ) from error
    started = progress.with_suffix(".started")
    interrupted = started.exists()
    write_whole(started, b"")
    run = _Run(
        log=log_file,
        landing=landing,
        hour_of=hour_of,
        newest=newest,
        hour=hour or newest,
        stamp=stamp(now),
    )
    run.split(survey)
    _remove_stale(landing, run, taken, survey.start if interrupted else None)
    empty = _flag(landing, run)
    state = Taken(
        covered=survey.complete,
        sha256=run.digest.hexdigest(),
        hour=run.settled_hour if survey.complete > survey.start else (taken.hour if taken else None),
        open_part=_relative(run.parts[-1].path, landing) if survey.size > survey.complete else None,
        source_size=survey.status[0],
        source_mtime_ns=survey.status[1],
    )
    write_whole(progress, json.dumps(asdict(state)).encode())
    started.unlink()
    return SplitReport(
        parts=tuple(run.parts),
        empty_hours=empty,
        lines=run.lines,
        unreadable=run.unreadable,
    )


@dataclass(kw_only=True)
class _Survey:
    """Size of a log, end of its last complete line, and checksum of the bytes taken before."""

    start: int
    size: int
    complete: int
    digest: hashlib._Hash
    status: tuple[int, int]


def _survey(log: Path, taken: Taken | None) -> _Survey:
    stat = log.stat()
    start = taken.covered if taken else 0
    digest = hashlib.sha256()
    with content(log) as file:
        position = 0
        while position < start and (block := file.read(min(BLOCK, start - position))):
            digest.update(block)
            position += len(block)
        if taken and (position < start or digest.hexdigest() != taken.sha256):
            raise LogRewritten(
                what="the log no longer begins with what was taken from it",
                where=str(log),
                next_step="land it under another name, so that its lines are taken as a log of their own",
            )
        complete = start
        while block := file.read(BLOCK):
            feed = block.rfind(b"\n")
            complete = position + feed + 1 if feed >= 0 else complete
            position += len(block)
    return _Survey(
        start=start, size=position, complete=complete, digest=digest, status=(stat.st_size, stat.st_mtime_ns)
    )


def _first_hour(log: Path, hour_of: HourOf, newest: str) -> str | None:
    with content(log) as file:
        hours = (hour_of(piece) for piece, begins in _pieces(file, None) if begins)
        return next((hour for hour in hours if hour is not None and hour <= newest), None)


def _pieces(file: IO[bytes], size: int | None) -> Iterator[tuple[bytes, bool]]:
    """Iterate over lines, very long ones in pieces; each comes with whether it begins a line."""
    begins = True
    while piece := file.readline(BLOCK if size is None else min(BLOCK, size)):
        size = None if size is None else size - len(piece)
        yield piece, begins
        begins = piece.endswith(b"\n")


@dataclass(kw_only=True)
class _Run:
    """One pass over the new bytes of a log; parts are renamed to their final names one after the other."""

    log: Path
    landing: Path
    hour_of: HourOf
    newest: str
    hour: str
    stamp: str
    settled_hour: str = ""
    parts: list[LogPart] = field(default_factory=list)
    passed: list[tuple[str, str]] = field(default_factory=list)
    lines: int = 0
    unreadable: int = 0
    digest: hashlib._Hash = field(default_factory=hashlib.sha256)

    def split(self, survey: _Survey) -> None:
        self.digest = survey.digest
        with content(self.log) as file:
            file.seek(survey.start)
            self._write(file, survey.start, survey.complete)
            self.settled_hour = self.hour
            settled = self.digest.copy()
            self._write(file, survey.complete, survey.size)
            self.digest = settled

    def _write(self, file: IO[bytes], begin: int, end: int) -> None:
        """Write one part for each hour of a byte range."""
        position = begin
        out: IO[bytes] | None = None
        target = begun = None
        try:
            for piece, begins in _pieces(file, end - begin):
                if (begins and self._moves(piece)) or out is None:
                    if out is not None and target is not None and begun is not None:
                        out.close()
                        self._name(target, begun, position)
                    target, begun = self._target(position), position
                    out = hidden(target).open("wb")
                out.write(piece)
                self.digest.update(piece)
                position += len(piece)
        finally:
            if out is not None:
                out.close()
        if target is not None and begun is not None:
            self._name(target, begun, position)

    def _moves(self, piece: bytes) -> bool:
        """Count a line, and return whether it was logged in a later hour than the line before."""
        self.lines += 1
        hour = self.hour_of(piece)
        if hour is None or hour > self.newest:
            self.unreadable += 1
            return False
        if hour <= self.hour:
            return False
        self.passed.append((self.hour, hour))
        self.hour = hour
        return True

    @property
    def prefix(self) -> str:
        """Name prefix of all parts of the log."""
        name = self.log.name
        stem = re.sub(r"[^A-Za-z0-9.-]", "-", re.sub(r"(\.log)?(\.gz)?$", "", name)).lstrip(".") or "log"
        return f"{stem}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"

    def _target(self, position: int) -> Path:
        folder = _folder(self.landing, self.hour)
        require_within([folder], self.landing)
        # An earlier call may have crashed, or its progress may be lost: its part is the same one, and keeps its name.
        taken = sorted(folder.glob(f"{self.prefix}-*{position:012d}.log"))
        return taken[0] if taken else folder / f"{self.prefix}-{self.stamp}-{position:012d}.log"

    def _name(self, target: Path, begun: int, end: int) -> None:
        partial = hidden(target)
        if same_bytes(partial, target):
            partial.unlink()
        else:
            partial.replace(target)
        day, hour = target.parent.parent.name[5:], target.parent.name[5:]
        self.parts.append(LogPart(path=target, hour=f"{day}T{hour}", offset=begun, bytes=end - begun))


def _flag(landing: Path, run: _Run) -> tuple[str, ...]:
    """Flag the hours written, and the silent hours between them in which no producer has a file."""
    silent: list[str] = []
    for before, after in run.passed:
        hours = between(following(before, Grain.HOUR), after, Grain.HOUR)[:-1]
        silent += [hour for hour in hours if len(hours) <= LONGEST_SILENCE_HOURS and _is_bare(landing, hour)]
    for hour in silent:
        mark(_folder(landing, hour), allow_empty=True)
    for hour in dict.fromkeys(part.hour for part in run.parts):
        mark(_folder(landing, hour))
    return tuple(silent)


def _remove_stale(landing: Path, run: _Run, taken: Taken | None, redone_from: int | None) -> None:
    """Remove the part of a once incomplete last line that has moved, and stale parts of an interrupted call."""
    stale = {landing / taken.open_part} if taken and taken.open_part else set()
    if redone_from is not None:
        found = landing.glob(f"visits/date=*/hour=*/{run.prefix}-*.log")
        stale |= {path for path in found if int(path.stem.rpartition("-")[2]) >= redone_from}
    for path in stale - {part.path for part in run.parts}:
        if leading_out(path.parent, landing) is None:
            path.unlink(missing_ok=True)


def _is_bare(landing: Path, hour: str) -> bool:
    folder = _folder(landing, hour)
    if leading_out(folder, landing) is not None:
        return False
    return not folder.exists() or not any(path.name != FLAG for path in folder.iterdir())


def _folder(landing: Path, hour: str) -> Path:
    return landing / "visits" / f"date={hour[:10]}" / f"hour={hour[11:]}"


def _relative(path: Path, landing: Path) -> str:
    return path.relative_to(landing).as_posix()


def _progress_file(log: Path) -> Path:
    return log.parent / PROGRESS / f"{log.name}.json"


def _taken(progress: Path) -> Taken | None:
    return Taken(**json.loads(progress.read_text())) if progress.exists() else None


def _is_done(log: Path, taken: Taken | None) -> bool:
    stat = log.stat()
    return taken is not None and (taken.source_size, taken.source_mtime_ns) == (
        stat.st_size,
        stat.st_mtime_ns,
    )
