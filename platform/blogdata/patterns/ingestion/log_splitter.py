"""Replicates a growing access log, byte for byte, into the hours in which its lines were logged.

Part of the Passthrough Replicator, whose card explains the reasons. The progress of a log is stored in a small file
beside it and written last (:mod:`.log_progress`): after a crash at any moment, the same call again produces the same
parts.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from shutil import copyfileobj
from typing import IO

from blogdata.errors import PlatformError
from blogdata.patterns.idempotency.keyed_idempotency import STAMP, stamp
from blogdata.patterns.ingestion import log_progress
from blogdata.patterns.ingestion.landed_entries import Obstacle, printable, unreadable
from blogdata.patterns.ingestion.landed_formats import DAMAGED
from blogdata.patterns.ingestion.landed_links import StrayLink, leading_out, require_within, stray
from blogdata.patterns.ingestion.log_progress import PROGRESS, Taken
from blogdata.patterns.ingestion.readiness_marker import FLAG, mark
from blogdata.patterns.ingestion.whole_files import BLOCK, LONGEST_NAME, content, hidden, same_bytes, skip
from blogdata.publish.partitions import Grain, between, following, key_of

LOGS = "access_logs"
LONGEST_SILENCE_HOURS = 31 * 24
"""Maximum length of a gap, in hours, whose hours count as empty; a longer gap gets no folders."""
PART = rf"([^/]+)-({STAMP})-(\d{{12}})\.log(?:\.part)?$"
"""File name of a part: log, time taken, start offset in the log. Older parts have no time and do not match."""
UNENDED = ".part"
"""Ending of the name of a part that is the begin of a line; it makes way for the whole line, under another name."""
HourOf = Callable[[bytes], str | None]


class LogUnreadable(PlatformError):
    """Raised when a compressed log is damaged."""


class LogNotSplit(PlatformError):
    """Raised when the parts of a log cannot be written, such as when a file is in the way of an hour's folder."""


@dataclass(frozen=True, kw_only=True)
class LogPart:
    """Consecutive lines of a log that were logged in one hour.

    Args:
        offset: Start in the (decompressed) log, bytes.
    """

    path: Path
    hour: str
    offset: int
    bytes: int


@dataclass(frozen=True, kw_only=True)
class SplitReport:
    """What one call of :func:`split_by_hour` took from a log.

    Args:
        empty_hours: Hours between the log's lines in which nothing was logged; flagged, without a file.
    """

    parts: tuple[LogPart, ...]
    empty_hours: tuple[str, ...]
    lines: int
    unreadable: int


def unsplit_logs(landing: Path) -> list[Path]:
    """List landed logs that are new or have changed since they were split, by name; none behind a refused link."""
    logs = [log for log in _logs(landing) if isinstance(log, Path)]
    return [log for log in logs if not log_progress.is_done(log)]


def refused_logs(landing: Path) -> list[StrayLink | Obstacle]:
    """List the links among the landed logs that are refused (see :func:`stray`), and what cannot be read, by name."""
    return [log for log in _logs(landing) if not isinstance(log, Path)]


def _logs(landing: Path) -> list[Path | StrayLink | Obstacle]:
    folder, zone = landing / LOGS, os.path.realpath(landing)
    try:
        for place in (folder, folder / PROGRESS):
            if place.is_symlink() and (link := stray(place, zone)):
                return [link]
        names = sorted(path for path in folder.iterdir() if path.name[0] not in "_.") if folder.is_dir() else []
        return [log for path in names if (log := _judged(path, zone)) is not None]
    except OSError as error:
        return [unreadable(str(folder), error)]


