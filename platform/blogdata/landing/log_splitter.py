"""Replicates a growing access log, byte for byte, into the hours in which its lines were logged.

Part of the Passthrough Replicator, whose card has the reasons. A small file beside the logs has the progress of each,
and is written last: after a crash at any moment, the same call again produces the same parts. A log without a valid
one, since producers write in the landing zone, too, is split again from its beginning, into the same parts.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta, timezone
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import IO

from pydantic import TypeAdapter, ValidationError

from blogdata.contract.partitions import Grain, between, following, key_of
from blogdata.errors import PlatformError
from blogdata.files import hidden, write_whole
from blogdata.landing.landed_formats import BLOCK, DAMAGED, LONGEST_NAME, content, digested, same_bytes, shortened
from blogdata.landing.landed_links import Obstacle, leading_out, require_within, stray
from blogdata.landing.log_declarations import HEADER
from blogdata.landing.log_formats import LogFormats, LogReader
from blogdata.landing.readiness_marker import FLAG, mark, printable, start_of_key, unreadable

LOGS = "access_logs"
PROGRESS = ".replicated"
"""Folder, beside the logs, of the files with their progress."""
LONGEST_SILENCE_HOURS = 31 * 24
"""Maximum length of a gap, in hours, whose hours count as empty; a longer gap gets no folders."""
STAMP = r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d"
"""Time of a copy in the name of a part; it sorts after the hour that it begins with."""
PART = rf"([^/]+)-({STAMP})-(\d{{12}})\.log(?:\.part)?$"
"""File name of a part: log, time taken, start offset in the log. Older parts have no time and do not match."""
UNENDED = ".part"
"""Ending of the name of a part that is the begin of a line; it makes way for the whole line, under another name."""
_OFFSET = re.compile(rf"-(?:{STAMP}-)?(\d{{12}})\.log(?:\.part)?")


@dataclass(frozen=True, kw_only=True)
class Taken:
    """Progress of a log, whose incomplete last line is a part of its own."""

    covered: int
    """Decompressed bytes that were taken as complete lines."""
    sha256: str
    hour: str | None
    """That of the last complete line."""
    source_size: int
    source_mtime_ns: int
    header: str
    """The `#Fields` line above what is appended later."""
    erased_sha256: str | None = None
    """Digest of the bytes taken once the lines that are being erased are."""

    @property
    def digests(self) -> tuple[str, ...]:
        """The digests that the bytes taken may have, before and after lines of them were erased."""
        return (self.sha256,) if self.erased_sha256 is None else (self.sha256, self.erased_sha256)


_TAKEN = TypeAdapter(Taken)


def progress_file(log: Path) -> Path:
    # Written under `.….json.partial`.
    return log.parent / PROGRESS / f"{shortened(log.name, LONGEST_NAME - 14)}.json"


def write_progress(log: Path, taken: Taken) -> None:
    write_whole(progress_file(log), json.dumps(asdict(taken)).encode())


def progress_of(log: Path) -> Taken | None:
    """Read the progress of a log; None if there is none, or none that can be believed."""
    return _progress_in(progress_file(log))


def _progress_in(file: Path) -> Taken | None:
    if not file.is_file():
        return None
    try:
        taken = _TAKEN.validate_json(file.read_bytes(), strict=True)
    except ValidationError:
        return None
    is_hour = taken.hour is None or start_of_key(taken.hour, Grain.HOUR) is not None
    return taken if is_hour and taken.covered >= 0 else None


def is_done(log: Path) -> bool:
    try:
        taken, stat = progress_of(log), log.stat()
    except OSError:
        # Splitting it meets the same error, and reports it.
        return False
    return taken is not None and (taken.source_size, taken.source_mtime_ns) == (stat.st_size, stat.st_mtime_ns)


@dataclass(frozen=True, kw_only=True)
class SplitReport:
    parts: Mapping[Path, str]
    """Files of consecutive lines that were logged in one hour, to that hour."""
    empty_hours: tuple[str, ...]
    """Hours between the log's lines in which nothing was logged; flagged, without a file."""
    lines: int


