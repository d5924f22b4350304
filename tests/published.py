"""Publications without Spark: real Delta commits with the metadata that the platform's commits carry."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, write_deltalake

from blogdata.contract.publication import WHOLE_TABLE, Account
from blogdata.files import write_whole
from blogdata.ledger.events import EventLog
from blogdata.patterns.error_management.checkpointer import Checkpoint
from blogdata.planning.graph import Graph
from blogdata.planning.plan import Planner
from blogdata.planning.snapshot import Snapshot
from blogdata.planning.staleness import Scope
from blogdata.runs.lake_resource import LakeResource
from blogdata.table.lake import Lake
from quality.contracts import GRAPH


def deployment(home: Path) -> LakeResource:
    """Return the lake resource of a deployment, which is empty if it is new."""
    (home / "landing").mkdir(parents=True, exist_ok=True)
    (home / "lake").mkdir(exist_ok=True)
    return LakeResource(root=str(home / "lake"), landing=str(home / "landing"))


def land(lake: LakeResource, table: str, key: str, files: Mapping[str, str], *, flag: bool = True) -> Path:
    """Put files into a partition of the landing zone, then write its flag."""
    folder = lake.landing_path / table / f"date={key[:10]}"
    if len(key) > 10:
        folder /= f"hour={key[11:]}"
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write_whole(folder / name, content.encode())
    if flag:
        write_whole(folder / "_SUCCESS", b"")
    return folder


def read_by_stream(checkpoint: Checkpoint, *files: Path, planned: int, committed: int) -> None:
    """Add a batch for each file to the checkpoint, as Spark does; plan and commit the first ones."""
    root = Path(checkpoint.location)
    for folder in ("sources/0", "offsets", "commits"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for number, file in enumerate(files):
        entry = json.dumps({"path": f"file://{file}", "timestamp": 0, "batchId": number})
        (root / "sources" / "0" / str(number)).write_text(f"v1\n{entry}")
    for number in range(planned):
        (root / "offsets" / str(number)).write_text(f'v1\n{{"batchTimestampMs":0}}\n{{"logOffset":{number}}}')
    for number in range(committed):
        (root / "commits" / str(number)).write_text("v1\n{}")
    (root / "metadata").write_text('{"id":"0a1b2c3d-0000-0000-0000-000000000000"}')


def planner(lake: Lake, graph: Graph = GRAPH, scope: Scope = Scope.ALL) -> Planner:
    """Plan a deployment, whose landing zone is beside its lake."""
    look = Snapshot(Path(lake.root).parent / "landing", EventLog(lake))
    return Planner(graph=graph, look=look, scope=scope)


def stale(lake: Lake, dataset: str, scope: Scope = Scope.ALL) -> list[str]:
    return list(planner(lake, scope=scope).stale(GRAPH.task_of(dataset)))


def bronze(
    lake: Lake,
    arrivals: Mapping[str, Mapping[str, int]],
    *,
    landed: Mapping[str, str] | None = None,
    dead: Mapping[str, int] | None = None,
    reasons: Sequence[Any] = (),
    line_format: str = "json",
    at: datetime | None = None,
) -> int:
    """Publish hours of bronze.visits; maps hour of arrival to rows by event hour and to the number of dead letters.

    `reasons` lists hour, reason and count of dead letters; `line_format` is the format of the other lines.
    """
    letters = dead or {}
    rows = {arrival: sum(hours.values()) + letters.get(arrival, 0) for arrival, hours in arrivals.items()}
    counts = [(arrival, hour, count) for arrival, hours in arrivals.items() for hour, count in hours.items()]
    breakdown = [[arrival, hour, None, line_format, count] for arrival, hour, count in counts]
    breakdowns = {"event_hours": breakdown, "reasons": reasons}
    measures = {arrival: {"max_event_time": None, "dead": letters.get(arrival, 0)} for arrival in arrivals}
    more: dict[str, Any] = {"breakdowns": breakdowns, "landed": landed, "measures": measures, "at": at}
    return publish(lake, "bronze.visits", "arrival_hour", rows, **more)


def silver(
    lake: Lake,
    hours: Mapping[str, int],
    *,
    read: int,
    makes_stale: Mapping[str, Sequence[str]] | None = None,
    at: datetime | None = None,
) -> int:
    """Publish hours of silver.visits and of its companions, computed from one version of bronze."""
    accounts = {
        hour: asdict(Account(rows_in=hours[hour], makes_stale=others)) for hour, others in (makes_stale or {}).items()
    }
    inputs = {"bronze.visits": read}
    version = publish(lake, "silver.visits", "event_hour", hours, inputs=inputs, accounts=accounts, at=at)
    nothing = dict.fromkeys(hours, 0)
    publish(lake, "silver.visit_conflicts", "event_hour", nothing, inputs={"silver.visits": version}, at=at)
    return version


def days(lake: Lake, *keys: str, dead: int = 0, changes: int = 0) -> int:
    """Publish deliveries of bronze.users, one row and some dead letters each; return the table's version."""
    measures = {key: {"dead": dead, "changes": changes} for key in keys}
    return publish(lake, "bronze.users", "load_date", dict.fromkeys(keys, 1), measures=measures)


