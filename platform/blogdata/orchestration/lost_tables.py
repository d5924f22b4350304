"""Creates tables again that the lake lost, or has at an older version than their events tell.

Such a table has no publications (:meth:`blogdata.evidence.events.EventLog.gone`), so all of it is stale. Versions must
not come twice: readers compare those they have read, and the event log has each once. So the table begins again, empty,
with the version after the newest one that is recorded: its log begins with a checkpoint of an empty table.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from deltalake import DeltaTable

from blogdata.errors import PlatformError
from blogdata.errors.remedies import Remedy, Run
from blogdata.evidence.events import EventLog
from blogdata.lake import committer, members
from blogdata.lake.commit import WHOLE_TABLE
from blogdata.lake.lake import Lake
from blogdata.orchestration import turns
from blogdata.patterns.ingestion.full_loader import ACCEPT_SIZE
from blogdata.patterns.ingestion.readiness_marker import LandingZone
from blogdata.planning.graph import Task
from blogdata.planning.reach import landed_input
from blogdata.planning.staleness import Staleness
from blogdata.publish import tables
from blogdata.publish.contract import Contract

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class BeginsAnew(PlatformError):
    """Another process creates the table again."""

    transient = True


def require_inputs(events: EventLog, task: Task, planner: Staleness) -> None:
    """Refuse to create a lost table again if some of its partitions could not be computed again."""
    for name in task.datasets:
        if events.gone(name) < 0:
            continue
        kept = [key for key, entry in events.lost_lines(name).items() if entry.expired is None]
        if stuck := planner.expired(task, kept):
            raise PlatformError(
                what=f"the table is gone or older, and the input of {len(stuck)} of its partitions has expired",
                where=f"{name}, {min(stuck)}",
                next_step=Remedy("bring it back from a backup; or go on without these rows: ", Run(accept=ACCEPT_SIZE)),
            )


def begin_anew(
    spark: SparkSession,
    events: EventLog,
    contracts: Sequence[Contract],
    zone: LandingZone | None = None,
) -> None:
    """Create those tables of a task again, empty, that the lake lost; with a main table all that appear with it.

    Args:
        zone: Where the landed files have to be that a lost table was computed from; None: it does without some.
    """
    if all(events.gone(contract.dataset) < 0 for contract in contracts):
        return
    lake, (main, *others) = events.lake, contracts
    with turns.taken(lake, f"{main.dataset} begins anew", [WHOLE_TABLE]) as mine:
        if not mine:
            raise BeginsAnew(what="another run creates the table again", where=main.dataset, next_step="it is retried")
        events = EventLog(lake)
        lost = {contract.dataset for contract in contracts if events.gone(contract.dataset) >= 0}
        if zone is not None and main.dataset in lost:
            _require_landed(zone, events, main)
        # The main table last: if this process dies, the next one finds it lost, and creates the others once more.
        for contract in (*others, main):
            recorded = events.recorded(contract.dataset)
            if recorded < 0 or lost.isdisjoint((contract.dataset, main.dataset)):
                continue
            model = _model(spark, lake, contract)
            if contract is not main:
                at = events.recorded(main.dataset) + 1 if main.dataset in lost else lake.version(main.dataset)
                action = {"txn": {"appId": main.dataset, "version": at, "lastUpdated": committer.NEVER}}
                file = model / "_delta_log" / f"{DeltaTable(model).version() + 1:020}.json"
                file.write_text(json.dumps(action) + "\n", "utf-8")
            # First: if this process dies, the next one finds the table lost again.
            events.begin_anew(contract.dataset)
            replace_log(_folder(lake, contract.dataset), recorded + 1, model)


def _require_landed(zone: LandingZone, events: EventLog, contract: Contract) -> None:
    source = landed_input(contract)
    if source is None or contract.partitioning is None:
        return
    there = {partition.key for partition in zone.scan(source.table, source.grain)}
    lines = events.lost_lines(contract.dataset)
    gone = sorted(key for key, entry in lines.items() if entry.expired is None and key not in there)
    if gone:
        more = f" and {len(gone) - 1} more" if gone[1:] else ""
        raise PlatformError(
            what=f"the table is gone or older, and so are landed files that it was computed from: {gone[0]}{more}",
            where=contract.dataset,
            next_step=Remedy(
                "bring one of both back from a backup; or go on without these rows: ", Run(accept=ACCEPT_SIZE)
            ),
        )


def _folder(lake: Lake, table: str) -> Path:
    folder = lake.folder(table)
    if folder is None:
        raise PlatformError(
            what="the table is gone, or older than what its events tell was published",
            where=lake.path(table),
            next_step=Remedy("restore its objects in the store; or empty the whole lake, and run: ", Run()),
        )
    return folder


def _model(spark: SparkSession, lake: Lake, contract: Contract) -> Path:
    # Spark remembers the logs that it has seen, by their paths.
    model = f"{contract.dataset}/.model/{time.time_ns()}"
    folder = _folder(lake, model)
    shutil.rmtree(folder.parent, ignore_errors=True)
    if contract.replaced_kept is None:
        created = replace(contract, dataset=model)
        tables.create_or_evolve(spark, lake, created)
    else:
        members.commit(lake, model, members.NONE_YET, [], {})
    return folder


def replace_log(folder: Path, version: int, model: Path) -> None:
    """Let a table begin with a version that equals an empty table, which is used up.

    Nobody else may write the table meanwhile. A process that dies leaves the old log, none, or the new one.
    """
    log, new = folder / "_delta_log", model / "new"
    DeltaTable(model).create_checkpoint()
    made = model / "_delta_log"
    hint = json.loads((made / "_last_checkpoint").read_text("utf-8"))
    new.mkdir()
    (made / f"{hint['version']:020}.checkpoint.parquet").rename(new / f"{version:020}.checkpoint.parquet")
    (new / "_last_checkpoint").write_text(json.dumps({**hint, "version": version}), "utf-8")
    # Its commit: nobody else takes the version, and it has a time.
    begun = {"commitInfo": {"timestamp": int(time.time() * 1000), "operation": "CREATE TABLE"}}
    (new / f"{version:020}.json").write_text(json.dumps(begun) + "\n", "utf-8")
    if log.exists():
        log.rename(model / "older")
    new.rename(log)
    shutil.rmtree(model.parent)