def _judged(path: Path, zone: str) -> Path | StrayLink | Obstacle | None:
    """Return a log or why it is refused; None for a link to a log beside it, such as to the current one."""
    if path.is_symlink() and (link := stray(path, zone)):
        return link
    if path.is_symlink() and Path(os.path.realpath(path)).parent == Path(os.path.realpath(path.parent)):
        return None
    if not path.is_file():
        why = "is a folder, and logs lie side by side" if path.is_dir() else "is neither a file nor a folder"
        return Obstacle(path=printable(str(path)), why=why)
    readable = os.access(path, os.R_OK, effective_ids=os.access in os.supports_effective_ids)
    return path if readable else Obstacle(path=printable(str(path)), why="may not be read")


def split_by_hour(
    log_file: Path,
    landing: Path,
    hour_of: HourOf,
    *,
    now: datetime,
    taken_at: datetime | None = None,
) -> SplitReport:
    """Split a landed log into landing/visits/date=/hour=; a later call splits only what was appended since.

    The hour of a line is the latest hour logged so far in the file. A line whose time cannot be read, or lies
    after `now`, stays with the line before it; such lines at the start go with the first readable line. The name of a
    part contains the time at which it was first taken (Keyed Idempotency), which distinguishes it from later parts.
    A part of whole lines never changes once it has its name, so that a stream may read it at once.

    Args:
        hour_of: Returns the hour of a line as `2026-01-31T05`, None if it cannot be read.
        now: Current time, timezone-aware; its hour is used for a log without a readable time.

    Returns:
        What this call took from the log.

    Raises:
        LinkRefused: The log, or the hour of one of its lines, lies behind a link that leads out of the landing zone.
        LogNotSplit: A part cannot be written.
        LogRewritten: The log no longer begins with what was taken from it.
        LogTaken: It is new, and begins with what was taken from another log.
        LogUnreadable: The log is compressed and damaged; nothing was taken.
    """
    require_within([log_file, log_progress.file_of(log_file)], landing)
    try:
        return _split(log_file, landing, hour_of, now, stamp(taken_at or now))
    except OSError as error:
        raise LogNotSplit(
            what=f"the log cannot be split into hours: {error.strerror}",
            where=printable(error.filename or str(log_file)),
            next_step="make room, or remove what is in the way; it is tried again by each run",
        ) from error


def _split(log: Path, landing: Path, hour_of: HourOf, now: datetime, taken_at: str) -> SplitReport:
    newest, prefix = key_of(now, Grain.HOUR), _prefix(log)
    taken = log_progress.read(log)
    since = (taken and taken.hour) or ""
    _remove(log_progress.unfinished(landing, prefix, since=since), landing)
    # What is appended later sorts later, however soon after a call, and with however many others, a log is split again.
    before = [re.fullmatch(PART, path.name) for _, path in log_progress.parts(landing, prefix, since=since)]
    taken_at = max([taken_at, *(part[2] for part in before if part is not None)])
    try:
        if taken is None and (taken := log_progress.recovered(log, log_progress.parts(landing, prefix))) is None:
            log_progress.require_new(log)
        survey = _survey(log, taken)
        hour = (taken and taken.hour) or first_hour(log, hour_of, newest)
    except DAMAGED as error:
        raise LogUnreadable(
            what=f"the log cannot be read to its end: {error}",
            where=str(log),
            next_step="land an undamaged copy of it, or a decompressed one",
        ) from error
    run = _Run(
        log=log, prefix=prefix, landing=landing, hour_of=hour_of, newest=newest, hour=hour or newest, stamp=taken_at
    )
    run.split(survey)
    # The part of a once incomplete last line that has moved, and stale parts of an interrupted call.
    kept = {part.path for part in run.parts}
    later = [path for offset, path in log_progress.parts(landing, prefix, since=since) if offset >= survey.start]
    _remove((path for path in later if path not in kept), landing)
    empty = _flag(landing, run)
    settled = Taken(
        covered=survey.complete,
        sha256=run.digest.hexdigest(),
        hour=run.settled_hour if survey.complete > survey.start else (taken.hour if taken else None),
        source_size=survey.status[0],
        source_mtime_ns=survey.status[1],
    )
    log_progress.write(log, settled)
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
        position = log_progress.take(file, start, digest)
        if taken and (position < start or not taken.begins(digest.hexdigest())):
            raise log_progress.rewritten(log)
        complete = start
        while block := file.read(BLOCK):
            feed = block.rfind(b"\n")
            complete = position + feed + 1 if feed >= 0 else complete
            position += len(block)
    return _Survey(
        start=start, size=position, complete=complete, digest=digest, status=(stat.st_size, stat.st_mtime_ns)
    )


