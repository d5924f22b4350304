"""One event of the log: its kinds, its columns, how it is made of a commit, and how ledger lines are read back."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from typing import Any

import msgspec
import pyarrow as pa

from blogdata.contract.publication import EXPIRED as EXPIRED_ROWS
from blogdata.contract.publication import Entry, added_of, entries_of, parse, parse_expiry

PUBLICATION = "publication"
EXPIRED = "expired"
"""Event kind: the rows of a partition left the table, because its retention has ended; the payload has their number."""
BEGUN_ANEW = "begun anew"
"""Event kind: a table that was gone or older than its events was created again: publications up to a version no longer
count, but for those of expired partitions."""

SCHEMA = pa.schema(
    [
        pa.field("event_id", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("recorded_at", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("dataset", pa.string(), nullable=False),
        pa.field("partition", pa.string()),
        pa.field("run_id", pa.string()),
        pa.field("code_version", pa.string()),
        pa.field("table_version", pa.int64()),
        pa.field("rows_in", pa.int64()),
        pa.field("rows_out", pa.int64()),
        pa.field("seconds", pa.float64()),
        pa.field("payload", pa.string()),
    ]
)


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that happened to a dataset; ``payload`` has the data of its kind, as plain JSON values."""

    kind: str
    dataset: str
    partition: str | None = None
    run_id: str | None = None
    code_version: str | None = None
    table_version: int | None = None
    rows_in: int | None = None
    rows_out: int | None = None
    seconds: float | None = None
    payload: dict[str, Any] | None = None
    identity: str | None = None


def table_of(events: Iterable[Event], recorded_at: datetime) -> pa.Table:
    rows = [
        {
            **vars(event),
            "event_id": event.identity or str(uuid.uuid4()),
            "recorded_at": recorded_at,
            "payload": None if event.payload is None else json.dumps(event.payload, default=str),
        }
        for event in events
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def events_of(dataset: str, version: int, commit: Mapping[str, Any]) -> list[Event]:
    """Derive the events of a commit from its `commitInfo`; none if it neither published rows nor took some away."""
    metadata = commit.get("userMetadata")
    if (info := parse_expiry(metadata)) is not None:
        expired = info[EXPIRED_ROWS].items()
        return [_event(EXPIRED, dataset, version, partition, info, {"rows": rows}) for partition, rows in expired]
    info = parse(metadata)
    if info is None or (info.get("executed") and not info.get("execution")):
        # For example a compaction: the table still consists of the same executions.
        return []
    committed_at = int(commit["timestamp"]) / 1000
    seconds = round(committed_at - float(info["started_at"]), 3)
    events = []
    for partition, entry in entries_of(dataset, version, info).items():
        payload = {
            **{name: getattr(entry, name) for name in _IN_PAYLOAD},
            "breakdowns": {
                name: [[*key, rows] for key, rows in counts.items()] for name, counts in entry.breakdowns.items()
            },
            "added": asdict(entry.added) if entry.added else None,
            "committed_at": datetime.fromtimestamp(committed_at, timezone.utc).isoformat(),
            "run": info["run"],
        }
        event = _event(PUBLICATION, dataset, version, partition, info, payload)
        events.append(replace(event, rows_in=entry.rows_in, rows_out=entry.rows_out, seconds=seconds))
    return events


def _event(
    kind: str, dataset: str, version: int, partition: str, info: Mapping[str, Any], payload: dict[str, Any]
) -> Event:
    return Event(
        kind=kind,
        identity=str(uuid.uuid5(uuid.NAMESPACE_URL, f"{dataset}@{version}/{partition}")),
        dataset=dataset,
        partition=partition,
        run_id=info["run"]["run_id"],
        code_version=info["run"]["code_version"],
        table_version=version,
        payload=payload,
    )


_IN_PAYLOAD = (
    *("reasons", "measures", "inputs", "landed", "restored", "appended", "makes_stale", "judged_by", "code_version"),
    "contract",
)
"""Fields of a ledger line that its event has in its payload as they are."""


def entry_of(row: dict[str, Any]) -> Entry:
    payload: dict[str, Any] = msgspec.json.decode(row["payload"])
    return Entry(
        **{name: row[name] for name in ("dataset", "partition", "rows_in", "rows_out", "run_id", "seconds")},
        **{name: payload[name] for name in _IN_PAYLOAD},
        version=row["table_version"],
        breakdowns={
            name: {tuple(cells[:-1]): cells[-1] for cells in rows} for name, rows in payload["breakdowns"].items()
        },
        added=added_of(payload["added"]),
        committed_at=datetime.fromisoformat(payload["committed_at"]),
    )


_APPENDED = '"appended": true'
"""Searched in the unparsed payload: for tables without appends only the newest line of a partition is parsed."""


def newest_lines(rows: Iterable[dict[str, Any]], gone: int = -1) -> dict[str, Entry]:
    """Fold the events of a dataset into a line a partition: its newest publication plus the appends after it."""
    newest: dict[str, dict[str, Any]] = {}
    appended: dict[str, list[Entry]] = {}
    expired: dict[str, dict[str, Any]] = {}
    for row in rows:
        partition = row["partition"]
        if row["kind"] == BEGUN_ANEW:
            gone = max(gone, row["table_version"])
        elif row["kind"] == EXPIRED:
            expired[partition] = max(expired.get(partition, row), row, key=lambda event: event["table_version"])
        elif row["payload"] and _APPENDED in row["payload"]:
            appended.setdefault(partition, []).append(entry_of(row))
        elif partition not in newest or newest[partition]["table_version"] <= row["table_version"]:
            newest[partition] = row
    # What has expired stays so: its readers would be computed again without its rows.
    counting = {key for key, row in newest.items() if row["table_version"] > gone or key in expired}
    lines = {key: entry_of(row) for key, row in newest.items() if key in counting}
    for partition, entries in appended.items():
        begins = max(gone, newest[partition]["table_version"] if partition in newest else -1)
        for entry in sorted(entries, key=lambda entry: entry.version):
            if entry.version > begins:
                lines[partition] = entry.after(lines[partition]) if partition in lines else entry
    for partition, row in expired.items():
        # What was published since has its rows.
        if partition in lines and lines[partition].version < row["table_version"]:
            lines[partition] = replace(lines[partition], expired=json.loads(row["payload"])["rows"])
    return {key: entry for key, entry in lines.items() if entry.version > gone or entry.expired is not None}
