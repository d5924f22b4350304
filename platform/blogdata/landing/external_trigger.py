"""External Trigger: an event from outside starts a run, once, and waits until it can.

Problem: nobody can tell when the data will come. A schedule runs in vain most of the time, and late the rest of it.
How it works: each event waits as a file of its own in the landing zone, in the folder :data:`FOLDER`. A sender writes
the file itself, under a hidden name first, or makes an HTTP call with a token
(`blogdata.cli.event_route`), which is answered once the file is on the disk (:func:`keep`). A sensor
requests a run for each file and removes the file once that run exists; the event's context goes into the run's tags and
commits. The run key is the event's source and id: delivered again, it starts no second run. A file that is no event
(:func:`read`) is moved into :data:`REFUSED`, beside its reason.
The trap: a trigger that is only a ping: without its event nobody knows why a run took place, and one that was answered
and then lost in memory is never sent again. And trust: an event selects declared datasets, whose stale partitions are
computed; nothing in it is opened or executed.
When not to use it: for data that come regularly, or from a producer that cannot notify; then a Readiness Marker.
Source: Data Engineering Design Patterns, ch. 2.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection
from contextlib import suppress
from operator import itemgetter
from pathlib import Path
from typing import Annotated

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, field_validator

from blogdata.errors import PlatformError, shown, similar
from blogdata.files import write_atomically
from blogdata.landing.in_place_overwriter import sync
from blogdata.landing.landed_links import require_within
from blogdata.landing.readiness_marker import is_data

FOLDER = "_events"
"""Folder in the landing zone. No landed table has a name that begins with an underscore, so nothing else reads it."""
REFUSED = "refused"
"""Folder in :data:`FOLDER` of files that start no run: each beside its reason, in a file with the ending `.reason`."""
SUFFIX = ".json"
MOST_BYTES = 64 * 1024
"""Size limit of an event; larger data belong elsewhere, and the event's payload refers to them."""
# It becomes the tag of a run, and databases limit what they can index.
_MOST_PAYLOAD_BYTES = 2000
_EXAMPLE = (
    'send an object like {"id": "release-42", "source": "shop", "time": "2026-01-05T10:00:00Z", '
    '"datasets": ["layer.table"]}'
)


class EventRefused(PlatformError):
    """Raised when an event starts no run: malformed, too large, or of undeclared datasets."""


class TriggerEvent(BaseModel):
    """An event from outside. `id`, `source` and `time` have the meaning they have in CloudEvents."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    id: Annotated[str, Field(pattern=r"^[!-~]{1,200}$")]
    source: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
    time: AwareDatetime
    datasets: Annotated[tuple[str, ...], Field(min_length=1, max_length=100)]
    payload: str = ""
    """Reference to the data it announces, such as a path or an address; recorded, never opened."""

    @field_validator("payload")
    @classmethod
    def _is_reference(cls, payload: str) -> str:
        if not payload.isprintable() or len(payload.encode()) > _MOST_PAYLOAD_BYTES:
            raise ValueError(f"a reference is a line of at most {_MOST_PAYLOAD_BYTES} bytes")
        return payload

    @property
    def key(self) -> str:
        return f"{self.source}/{self.id}"


def parse(body: bytes, datasets: Collection[str]) -> TriggerEvent:
    if len(body) > MOST_BYTES:
        raise _refused(f"it has more than {MOST_BYTES} bytes", "put the data elsewhere, and refer to them by `payload`")
    try:
        event = TriggerEvent.model_validate_json(body)
    except ValidationError as error:
        errors = error.errors(include_url=False, include_context=False, include_input=False)
        problems = [f"{'.'.join(map(str, fault['loc'])) or 'the event'}: {fault['msg']}" for fault in errors[:5]]
        raise _refused(shown.line("; ".join(problems))[:500], _EXAMPLE) from error
    if unknown := sorted({*event.datasets} - {*datasets}):
        raise _refused(
            f"no dataset is called {', '.join(unknown)}",
            f"{similar(unknown, [*datasets])}choose from: {', '.join(datasets)}",
        )
    return event


def keep(event: TriggerEvent, landing: Path) -> None:
    """Keep an event until its run exists: when this returns, it is on the disk. The same event is one file."""
    folder = landing / FOLDER
    require_within([folder], landing)
    folder.mkdir(parents=True, exist_ok=True)
    name = hashlib.sha256(event.key.encode()).hexdigest()[:32]
    write_atomically(folder / f"{name}{SUFFIX}", event.model_dump_json().encode())
    # The file's name, too, is on the disk before its sender is answered.
    for entered in (folder, landing):
        sync(entered)


def waiting(landing: Path) -> dict[Path, float]:
    """List the files of waiting events, the oldest first, with the times they were written; links are none."""
    folder = landing / FOLDER
    require_within([folder, folder / REFUSED], landing)
    files: dict[Path, float] = {}
    if folder.is_dir():
        with os.scandir(folder) as entries:
            for entry in entries:
                if is_data(entry.name) and entry.name.endswith(SUFFIX) and entry.is_file(follow_symlinks=False):
                    # Its run may come into being meanwhile, and it is removed.
                    with suppress(FileNotFoundError):
                        files[Path(entry.path)] = entry.stat(follow_symlinks=False).st_mtime
    return dict(sorted(files.items(), key=itemgetter(1)))


def read(file: Path, datasets: Collection[str]) -> TriggerEvent:
    """Read a waiting event; an `OSError` may be over at the next attempt."""
    # No link or pipe that has taken its place since it was listed: a pipe would block for ever.
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as opened:
        return parse(opened.read(MOST_BYTES + 1), datasets)


def set_aside(file: Path, why: EventRefused) -> None:
    folder = file.parent / REFUSED
    folder.mkdir(exist_ok=True)
    (folder / f"{file.name}.reason").write_text(f"{why}\n", encoding="utf-8")
    file.replace(folder / file.name)


def _refused(what: str, next_step: str) -> EventRefused:
    return EventRefused(what=what, where="the event", next_step=next_step)