def unsplit_logs(landing: Path) -> list[Path]:
    """List landed logs that are new or have changed since they were split, by name; none behind a refused link."""
    logs = [log for log in _logs(landing) if isinstance(log, Path)]
    return [log for log in logs if not is_done(log)]


def refused_logs(landing: Path) -> list[Obstacle]:
    """List the links among the landed logs that are refused (see :func:`stray`), and what cannot be read, by name."""
    return [log for log in _logs(landing) if not isinstance(log, Path)]


def _logs(landing: Path) -> list[Path | Obstacle]:
    folder, zone = landing / LOGS, os.path.realpath(landing)
    try:
        for place in (folder, folder / PROGRESS):
            if place.is_symlink() and (link := stray(place, zone)):
                return [link]
        names = sorted(path for path in folder.iterdir() if path.name[0] not in "_.") if folder.is_dir() else []
        return [log for path in names if (log := _judged(path, zone)) is not None]
    except OSError as error:
        return [unreadable(str(folder), error)]


def _judged(path: Path, zone: str) -> Path | Obstacle | None:
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


def split_all(landing: Path, known: LogFormats, *, now: datetime) -> Iterator[tuple[Path, SplitReport | PlatformError]]:
    """Split the logs that are new or have changed, the oldest first; one that cannot be split stops no other."""
    logs = oldest_first(unsplit_logs(landing), known, now=now)
    for at, log in enumerate(logs, start=1 - len(logs)):
        # Lines are ordered by the time at which they were taken: within one call, too, by that of their log.
        taken_at = now + timedelta(seconds=at)
        try:
            yield log, split_by_hour(log, landing, known, now=now, taken_at=taken_at)
        except PlatformError as error:
            yield log, error


def oldest_first(logs: Iterable[Path], known: LogFormats, *, now: datetime) -> list[Path]:
    """Sort logs by the hour of their first readable line, those of one hour by when they were last written to."""
    newest = key_of(now, Grain.HOUR)

    def age(log: Path) -> tuple[str, int, str]:
        try:
            return _first_hour(log, known, newest) or "", log.stat().st_mtime_ns, log.name
        except (PlatformError, *DAMAGED):
            # Whoever reads it meets the same error, and reports it.
            return "", 0, log.name

    return sorted(logs, key=age)


def split_by_hour(
    log_file: Path, landing: Path, known: LogFormats, *, now: datetime, taken_at: datetime | None = None
) -> SplitReport:
    """Split a landed log into landing/visits/date=/hour=; a later call splits only what was appended since.

    The hour of a line is the latest hour logged so far in the file. A line whose time cannot be read, or lies
    after `now`, stays with the line before it; such lines at the start go with the first readable line, and a log
    without any goes to the hour of `now`.
    """
    require_within([log_file, progress_file(log_file)], landing)
    taken = (taken_at or now).astimezone(timezone.utc).strftime("%Y-%m-%dT%H-%M-%S")
    try:
        return _split(log_file, landing, known, now, taken)
    except DAMAGED as error:
        raise PlatformError(
            what=f"the log cannot be split into hours: {getattr(error, 'strerror', None) or error}",
            where=printable(getattr(error, "filename", None) or str(log_file)),
            next_step="land an undamaged copy, make room, or remove what is in the way; it is tried again by each run",
        ) from error


