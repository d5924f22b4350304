"""Enforces the retention of the contracts: partitions that are older leave their tables, and are counted as expired.

Each table changes in one commit, so a kill leaves every table as it was or as it is to be; the next call does the rest.
A partition that a run holds is left to the next call, too: it is just being computed. Landed files are removed last,
once what was published of them has expired.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime

from blogdata.evidence.events import EventLog
from blogdata.lake import expiry as lake_expiry
from blogdata.orchestration import owners, turns
from blogdata.patterns.ingestion import expired_files
from blogdata.patterns.ingestion.landed_partition import LandedPartition
from blogdata.patterns.ingestion.readiness_marker import LandingZone
from blogdata.planning import expired_landings, expiry
from blogdata.planning.graph import Graph, Task
from blogdata.planning.observed import StreamedInput
from blogdata.planning.reach import landed_input
from blogdata.planning.snapshot import Snapshot
from blogdata.publish.run import RunContext


@dataclass(frozen=True, kw_only=True)
class Expired:
    """What left, or is to leave.

    Args:
        rows_of: Dataset to partition to its rows; readers come before what they read. Companions lose the same
            partitions as their main datasets.
    """

    rows_of: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    landed: Sequence[LandedPartition] = ()


@dataclass(frozen=True, kw_only=True)
class Retention:
    """Enforces the retention of a deployment's contracts.

    Args:
        graph: The lineage; its contracts tell how long partitions are kept.
    """

    events: EventLog
    zone: LandingZone
    graph: Graph
    streams: Sequence[StreamedInput] = ()
    run: RunContext

    def look(self, now: datetime) -> Expired:
        """List what :meth:`expire` would take out, without changing anything."""
        look = Snapshot(self.zone, self.events)
        over = {task.main: (task, expiry.over(look, self.graph, task, now)) for task in reversed(self.graph.tasks)}
        lake = self.events.lake
        rows = {
            name: lake_expiry.rows_of(lake, name, str(task.contracts[0].partition_column), keys)
            for name, (task, keys) in over.items()
            if keys
        }
        return Expired(rows_of=rows, landed=expired_landings.landed_over(look, self.graph, self.streams))

    def expire(self, now: datetime) -> Expired:
        """Take the partitions whose retention has ended out of their tables, then remove their landed files.

        Returns:
            What left; without partitions that a run is computing.

        Raises:
            ConfigurationError: A companion is to be kept for another time than its main dataset.
            ExpiryContended: Other processes changed a table first at every try; transient.
        """
        look = Snapshot(self.zone, self.events)
        left = {
            task.main: self._leave(task, keys, now)
            for task in reversed(self.graph.tasks)
            if (keys := expiry.over(look, self.graph, task, now))
        }
        # Read again: the tables have changed.
        landed = expired_landings.landed_over(Snapshot(self.zone, self.events), self.graph, self.streams)
        for table in sorted({source.table for one in self.graph.contracts.values() if (source := landed_input(one))}):
            expired_files.finish(self.zone.folder / table)
        for partition in landed:
            expired_files.remove(partition)
        return Expired(rows_of={name: rows for name, rows in left.items() if rows}, landed=landed)

    def _leave(self, task: Task, over: Sequence[str], now: datetime) -> Mapping[str, int]:
        column = task.contracts[0].partition_column
        assert column is not None, f"{task.main} has no partitions"
        claims, owner = turns.claims(self.events.lake, task.main), owners.this_run()
        claimed = claims.take(over, owner)
        try:
            # Read again: another removal that has ended meanwhile would be counted as one of no rows.
            still = set(expiry.over(Snapshot(self.zone, self.events), self.graph, task, now)) if claimed else set()
            keys = [key for key in claimed if key in still]
            if not keys:
                return {}
            rows = lake_expiry.leave(
                self.events.lake, task.main, column, keys, run=asdict(self.run), companions=task.datasets[1:]
            )
        finally:
            claims.release(claimed, owner)
        for dataset in task.datasets:
            # Otherwise the next reader records it.
            self.events.publications(dataset, keys)
        return rows
