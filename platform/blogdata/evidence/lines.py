"""The ledger line of each partition, folded from the events of the log that are about it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from blogdata.evidence.event import BEGUN_ANEW, COMPARED, EXPIRED, entry_of
from blogdata.lake.commit import Entry

_APPENDED = '"appended": true'
"""Searched in the unparsed payload: for tables without appends only the newest line of a partition is parsed."""


def newest_lines(rows: Iterable[dict[str, Any]], gone: int = -1) -> dict[str, Entry]:
    """Fold the events of a dataset into the ledger line of each partition.

    Returns:
        Partition key to its newest publication plus the appends after it.
    """
    newest: dict[str, dict[str, Any]] = {}
    appended: dict[str, list[Entry]] = {}
    compared: dict[tuple[str, int], dict[str, Any]] = {}
    expired: dict[str, dict[str, Any]] = {}
    for row in rows:
        partition = row["partition"]
        if row["kind"] == COMPARED:
            version = (partition, row["table_version"])
            compared[version] = max(compared.get(version, row), row, key=lambda each: each["recorded_at"])
        elif row["kind"] == BEGUN_ANEW:
            gone = max(gone, row["table_version"])
        elif row["kind"] == EXPIRED:
            expired[partition] = max(expired.get(partition, row), row, key=lambda each: each["table_version"])
        elif row["payload"] and _APPENDED in row["payload"]:
            appended.setdefault(partition, []).append(entry_of(row))
        elif partition not in newest or newest[partition]["table_version"] <= row["table_version"]:
            newest[partition] = row
    # What has expired stays so: its readers would be computed again without its rows.
    counting = {key for key, row in newest.items() if row["table_version"] > gone or key in expired}
    lines = {key: entry_of(row) for key, row in newest.items() if key in counting}
    for (partition, number), row in compared.items():
        if partition in lines and lines[partition].version == number:
            lines[partition] = replace(lines[partition], landed=json.loads(row["payload"])["landed"])
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