def _split(log: Path, landing: Path, known: LogFormats, now: datetime, taken_at: str) -> SplitReport:
    newest, prefix, taken = key_of(now, Grain.HOUR), _prefix(log), progress_of(log)
    since = (taken and taken.hour) or ""
    _remove(_in_hours(landing, f".{prefix}-*.log*.partial", since), landing)
    before = _parts(landing, prefix, since)
    # What is appended later sorts later, however soon after a call, and with however many others, a log is split again.
    stamps = [part[2] for _, path in before if (part := re.fullmatch(PART, path.name))]
    status = log.stat()
    if taken is None and not before:
        _require_new(log)
    start, digest = taken.covered if taken else 0, hashlib.sha256()
    end, size = _survey(log, taken, digest)
    hour = since or _first_hour(log, known, newest) or newest
    taken_at = max([taken_at, *stamps])
    run = _Run(prefix=prefix, landing=landing, log=known.of_log(), newest=newest, hour=hour, stamp=taken_at)
    if taken and taken.header:
        run.log.begin(taken.header)
    run.starts = {offset for offset, _ in before}
    with content(log) as file:
        digested(file, start)
        run.write(file, start, end, digest)
        settled, header = run.hour if end > start else since or None, run.log.header
        run.write(file, end, size, ending=UNENDED)
    # The part of a once incomplete last line that has moved, and stale parts of an interrupted call.
    later = [path for offset, path in _parts(landing, prefix, since) if offset >= start]
    _remove((path for path in later if path not in run.parts), landing)
    empty = _flag(landing, run)
    progress = Taken(
        covered=end,
        sha256=digest.hexdigest(),
        hour=settled,
        source_size=status.st_size,
        source_mtime_ns=status.st_mtime_ns,
        header=header,
    )
    write_progress(log, progress)
    return SplitReport(parts=run.parts, empty_hours=empty, lines=run.lines)


def _require_new(log: Path) -> None:
    """Refuse a log that begins with what was taken from another one."""
    others = ((file.stem, _progress_in(file)) for file in (log.parent / PROGRESS).glob("*.json"))
    begun = ((name, taken) for name, taken in others if taken and taken.covered)
    known = ((taken.covered, sha256, name) for name, taken in begun for sha256 in taken.digests)
    digest, position = hashlib.sha256(), 0
    with content(log) as file:
        for covered, sha256, name in sorted(known):
            position += digested(file, covered - position, digest)
            if position < covered:
                return
            if digest.hexdigest() == sha256:
                raise PlatformError(
                    what=f"the log begins with what was taken from {name}: it is the same one, rotated or copied",
                    where=str(log),
                    next_step="nothing was taken from it: remove the copy; the command that lands logs knows a rotated "
                    "one again",
                )


def _parts(landing: Path, prefix: str, since: str) -> list[tuple[int, Path]]:
    paths = _in_hours(landing, f"{prefix}-*.log*", since)
    matches = [(_OFFSET.fullmatch(path.name.removeprefix(prefix)), path) for path in paths]
    return sorted((int(match[1]), path) for match, path in matches if match is not None)


def _in_hours(landing: Path, names: str, since: str) -> list[Path]:
    days = [day for day in landing.glob("visits/date=*") if day.name >= f"date={since[:10]}"]
    return [path for day in days for path in day.glob(f"hour=*/{names}")]


def _survey(log: Path, taken: Taken | None, digest: hashlib._Hash) -> tuple[int, int]:
    """Return the end of the last complete line of a log, and its size; `digest` gets what was taken before."""
    covered = taken.covered if taken else 0
    with content(log) as file:
        position = end = digested(file, covered, digest)
        if taken and (position < covered or digest.hexdigest() not in taken.digests):
            raise PlatformError(
                what="the log no longer begins with what was taken from it",
                where=str(log),
                next_step="land it under another name, so that its lines are taken as a log of their own",
            )
        while block := file.read(BLOCK):
            if b"\n" in block:
                end = position + block.rindex(b"\n") + 1
            position += len(block)
    return end, position


def last_header(log: Path, end: int) -> str:
    """Return the last `#Fields` line before a byte of a log."""
    header = b""
    with content(log) as file:
        for piece, begins in _pieces(file, end):
            header = piece if begins and piece.startswith(HEADER.encode()) else header
    return header.decode(errors="replace").strip()


def _first_hour(log: Path, known: LogFormats, newest: str) -> str | None:
    with content(log) as file:
        reader = known.of_log()
        hours = (reader.hour_of(piece) for piece, begins in _pieces(file) if begins)
        return next((hour for hour in hours if hour is not None and hour <= newest), None)