def first_hour(log: Path, hour_of: HourOf, newest: str) -> str | None:
    """Return the hour of the first readable line of a log that was not logged after the newest hour."""
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
    prefix: str
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
            skip(file, survey.start)
            self._write(file, survey.start, survey.complete)
            self.settled_hour = self.hour
            settled = self.digest.copy()
            self._write(file, survey.complete, survey.size, UNENDED)
            self.digest = settled

    def _write(self, file: IO[bytes], begin: int, end: int, ending: str = "") -> None:
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
                    folder = _folder(self.landing, self.hour)
                    require_within([folder], self.landing)
                    target, begun = self._target(folder, position, ending), position
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

    def _target(self, folder: Path, position: int, ending: str = "") -> Path:
        # An earlier call may have crashed, or its progress may be lost: its part is the same one, and keeps its name.
        taken = sorted(folder.glob(f"{self.prefix}-*{position:012d}.log{ending}"))
        if not ending:
            # Earlier releases gave the begin of a line such a name, and a stream may have read it.
            taken = [path for path in taken if log_progress.ends_a_line(path) or not re.fullmatch(PART, path.name)]
        return taken[0] if taken else folder / f"{self.prefix}-{self.stamp}-{position:012d}.log{ending}"

    def _name(self, target: Path, begun: int, end: int) -> None:
        partial, rest = hidden(target), None
        if same_bytes(partial, target):
            partial.unlink()
        elif size := _begun_by(target, partial):
            # A call that crashed has written the first lines, and a stream may have read them: they stay as they are.
            rest = self._target(target.parent, begun + size)
            with partial.open("rb") as lines, hidden(rest).open("wb") as others:
                lines.seek(size)
                copyfileobj(lines, others, BLOCK)
            partial.unlink()
        else:
            partial.replace(target)
        until = end if rest is None else begun + size
        day, hour = target.parent.parent.name[5:], target.parent.name[5:]
        self.parts.append(LogPart(path=target, hour=f"{day}T{hour}", offset=begun, bytes=until - begun))
        if rest is not None:
            self._name(rest, until, end)


def _begun_by(part: Path, longer: Path) -> int:
    """Return the size of a part if it is whole lines with which another file begins, and else 0."""
    if not part.is_file() or not log_progress.ends_a_line(part):
        return 0
    with part.open("rb") as first, longer.open("rb") as file:
        while block := first.read(BLOCK):
            if file.read(len(block)) != block:
                return 0
        return first.tell()


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


def _remove(stale: Iterable[Path], landing: Path) -> None:
    for path in stale:
        if leading_out(path.parent, landing) is None:
            path.unlink(missing_ok=True)


def _is_bare(landing: Path, hour: str) -> bool:
    folder = _folder(landing, hour)
    if leading_out(folder, landing) is not None:
        return False
    return not folder.exists() or not any(path.name != FLAG for path in folder.iterdir())


def _folder(landing: Path, hour: str) -> Path:
    return landing / "visits" / f"date={hour[:10]}" / f"hour={hour[11:]}"


def _prefix(log: Path) -> str:
    """Return what the names of all parts of a log begin with."""
    stem = re.sub(r"[^A-Za-z0-9.-]", "-", re.sub(r"(\.log)?(\.(gz|bz2|xz|zst))?$", "", log.name)).lstrip(".") or "log"
    # Written under `.…-2026-03-01T10-59-58-000000000000.log.part.partial`.
    return f"{stem[: LONGEST_NAME - 60]}-{hashlib.sha256(os.fsencode(log.name)).hexdigest()[:8]}"
