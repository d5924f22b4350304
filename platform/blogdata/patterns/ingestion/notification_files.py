"""Notification files: events of an External Trigger that arrive as files in the landing zone.

A sender that can write to the landing zone and makes no calls puts each event into a file of its own. Files are read
and left in place; one that changes is read again. A file that is read before it is whole is refused once, and accepted
when it is whole. A file that cannot be read is reported, and tried again at each call.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from blogdata.patterns.ingestion.external_trigger import FILE, Notification, Trigger
from blogdata.patterns.ingestion.landed_links import require_within
from blogdata.patterns.ingestion.trigger_event import MOST_BYTES, EventRefused, malformed

FOLDER = "_events"
"""Folder in the landing zone. No landed table has a name that begins with an underscore, so nothing else reads it."""
SUFFIX = ".json"
_MOST_AT_ONCE = 500


class Unreadable(EventRefused, kind="unreadable"):
    """Raised when a notification file cannot be read at present; it may be readable at the next call."""


def take_files(trigger: Trigger, landing: Path) -> list[EventRefused]:
    """Take the new notification files of a landing zone, at most 500 at once; the rest follows at the next call.

    Files that cannot be read do not count: they would keep others out for as long as they stay.

    Args:
        trigger: The entrance for events.
        landing: The landing zone.

    Returns:
        The refusals; that of the folder itself if it cannot be read.

    Raises:
        LinkRefused: The folder is a link that leads out of the landing zone.
        InboxUnusable: The events could not be kept; transient.
    """
    folder = landing / FOLDER
    try:
        if not folder.is_dir():
            return []
        require_within([folder], landing)
        found = dict(_found(folder))
    except OSError as error:
        return [_unreadable(FOLDER, error)]
    before = trigger.inbox.files()
    read: dict[str, str] = {}
    refused: list[EventRefused] = []
    for name in sorted(found):
        if before.get(name) == found[name].mark:
            continue
        if len(read) == _MOST_AT_ONCE:
            break
        try:
            trigger.take(_notification(name, found[name]))
        except Unreadable as error:
            refused.append(error)
            continue
        except EventRefused as error:
            refused.append(error)
        read[name] = found[name].mark
    gone = before.keys() - found.keys()
    if read or gone:
        trigger.inbox.note_files(read, gone)
    return refused


@dataclass(frozen=True)
class _File:
    path: Path
    size: int
    written: float
    mark: str


def _found(folder: Path) -> Iterator[tuple[str, _File]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name[0] in "_." or not entry.name.endswith(SUFFIX):
                continue
            # A link may lead out of the landing zone, and an event needs none.
            try:
                about = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            if stat.S_ISREG(about.st_mode):
                mark = f"{about.st_size} {about.st_mtime_ns} {about.st_ctime_ns}"
                # A file name need not be valid UTF-8.
                shown = os.fsencode(entry.name).decode(errors="backslashreplace")
                yield shown, _File(Path(entry.path), about.st_size, about.st_mtime, mark)


def _notification(name: str, file: _File) -> Notification:
    body = b""
    if file.size <= MOST_BYTES:
        try:
            with os.fdopen(_itself(file.path), "rb") as opened:
                body = opened.read(MOST_BYTES + 1)
        except OSError as error:
            raise _unreadable(f"{FOLDER}/{name}", error) from error
    return Notification(
        body=body,
        size=max(file.size, len(body)),
        channel=FILE,
        origin=f"{FOLDER}/{name}",
        # It waits while the daemon is down: its age counts from when it was written.
        at=_instant(name, file.written),
    )


def _itself(path: Path) -> int:
    """Open a file, but no link or pipe that has taken its place since it was listed: a pipe would block for ever."""
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)


def _unreadable(name: str, error: OSError) -> Unreadable:
    return Unreadable(
        what=f"{name} cannot be read: {error.strerror}",
        where=name,
        next_step="check its permissions and the disk; it is tried again until it can be read",
    )


def _instant(name: str, written: float) -> datetime:
    try:
        return datetime.fromtimestamp(written, timezone.utc)
    # Which one it is depends on the platform and on how far the time is out of range.
    except (ValueError, OverflowError, OSError) as error:
        raise malformed(f"{FOLDER}/{name} was written at an impossible time: {error}", f"{FOLDER}/{name}") from error