def _pieces(file: IO[bytes], size: int | None = None) -> Iterator[tuple[bytes, bool]]:
    """Iterate over lines, very long ones in pieces; each comes with whether it begins a line."""
    begins = True
    while piece := file.readline(BLOCK if size is None else min(BLOCK, size)):
        size = None if size is None else size - len(piece)
        yield piece, begins
        begins = piece.endswith(b"\n")


@dataclass(kw_only=True)
class _Run:
    """One pass over the new bytes of a log; parts are renamed to their final names one after the other."""

    prefix: str
    landing: Path
    log: LogReader
    newest: str
    hour: str
    stamp: str
    starts: set[int] = field(default_factory=set)
    parts: dict[Path, str] = field(default_factory=dict)
    passed: list[tuple[str, str]] = field(default_factory=list)
    lines: int = 0

    def write(
        self, file: IO[bytes], begin: int, end: int, digest: hashlib._Hash | None = None, *, ending: str = ""
    ) -> None:
        """Write one part for each hour of a byte range; one that an earlier call has begun stays a part of its own.

        The `#Fields` line above a part is repeated at its beginning: each file is read by itself.
        """
        position = begin
        for (_, hour), pieces in groupby(self._with_hours(file, begin, end), key=itemgetter(0)):
            folder = _folder(self.landing, hour)
            require_within([folder], self.landing)
            target = self._target(folder, position, ending)
            lines = 0
            with hidden(target).open("wb") as out:
                for at, (_, piece, begins) in enumerate(pieces):
                    lines += begins
                    if not at and self.log.header and not piece.startswith(HEADER.encode()):
                        out.write(f"{self.log.header}\n".encode())
                    out.write(piece)
                    position += len(piece)
                    if digest is not None:
                        digest.update(piece)
            # What has landed already keeps its times, so that nothing is stale because of it.
            if same_bytes(hidden(target), target):
                hidden(target).unlink()
            else:
                hidden(target).replace(target)
                self.lines += lines
            self.parts[target] = hour

    def _with_hours(self, file: IO[bytes], position: int, end: int) -> Iterator[tuple[tuple[int, str], bytes, bool]]:
        """Iterate over lines, each with the start of its part and its hour, which never goes back."""
        start = position
        for piece, begins in _pieces(file, end - position):
            hour = self.log.hour_of(piece) if begins else self.hour
            if hour is not None and self.hour < hour <= self.newest:
                self.passed.append((self.hour, hour))
                self.hour = hour
            start = position if position in self.starts else start
            position += len(piece)
            yield (start, self.hour), piece, begins

    def _target(self, folder: Path, position: int, ending: str = "") -> Path:
        # An earlier call may have crashed, or its progress may be lost: its part is the same one, and keeps its name.
        taken = sorted(folder.glob(f"{self.prefix}-*{position:012d}.log{ending}"))
        return taken[0] if taken else folder / f"{self.prefix}-{self.stamp}-{position:012d}.log{ending}"


def _flag(landing: Path, run: _Run) -> tuple[str, ...]:
    """Flag the hours written, and the silent hours between them in which no producer has a file."""
    silent: list[str] = []
    for before, after in run.passed:
        hours = between(following(before, Grain.HOUR), after, Grain.HOUR)[:-1]
        silent += [hour for hour in hours if len(hours) <= LONGEST_SILENCE_HOURS and _is_bare(landing, hour)]
    for hour in [*silent, *dict.fromkeys(run.parts.values())]:
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
    stem = re.sub(r"[^A-Za-z0-9.-]", "-", re.sub(r"(\.log)?(\.(gz|bz2|xz|zst))?$", "", log.name)).lstrip(".") or "log"
    # Written under `.…-2026-03-01T10-59-58-000000000000.log.part.partial`.
    return f"{stem[: LONGEST_NAME - 60]}-{hashlib.sha256(os.fsencode(log.name)).hexdigest()[:8]}"
