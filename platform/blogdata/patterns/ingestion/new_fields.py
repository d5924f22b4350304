"""Finds and records fields of landed files that their producer never announced (Schema Compatibility Enforcer).

A new field breaks nothing, but somebody should know of it before it turns out to be personal. The beginning of a file
is read, in bounded time: a field that few lines have may be found later. The names come from outside, so their number
and length are bounded, and what cannot be printed is replaced. Each is an event, once, when it was first seen.
"""

from __future__ import annotations

import csv
import json
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
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
MOST_NAMES = 50
"""Names that are reported; those of most lines first."""
LONGEST = 64
NEW_FIELD = "new field"
MOST = 200
"""Fields of one dataset that are recorded; of more, only :data:`OTHERS`. Names come from outside."""
OTHERS = "…"


@dataclass(frozen=True, kw_only=True)
class Looked:
    lines: int
    names: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class NewField:
    dataset: str
    name: str
    partition: str
    lines: int
    looked_at: int
    seen_at: datetime


def seen(events: EventLog, dataset: str) -> list[NewField]:
    """List the fields of a dataset that were recorded, in the order in which they were first seen."""
    found: dict[str, NewField] = {}
    for event in events.notes(NEW_FIELD, dataset=dataset):
        payload = event.payload or {}
        at = datetime.fromisoformat(payload["seen_at"])
        field = NewField(**{**payload, "dataset": dataset, "partition": event.partition, "seen_at": at})
        # Two runs may have seen it at once.
        found.setdefault(field.name, field)
    return list(found.values())


def record(events: EventLog, found: Sequence[NewField], *, run_id: str) -> list[NewField]:
    if not found:
        return []
    known = {field.name for field in seen(events, found[0].dataset)}
    new = [field for field in found if field.name not in known]
    room = max(0, MOST - len(known))
    if len(new) > room:
        new = [*new[:room], *([] if OTHERS in known else [replace(new[room], name=OTHERS)])]
    events.append(
        [
            Event(
                kind=NEW_FIELD,
                identity=str(uuid.uuid5(uuid.NAMESPACE_URL, f"{field.dataset}#{field.name}")),
                dataset=field.dataset,
                partition=field.partition,
                run_id=run_id,
                payload={
                    "name": field.name,
                    "lines": field.lines,
                    "looked_at": field.looked_at,
                    "seen_at": field.seen_at.isoformat(),
                },
            )
            for field in new
        ]
    )
    return new


def look(files: Sequence[Path], root: Path, announced: Sequence[Field]) -> Looked:
    """Look for fields that were not announced in samples of files.

    Args:
        files: JSON Lines, or CSV with `;` and a header (`.csv`), plain or compressed; access logs are left out.
        announced: The fields that the producer has announced; the fields of an announced struct are looked at, too.
    """
    require_within(files, root)
    counted, lines = Counter[str](), 0
    with ThreadPoolExecutor(max_workers=4) as pool:
        for found in pool.map(lambda file: _in_file(file, announced), files):
            lines += found.lines
            counted.update(found.names)
    return Looked(lines=lines, names=dict(_bounded(counted)))


def _in_file(file: Path, announced: Sequence[Field]) -> Looked:
    kind = extension(file.name)
    if kind == "log":
        return Looked(lines=0, names={})
    with faults_of(file), content(file) as stream:
        head = [line for line in stream.read(HEAD).removeprefix(MARK).split(b"\n") if line][:LINES]
    if kind == "csv":
        return _in_header(head[:1], announced)
    counted, lines = Counter[str](), 0
    for line in head:
        # The last one may be cut off: then it is not JSON.
        parsed = _parsed(line)
        lines += isinstance(parsed, dict)
        # A path counts once a line, however often the line has it.
        counted.update(set(_unannounced(parsed, announced, "")))
    return Looked(lines=lines, names=dict(counted.most_common(10 * MOST_NAMES)))


def _parsed(line: bytes) -> Any:
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


def _in_header(first: Sequence[bytes], announced: Sequence[Field]) -> Looked:
    known = {field.name for field in announced}
    found = [name for line in first for name in _columns(line.decode("utf-8", "replace"))]
    names = {_printable(name) for name in found if name not in known}
    return Looked(lines=len(first), names=dict.fromkeys(names, 1))


def _columns(header: str) -> list[str]:
    try:
        return next(csv.reader([header], delimiter=";"), [])
    except csv.Error:
        # A return within the line, or a name of more than 128 KiB: such a name is none that was announced.
        return header.split(";")


def _printable(name: str) -> str:
    shown = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in name[: LONGEST + 1])
    return shown if len(shown) <= LONGEST else shown[: LONGEST - 1] + "…"


def _bounded(counted: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counted.items(), key=lambda item: (-item[1], item[0]))[:MOST_NAMES]