def devices(lake: Lake, day: str, *, dead: int = 0) -> int:
    """Publish a delivery of bronze.devices, one row and some dead letters; return the table's version."""
    measures = {WHOLE_TABLE: {"dead": dead, "load_date": day}}
    return publish(lake, "bronze.devices", None, {WHOLE_TABLE: 1}, measures=measures)


def whole(lake: Lake, dataset: str, *, inputs: Mapping[str, int]) -> int:
    """Publish a table that is always written whole, with one row; return its version."""
    return publish(lake, dataset, None, {WHOLE_TABLE: 1}, inputs=inputs)


def enriched(
    lake: Lake, hours: Sequence[str], *, read: int, of: str = "silver.users", at: datetime | None = None
) -> int:
    """Publish hours of silver.visits_enriched, computed from one version of the users or of another input."""
    return publish(lake, "silver.visits_enriched", "event_hour", dict.fromkeys(hours, 1), inputs={of: read}, at=at)


def another_version(lake: Lake, dataset: str) -> int:
    """Commit a version that publishes nothing, as a compaction does; return it."""
    table = lake.caught_up(dataset)
    assert table is not None
    table.alter.set_table_properties({"delta.appendOnly": "false"})
    return table.version()


def publish(
    lake: Lake,
    dataset: str,
    column: str | None,
    rows: Mapping[str, int],
    *,
    inputs: Mapping[str, int] | None = None,
    breakdowns: Mapping[str, Sequence[Any]] | None = None,
    landed: Mapping[str, str] | None = None,
    measures: Mapping[str, Mapping[str, Any]] | None = None,
    accounts: Mapping[str, Mapping[str, Any]] | None = None,
    seconds: float = 1.0,
    content: pa.Table | None = None,
    appended: Mapping[str, Any] | None = None,
    at: datetime | None = None,
) -> int:
    """Publish some partitions; returns the table's version."""
    own = measures or {}
    info = {
        "commit_id": str(uuid.uuid4()),
        "started_at": (time.time() if at is None else at.timestamp()) - seconds,
        "partition_column": column,
        "measures": {key: {"rows": count, "accounted": count, **own.get(key, {})} for key, count in rows.items()},
        "accounts": accounts or {},
        "reasons": [],
        "own_measures": sorted({name for found in own.values() for name in found}),
        "breakdowns": breakdowns or {},
        "inputs": inputs or {},
        "landed": landed or {},
        "column_lineage": {},
        "run": {"run_id": str(uuid.uuid4()), "code_version": "test"},
        **({} if appended is None else {"appended": appended}),
    }
    columns = {column or "key": pa.array(list(rows), pa.string()), "rows": pa.array(list(rows.values()), pa.int64())}
    write_deltalake(
        lake.path(dataset),
        pa.table(columns) if content is None else content,
        mode="append",
        partition_by=[column] if column else None,
        commit_properties=CommitProperties(custom_metadata={"userMetadata": json.dumps(info)}),
    )
    version = lake.version(dataset)
    assert version is not None
    if at is not None:
        _dated(Path(lake.path(dataset)) / "_delta_log" / f"{version:020d}.json", at)
    return version


def _dated(commit: Path, at: datetime) -> None:
    actions = [json.loads(line) for line in commit.read_text(encoding="utf-8").splitlines()]
    for action in actions:
        if "commitInfo" in action:
            action["commitInfo"]["timestamp"] = int(at.timestamp() * 1000)
    commit.write_text("".join(f"{json.dumps(action)}\n" for action in actions), encoding="utf-8")
