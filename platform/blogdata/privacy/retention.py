"""The job `retention`: what is older than its contract keeps it leaves the tables and the landing zone.

Each table changes in one commit, so a kill leaves every table as it was or as it is to be; the next call does the rest.
A partition that a run is computing is left to the next call, too. Landed files are removed last, once what was
published of them has expired; their folder gets a hidden name before, so that nobody reads half of it. What a removal
that was cut off has left, the next one finishes.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from itertools import chain
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import Field

from assets.code import code
from assets.stream_inputs import streamed_inputs
from blogdata.deliver import lake_views
from blogdata.landing.readiness_marker import LandedPartition, LandingZone
from blogdata.ledger.events import EventLog
from blogdata.planning import clock, expired
from blogdata.planning.graph import Graph, Task
from blogdata.planning.reach import landed_input
from blogdata.planning.snapshot import Snapshot, StreamedInput
from blogdata.runs import turns
from blogdata.runs.computation import run_context
from blogdata.runs.job import operation
from blogdata.runs.lake_resource import LakeResource
from blogdata.runs.names import table
from blogdata.table import expiry, refused
from blogdata.table.lake import Lake
from blogdata.table.target import RunContext
from quality.contracts import EVERY, GRAPH

_PREFIX = ".expired-"


def remove(partition: LandedPartition) -> None:
    _remove(partition.folder.rename(partition.folder.with_name(_PREFIX + partition.folder.name)))


def _remove(hidden: Path) -> None:
    """Remove the hidden folder of a landed partition, and that of its day if nothing else is in it."""
    shutil.rmtree(hidden)
    with suppress(OSError):
        if hidden.parent.name.startswith("date="):
            hidden.parent.rmdir()


Expired = tuple[Mapping[str, Mapping[str, int]], Sequence[LandedPartition]]
"""What left, or is to leave: dataset to partition to its rows, readers before what they read; and landed files."""


@dataclass(frozen=True, kw_only=True)
class Retention:
    events: EventLog
    zone: LandingZone
    graph: Graph
    streams: Sequence[StreamedInput] = ()
    run: RunContext

    @property
    def look(self) -> Snapshot:
        return Snapshot(self.zone, self.events)

    def expire(self, now: datetime, *, only_plan: bool = False) -> Expired:
        """Take the partitions whose retention has ended out of their tables, then remove their landed files."""
        lake, look = self.events.lake, self.look
        tasks = [(task, expired.over(look, self.graph, task, now)) for task in reversed(self.graph.tasks)]
        over = [(task, keys) for task, keys in tasks if keys]
        if only_plan:
            planned = {task.main: expiry.rows_of(lake, task.main, _column(task), keys) for task, keys in over}
            return planned, expired.landed_over(look, self.graph, self.streams)
        left = {task.main: rows for task, keys in over if (rows := self._leave(task, keys, now))}
        # Read again: the tables have changed.
        landed = expired.landed_over(self.look, self.graph, self.streams)
        sources = {source.table for entry in self.graph.contracts.values() if (source := landed_input(entry))}
        left_over = [self.zone.folder.glob(f"{table}/{at}{_PREFIX}*") for table in sources for at in ("", "date=*/")]
        for hidden in sorted(chain(*left_over)):
            _remove(hidden)
        for partition in landed:
            remove(partition)
        return left, landed

    def _leave(self, task: Task, over: Sequence[str], now: datetime) -> Mapping[str, int]:
        lake = self.events.lake
        with turns.taken(lake, task.main, over) as claimed:
            # Read again: another removal that has ended meanwhile would be counted as one of no rows.
            still = set(expired.over(self.look, self.graph, task, now)) if claimed else set()
            if not (keys := [key for key in claimed if key in still]):
                return {}
            run = asdict(self.run)
            rows = expiry.leave(lake, task.main, _column(task), keys, run=run, companions=task.datasets[1:])
        for dataset in task.datasets:
            # Otherwise the next reader records it.
            self.events.publications(dataset, keys)
        return rows


def _column(task: Task) -> str:
    column = task.contracts[0].partition_column
    assert column is not None, f"{task.main} has no partitions"
    return column


KEPT = {name: contract.replaced_kept for name, contract in EVERY.items() if contract.replaced_kept is not None}
"""Datasets stored in several tables, and how long a table is kept after it was last visible."""


class RetentionConfig(dg.Config):
    only_plan: bool = Field(False, description="Only show which partitions have expired, and remove nothing")


def enforce(context: dg.OpExecutionContext, config: RetentionConfig) -> Mapping[str, Any]:
    """Expire partitions by the days of the contracts, and remove copies and refused batches whose time is over."""
    access: LakeResource = context.resources.lake
    retention = Retention(
        events=access.events,
        zone=access.landing_zone,
        graph=GRAPH,
        streams=streamed_inputs(access.checkpoints_path),
        run=run_context(context, code().version),
    )
    rows_of, landed = retention.expire(clock.now(), only_plan=config.only_plan)
    rows = [
        {"dataset": name, "partitions": len(of), "rows": sum(of.values()), "first": min(of), "last": max(of)}
        for name, of in rows_of.items()
    ]
    result = {
        "removed": not config.only_plan,
        "rows_expired": sum(sum(of.values()) for of in rows_of.values()),
        "landed_partitions_removed": len(landed),
        **table("partitions", rows),
    }
    if config.only_plan:
        return result
    batches = refused.expire(access.lake, now=datetime.now(timezone.utc))
    return {**result, **copies(access.lake), "refused_batches_expired": len(batches)}


def copies(lake: Lake) -> Mapping[str, Any]:
    """Remove the copies and replaced tables whose time is over; never what is visible."""
    # Views first, so that none refers to a removed table.
    lake_views.write(lake, list(EVERY.values()))
    sizes = [size for name, keep in KEPT.items() for size in expiry.remove(lake, name, keep=keep).values()]
    return {"copies_removed": len(sizes), "bytes_of_copies": sum(sizes)}


job = operation(
    "retention",
    RetentionConfig,
    enforce,
    description="Remove what is older than its contract keeps it: rows with their landed files, copies and replaced "
    "tables, refused batches",
)
