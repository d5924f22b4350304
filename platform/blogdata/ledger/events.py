"""The one event log: what happened to the datasets, as rows of one Delta table (`ops.events`).

A publication is first a commit of its table, with everything about it in the commit's metadata; the event is a
projection of that commit. The next reader or writer adds the event of a commit whose process died before it. If several
find it at once, only one adds it, because the append has the dataset as its Delta transaction identifier.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from typing import Any

import msgspec
import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction

from blogdata.contract.publication import EXPIRED, Commit, Entry, added_of, entries_of, parse, parse_expiry
from blogdata.errors import ConfigurationError
from blogdata.table import arrow, companions
from blogdata.table.faults import TRIES, contended, typed_errors
from blogdata.table.lake import Lake
from blogdata.table.store import NewestLog

PUBLICATION = "publication"
BEGUN_ANEW = "begun anew"
"""Event kind: a table that was gone or older than its events was created again: publications up to a version no longer
count, but for those of expired partitions."""
EVENTS = "ops.events"
CHECKPOINT_EVERY = 10
"""Number of appends after which a checkpoint is made: each ledger read opens the log and replays commits since then."""
COMPACT_EVERY = 100
"""Number of appends after which the small files of the log are compacted."""
_OF_LINES = (PUBLICATION, EXPIRED, BEGUN_ANEW)
_READ = "kind dataset partition run_id table_version rows_in rows_out seconds payload".split()
SCHEMA = arrow.schema(
    "event_id STRING NOT NULL, kind STRING NOT NULL, recorded_at TIMESTAMP NOT NULL, dataset STRING NOT NULL, "
    "partition STRING, run_id STRING, code_version STRING, table_version BIGINT, rows_in BIGINT, rows_out BIGINT, "
    "seconds DOUBLE, payload STRING"
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
        expired = info[EXPIRED].items()
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
    if absent := sorted({*_IN_PAYLOAD, "breakdowns", "added", "committed_at"} - payload.keys()):
        raise ConfigurationError(
            what=f"an earlier version has published it, which this one does not read (without {absent[0]})",
            where=f"ops.events, {row['dataset']} {row['partition']}",
            next_step="begin a new home, and move the folder landing of this one there: all is computed from it",
        )
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


class EventLog:
    """Reads and appends `ops.events`, and adds missing events from the tables' own logs."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self._log = NewestLog(lake, EVENTS)
        self._tables: dict[str, NewestLog] = {}
        self._lines: dict[str, tuple[DeltaTable, int, list[str], dict[str, Entry]]] = {}
        """Lines of a dataset, with the files of the log and the version gone that they are of."""
        self._gone: dict[str, int] = {}
        self._files: tuple[DeltaTable | None, int, dict[str, dict[str, int]]] = (None, -1, {})

    def append(self, events: Sequence[Event]) -> None:
        if not events:
            return
        rows = table_of(events, datetime.now(timezone.utc))
        for _ in range(TRIES):
            if self._write(rows, self.lake.table(EVENTS)):
                return
        raise contended(EVENTS, "record events")

    def _write(self, rows: pa.Table, log: DeltaTable | None, *transactions: Transaction) -> bool:
        # With retries, delta-rs commits both of two writers that create the table at once, one after the other.
        once = CommitProperties(max_commit_retries=0 if log is None else None, app_transactions=list(transactions))
        if not self.lake.put(EVENTS, rows, log, commit=once, mode="append", partition_by=["dataset"]):
            return False
        # The write has moved the handle that it was given to its own commit.
        table = self.lake.table(EVENTS) if log is None else log
        if table is not None and table.version() % COMPACT_EVERY == COMPACT_EVERY - 1:
            self.lake.compact(EVENTS, table)
        if table is not None and table.version() % CHECKPOINT_EVERY == CHECKPOINT_EVERY - 1:
            table.create_checkpoint()
        return True

    def record(self, commit: Commit) -> None:
        """Record a publication, and earlier ones of the dataset whose process died before it."""
        self._catch_up(commit.dataset)

    def publications(
        self,
        dataset: str,
        partitions: Iterable[str] | None = None,
        *,
        since: str | None = None,
        until: str | None = None,
    ) -> dict[str, Entry]:
        """Return the ledger lines of some partitions of a dataset, of those from `since` and before `until`, or of all.

        A line is the newest publication plus the appends after it. A table that the lake lost has none (:meth:`gone`).
        """
        if partitions is None and since is None and until is None:
            return self._all_lines(dataset)
        log, keys = self._catch_up(dataset), None if partitions is None else sorted(set(partitions))
        if log is None or keys == []:
            return {}
        rows = _rows(log, dataset, _OF_LINES, since=keys[0] if keys else since, until=until)
        asked = None if keys is None else {*keys, None}
        return newest_lines((row for row in rows if asked is None or row["partition"] in asked), self._gone[dataset])

    def _all_lines(self, dataset: str) -> dict[str, Entry]:
        log = self._catch_up(dataset)
        if log is None:
            return {}
        gone, known = self._gone[dataset], self._lines.get(dataset)
        if known is None or known[0] is not log or known[1] != gone:
            # A file never changes: the same files have the same events, whatever was recorded of other datasets since.
            files = sorted(self._files_of(log, dataset))
            is_same = known is not None and known[1:3] == (gone, files)
            lines = known[3] if known and is_same else newest_lines(_rows(log, dataset, _OF_LINES), gone)
            known = self._lines[dataset] = log, gone, files, lines
        return dict(known[3])

    def ever_published(self, dataset: str) -> set[str]:
        log = self._catch_up(dataset)
        rows = [] if log is None else _rows(log, dataset, (PUBLICATION,), columns=("partition",))
        return {row["partition"] for row in rows}

    def begin_anew(self, dataset: str, version: int) -> None:
        """Invalidate the recorded publications of a dataset up to a version, but the expired ones."""
        self.append([Event(kind=BEGUN_ANEW, dataset=dataset, table_version=version)])

    def gone(self, dataset: str) -> int:
        """Return the newest recorded version of a table that the lake lost, at the last look; -1 if it has it."""
        if dataset not in self._gone:
            self._catch_up(dataset)
        return self._gone[dataset]

    def lost_lines(self, dataset: str) -> dict[str, Entry]:
        log = self._catch_up(dataset)
        return {} if log is None else newest_lines(_rows(log, dataset, _OF_LINES))

    def recorded(self, dataset: str) -> int:
        return self._recorded(self._log.table(), dataset)

    def history(self, dataset: str) -> list[Entry]:
        log = self._catch_up(dataset)
        if log is None:
            return []
        rows = _rows(log, dataset, (BEGUN_ANEW, PUBLICATION))
        gone = max([self._gone[dataset], *(row["table_version"] for row in rows if row["kind"] == BEGUN_ANEW)])
        counting = [row for row in rows if row["kind"] == PUBLICATION and row["table_version"] > gone]
        return [entry_of(row) for row in sorted(counting, key=lambda row: int(row["table_version"]))]

    def notes(self, *kinds: str, dataset: str | None = None) -> list[Event]:
        """List all events of some kinds other than publications, oldest first; of one dataset, if it is named."""
        table = self._log.table()
        if table is None:
            return []
        names = ("kind", "dataset", "partition", "run_id")
        rows = _rows(table, dataset, kinds, columns=(*names, "payload", "event_id", "recorded_at"))
        notes = []
        for row in sorted(rows, key=lambda row: row["recorded_at"]):
            payload = None if row["payload"] is None else json.loads(row["payload"])
            notes.append(Event(**{name: row[name] for name in names}, payload=payload, identity=row["event_id"]))
        return notes

    def outermost(self) -> set[str]:
        """Return keys of published partitions, among them the oldest and the newest of each dataset."""
        log = self._log.table()
        if log is None:
            return set()
        files = pa.table(log.get_add_actions(flatten=True))
        ends = [name for name in ("min.partition", "max.partition") if name in files.column_names]
        return {key for name in ends for key in files[name].to_pylist() if key}

    def _catch_up(self, dataset: str) -> DeltaTable | None:
        """Add the missing events of a dataset's commits, and return the log."""
        for _ in range(TRIES):
            table, log = self._table(dataset), self._log.table()
            recorded = self._recorded(log, dataset)
            if recorded > _version(table):
                # Another process may have committed and recorded that since the table was looked at.
                table = self._table(dataset)
            self._gone[dataset] = recorded if recorded > _version(table) else -1
            if table is None or recorded >= table.version():
                return log
            log = self.lake.table(EVENTS)
            events = self._project(dataset, table, self._recorded(log, dataset))
            if not events:
                return log
            # If two processes add events of one dataset to the same log version, Delta refuses the second.
            rows = table_of(events, datetime.now(timezone.utc))
            if self._write(rows, log, Transaction(dataset, table.version())):
                return self._log.table()
        raise contended(EVENTS, f"record publications of {dataset}")

    def _recorded(self, log: DeltaTable | None, dataset: str) -> int:
        return max(self._files_of(log, dataset).values(), default=-1)

    def _files_of(self, log: DeltaTable | None, dataset: str) -> Mapping[str, int]:
        """Map the files with the events of a dataset to the newest table version in them; -1 if they have none."""
        if log is None:
            return {}
        if self._files[0] is not log or self._files[1] != log.version():
            with typed_errors(EVENTS):
                actions = log.get_add_actions(flatten=True)
            # From the file statistics in the log: only events derived from commits have a table version.
            newest = "max.table_version" if "max.table_version" in actions.column_names else "partition.dataset"
            files: dict[str, dict[str, int]] = {}
            for path, of, version in map(dict.values, arrow.rows_of(actions, ("path", "partition.dataset", newest))):
                files.setdefault(of, {})[path] = version if isinstance(version, int) else -1
            self._files = log, log.version(), files
        return self._files[2].get(dataset, {})

    def _table(self, dataset: str) -> DeltaTable | None:
        table = self._tables.setdefault(dataset, NewestLog(self.lake, dataset)).table()
        # A companion has no new commit of its own until it follows its main table.
        return table if table is None or companions.main_of(table) is None else self.lake.caught_up(dataset)

    def _project(self, dataset: str, table: DeltaTable, after: int) -> list[Event]:
        commits = self.lake.commits(table, after)
        return [event for version, commit in commits for event in events_of(dataset, version, commit)]


def _version(table: DeltaTable | None) -> int:
    return -1 if table is None else table.version()


def _of(dataset: str) -> str:
    return f"dataset = {arrow.text(dataset)}"


def _rows(
    log: DeltaTable,
    dataset: str | None,
    kinds: Sequence[str],
    *,
    since: str | None = None,
    until: str | None = None,
    columns: Sequence[str] = _READ,
) -> list[dict[str, Any]]:
    wanted = [f"kind IN ({', '.join(map(arrow.text, kinds))})"]
    if dataset is not None:
        wanted.append(_of(dataset))
    # What is about all of the dataset has no partition.
    if since is not None:
        wanted.append(f"(partition >= {arrow.text(since)} OR partition IS NULL)")
    if until is not None:
        wanted.append(f"(partition < {arrow.text(until)} OR partition IS NULL)")
    with typed_errors(EVENTS):
        return arrow.select(log, f"SELECT {', '.join(columns)} FROM t WHERE {' AND '.join(wanted)}")


def appended(lake: Lake, dataset: str) -> Iterator[Commit]:
    return (commit for commit in lake.published(dataset) if "appended" in commit.info)
