"""Six weeks of days of which one month is kept: each week what is older expires, and only that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest

from blogdata.evidence import ledger
from blogdata.lake.lake import Lake
from blogdata.lake.unneeded import MARGIN, READABLE
from blogdata.operations.retention import Retention
from blogdata.orchestration.lake_resource import LakeResource
from blogdata.orchestration.maintenance import Upkeep, maintain
from blogdata.orchestration.upkeep import Vacuuming
from blogdata.patterns.ingestion import published_files
from blogdata.planning.expiry import PartitionExpired
from blogdata.planning.graph import Graph
from blogdata.planning.plan import Planner
from blogdata.planning.snapshot import Snapshot
from blogdata.publish.partitions import Grain, finer
from blogdata.publish.run import RunContext
from published import deployment, land, publish
from quality.contracts import CONTRACTS
from resources.spark import SparkResource
from tidied import whole

WEEKS = 6
KEPT = 30
BEGIN = datetime(2025, 1, 1, tzinfo=timezone.utc)
LINEAGE = Graph(contracts={name: replace(contract, retention_days=KEPT) for name, contract in CONTRACTS.items()})
RUN = RunContext(run_id="expires", job="", code_version="test")


def put(lake: Lake, dataset: str, rows: Mapping[str, int], **info: object) -> int:
    column = CONTRACTS[dataset].partition_column
    content = pa.table(
        {column: [key for key, count in rows.items() for _ in range(count)], "row": range(sum(rows.values()))}
    )
    return publish(lake, dataset, column, rows, content=content, **info)  # type: ignore[arg-type]


def test_of_days_on_days_a_month_is_kept(tmp_path: Path) -> None:
    days_in_all = 7 * WEEKS
    home = deployment(tmp_path / "blog")
    retention = Retention(events=home.events, zone=home.landing_zone, graph=LINEAGE, run=RUN)
    rows = {name: dict[str, int]() for name in ("bronze.visits", "silver.visits", "gold.page_stats")}
    left = dict.fromkeys(rows, 0)
    removed = 0
    for number in range(WEEKS):
        begin = BEGIN + timedelta(weeks=number)
        days = [(begin + timedelta(days=day)).date().isoformat() for day in range(7)]
        hours = {
            hour: 1 + (number + at) % 3
            for at, hour in enumerate(hour for day in days for hour in finer(day, Grain.DAY, Grain.HOUR))
        }
        for hour, count in hours.items():
            land(home, "visits", hour, {"visits.json": "a line\n" * count})
        there = home.landing_zone.scan("visits", Grain.HOUR, since=days[0])
        landed = {one.key: published_files.state_of(one) for one in there}
        breakdown = [[hour, hour, None, "json", count] for hour, count in hours.items()]
        measures = {hour: {"max_event_time": None, "dead": 0} for hour in hours}
        counted = {"event_hours": breakdown, "reasons": []}
        version = put(home.lake, "bronze.visits", hours, landed=landed, breakdowns=counted, measures=measures)
        put(home.lake, "silver.visits", hours, inputs={"bronze.visits": version})
        put(home.lake, "gold.page_stats", dict.fromkeys(days, 2))
        rows["bronze.visits"] |= hours
        rows["silver.visits"] |= hours
        rows["gold.page_stats"] |= dict.fromkeys(days, 2)
        found = retention.expire(begin + timedelta(weeks=1))
        removed += len(found.landed)
        for name, gone in found.rows_of.items():
            left[name] += sum(gone.values())
    first = (BEGIN + timedelta(days=days_in_all - KEPT)).date().isoformat()
    for name, published in rows.items():
        kept = {key: count for key, count in published.items() if key >= first}
        assert home.lake.row_counts(name, CONTRACTS[name].partition_column) == kept
        assert sum(published.values()) == sum(kept.values()) + left[name]
        table = home.lake.table(name)
        assert table is not None
        assert len(table.file_uris()) == len(kept)
        lines = ledger.audit(home.lake, home.events, CONTRACTS[name])
        assert [line.problem for line in lines if line.problem] == []
        assert sum(line.entry.reasons.get("expired", 0) for line in lines) == left[name]
        assert sum(line.entry.rows_in for line in lines) == sum(published.values())
    assert removed == 24 * (days_in_all - KEPT)
    assert len(home.landing_zone.scan("visits", Grain.HOUR)) == 24 * KEPT
    planner = Planner(graph=LINEAGE, look=Snapshot(home.landing_zone, home.events))
    assert planner.stale(LINEAGE.task_of("bronze.visits")) == {}
    with pytest.raises(PartitionExpired, match="2025-01-08T05 has expired"):
        planner.resolve_keys("silver.visits", "2025-01-08T05")
    assert retention.expire(BEGIN + timedelta(days=days_in_all)).rows_of == {}
    vacuumed(home)
    for name, published in rows.items():
        folder = Path(home.lake.path(name))
        assert len(list(folder.glob("*=*/*.parquet"))) == sum(key >= first for key in published)


def vacuumed(home: LakeResource) -> None:
    """Maintain the tables, weeks after what left them."""
    later = datetime.now(timezone.utc) + READABLE + 2 * MARGIN
    upkeep = Upkeep(lake=home.lake, events=home.events, run=RUN, now=later, spark=SparkResource().guard)
    whole(maintain(upkeep, [Vacuuming()], CONTRACTS.values()))
