"""Finds and records fields of landed files that their producer never announced (Schema Compatibility Enforcer).

A new field breaks nothing, but somebody should know of it before it turns out to be personal. The beginning of a file
is read, in bounded time: a field that few lines have may be found later. The names come from outside, so their number
and length are bounded, and what cannot be printed is replaced. Each is an event, once, when it was first seen.
"""

from __future__ import annotations

import csv
import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from blogdata.evidence.event import Event
from blogdata.evidence.events import EventLog
from blogdata.landing.landed_formats import MARK, content, extension
from blogdata.landing.landed_links import require_within
from blogdata.landing.lines import faults_of
from blogdata.publish.column_types import DataType, Field, Struct

HEAD = 256 << 10
LINES = 400
LONGEST = 64
NEW_FIELD = "new field"
MOST = 200
"""Fields of one dataset that are recorded; of more, only :data:`OTHERS`. Names come from outside."""
OTHERS = "…"


def seen(events: EventLog, dataset: str) -> dict[str, str]:
    """Map the recorded fields of a dataset, the first seen first, to the partition that had them first."""
    found: dict[str, str] = {}
    for event in events.notes(NEW_FIELD, dataset=dataset):
        # Two runs may have seen it at once.
        found.setdefault((event.payload or {})["name"], event.partition or "")
    return found


def record(events: EventLog, dataset: str, found: Mapping[str, str], *, run_id: str) -> None:
    """Record fields, each with its partition, unless they were before."""
    known = seen(events, dataset) if found else {}
    new = {name: partition for name, partition in found.items() if name not in known}
    room = max(0, MOST - len(known))
    if len(new) > room:
        kept, (_, further) = list(new.items())[:room], list(new.items())[room]
        new = {**dict(kept), **({} if OTHERS in known else {OTHERS: further})}
    events.append(
        [
            Event(
                kind=NEW_FIELD,
                identity=str(uuid.uuid5(uuid.NAMESPACE_URL, f"{dataset}#{name}")),
                dataset=dataset,
                partition=partition,
                run_id=run_id,
                payload={"name": name},
            )
            for name, partition in new.items()
        ]
    )


def look(files: Sequence[Path], root: Path, announced: Sequence[Field]) -> list[str]:
    """Look for fields that were not announced in the beginnings of files.

    Args:
        files: JSON Lines, or CSV with `;` and a header (`.csv`), plain or compressed; access logs are left out.
        announced: The fields that the producer has announced; the fields of an announced struct are looked at, too.
    """
    require_within(files, root)
    return sorted({name for file in files for name in _in_file(file, announced)})


def _in_file(file: Path, announced: Sequence[Field]) -> Iterator[str]:
    """Give the unannounced fields of the lines at the beginning of a file; of CSV those of the header."""
    kind = extension(file.name)
    if kind == "log":
        return
    with faults_of(file), content(file) as stream:
        head = [line for line in stream.read(HEAD).removeprefix(MARK).split(b"\n") if line][:LINES]
    if kind == "csv":
        known = {field.name for field in announced}
        columns = [name for line in head[:1] for name in _columns(line.decode("utf-8", "replace"))]
        yield from (_printable(name) for name in columns if name not in known)
        return
    for line in head:
        yield from _unannounced(_parsed(line), announced, "")


def _parsed(line: bytes) -> Any:
    # The last one may be cut off: then it is not JSON.
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _unannounced(value: Any, announced: Sequence[Field], prefix: str) -> Iterator[str]:
    if not isinstance(value, dict):
        return
    known: dict[str, DataType] = {field.name: field.type for field in announced}
    for name, inner in value.items():
        kind = known.get(name)
        if kind is None:
            yield _printable(f"{prefix}{name}")
        elif isinstance(kind, Struct):
            yield from _unannounced(inner, kind.fields, f"{prefix}{name}.")


def _columns(header: str) -> list[str]:
    try:
        return next(csv.reader([header], delimiter=";"), [])
    except csv.Error:
        # A return within the line, or a name of more than 128 KiB: such a name is none that was announced.
        return header.split(";")


def _printable(name: str) -> str:
    shown = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in name[: LONGEST + 1])
    return shown if len(shown) <= LONGEST else shown[: LONGEST - 1] + "…"
