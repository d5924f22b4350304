"""Dataset Materializer: a table shows what its view shows, and says how far behind its input it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

from assets.gold import returning_visitors
from assets.gold.returning_visitors import AUDIENCE
from blogdata.lake.commit import Account, Commit
from blogdata.orchestration.lake_resource import LakeResource
from blogdata.orchestration.step import Step
from blogdata.patterns.idempotency.data_overwrite import overwrite_partitions
from blogdata.patterns.storage import dataset_materializer
from blogdata.planning.snapshot import Snapshot
from blogdata.planning.staleness import Staleness
from blogdata.publish.target import Provenance, RunContext, Target
from quality.contracts import CONTRACTS, GRAPH
from quality.contracts.audience import ALL, AUDIENCE_DIMENSIONS, LG_K

DATASET = "gold.returning_visitors"
WEEKS = tuple(f"2026-01-{day:02}" for day in (5, 12, 19, 26))
COLUMNS = [column.name for column in CONTRACTS[DATASET].columns]


@dataclass
class Blog:
    """Sketches of the visitors of some hours, as gold.audience_hourly has them, and the table that is made of them."""

    spark: Any
    access: LakeResource
    visitors: dict[str, set[str]] = field(default_factory=dict)
    runs: int = 0

    @classmethod
    def of(cls, spark: Any, root: Path) -> Blog:
        return cls(spark, LakeResource(root=str(root), landing=str(root / "landing")))

    def come(self, visitors: dict[str, Iterable[str]]) -> None:
        """Publish some hours with these visitors; one without any has no rows."""
        self.visitors.update({hour: set(names) for hour, names in visitors.items()})
        rows = [(hour, name) for hour in visitors for name in sorted(self.visitors[hour])]
        frame = self.spark.createDataFrame(rows, "event_hour STRING, user STRING")
        dimensions = F.explode(F.array(*map(F.lit, AUDIENCE_DIMENSIONS))).alias("dimension")
        sketch = F.hll_sketch_agg("user", LG_K).alias("visitors")
        groups = frame.select("*", dimensions).groupBy("event_hour", "dimension")
        hours = groups.agg(F.lit(ALL).alias("value"), F.count("user").alias("events"), sketch)
        accounts = {hour: Account(rows_in=len(self.visitors[hour]) * len(AUDIENCE_DIMENSIONS)) for hour in visitors}
        overwrite_partitions(hours, self.target(), sorted(visitors), Provenance(accounts=accounts))

    def target(self) -> Target:
        return Target(lake=self.access.lake, contract=CONTRACTS[AUDIENCE], run=self.run())

    def run(self) -> RunContext:
        self.runs += 1
        return RunContext(run_id=f"run-{self.runs}", job="tests", code_version="v1")

    def refresh(self) -> Commit:
        step: Any = Step(
            contract=CONTRACTS[DATASET],
            partitions=(),
            spark=self.spark,
            access=self.access,
            deployment=None,  # type: ignore[arg-type]
            run=self.run(),
        )
        return returning_visitors.returning_visitors.compute(step)[DATASET]

    def is_stale(self) -> bool:
        planner = Staleness(graph=GRAPH, look=Snapshot(self.access.landing_zone, self.access.events))
        return bool(planner.stale(GRAPH.task_of(DATASET)))

    def table(self) -> list[tuple[Any, ...]]:
        return self.sorted(self.access.lake.read(self.spark, DATASET))

    def view(self) -> list[tuple[Any, ...]]:
        rows = self.access.lake.read(self.spark, AUDIENCE)
        return self.sorted(dataset_materializer.shown(self.spark, CONTRACTS[DATASET].view, {AUDIENCE: rows}))

    def sorted(self, frame: Any) -> list[tuple[Any, ...]]:
        return sorted(tuple(row) for row in frame.select(*COLUMNS).collect())


@pytest.fixture
def blog(spark: Any, lake_root: Path) -> Blog:
    return Blog.of(spark, lake_root)


def people(first: int, last: int) -> list[str]:
    return [f"u{number}" for number in range(first, last)]


def test_a_table_is_its_view_whatever_happens_between_refreshes(blog: Blog) -> None:
    """Late rows, hours that lose their rows, and a week that ends."""
    hours = [f"{week}T{hour:02}" for week in WEEKS[:3] for hour in (0, 9)]
    blog.come({hour: people(at * 100, at * 100 + 300) for at, hour in enumerate(hours)})
    blog.refresh()
    happens: dict[str, dict[str, Iterable[str]]] = {
        "late rows": {hours[1]: people(100, 450)},
        "an hour without rows, and a week that ends": {hours[3]: [], f"{WEEKS[3]}T00": people(0, 50)},
    }
    for what, visitors in happens.items():
        before = blog.table()
        blog.come(visitors)
        assert blog.is_stale(), what
        blog.refresh()
        assert not blog.is_stale(), what
        assert blog.table() == blog.view() != before, what
