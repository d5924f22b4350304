"""(r) Visitors who come back: the materialized table compared with its view, and its two kinds of refresh."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from pyspark.sql import functions as F

from assets.gold import returning_visitors
from assets.gold.returning_visitors import AUDIENCE
from benchmarks.deployment import Bench
from benchmarks.measure import Case, Peer, Result, Size, Target, interleaved, ratio, say
from blogdata.lake.commit import Account
from blogdata.orchestration.lake_resource import LakeResource
from blogdata.orchestration.step import Step
from blogdata.patterns.idempotency.data_overwrite import overwrite_partitions
from blogdata.patterns.storage import dataset_materializer
from blogdata.publish.partitions import Grain, between
from blogdata.publish.run import RunContext
from blogdata.publish.target import Provenance
from blogdata.publish.target import Target as Written
from quality.contracts import CONTRACTS
from quality.contracts.audience import AUDIENCE_DIMENSIONS, LG_K

STANDARD_ROWS = (2_000_000,)
HOURS = between("2026-01-05T00", "2026-04-06T00", Grain.HOUR)
"""Thirteen weeks, and the first hour of the next one."""
DATASET = "gold.returning_visitors"
PAGES = 50
VIEW, TABLE, ONE, WHOLE = "view", "table", "refresh after one late hour", "refresh of everything"
COLUMNS = [column.name for column in CONTRACTS[DATASET].columns]


class _Blog:
    """Page views by arithmetic, and their sketches as gold.audience_hourly keeps them."""

    def __init__(self, bench: Bench, rows: int) -> None:
        root = bench.folder(f"returning-{rows}")
        self.access = LakeResource(root=str(root / "lake"), landing=str(root / "landing"))
        self.spark, self.rows = bench.spark, rows

    def publish(self, hours: Sequence[str], more: int = 0) -> None:
        """Publish some hours, with this many visitors more in each."""
        number = F.col("id") % len(HOURS)
        hour = F.array(*map(F.lit, HOURS))[number.cast("int")]
        user = F.concat(F.lit("user-"), F.pmod(F.xxhash64("id"), F.lit(self.rows // 10)))
        rows = self.spark.range(self.rows).select(hour.alias("event_hour"), user.alias("user_id"), "id")
        late = self.spark.range(more).select(F.lit(hours[0]), F.concat(F.lit("late-"), "id"), "id")
        views = rows.where(F.col("event_hour").isin(*hours)).union(late) if len(hours) < len(HOURS) else rows
        page = F.concat(F.lit("/"), F.col("id") % PAGES)
        values = [page if name == "page" else F.lit("one") for name in AUDIENCE_DIMENSIONS]
        groups = F.inline(
            F.array(
                *[
                    F.struct(F.lit(name).alias("dimension"), value.alias("value"))
                    for name, value in zip(AUDIENCE_DIMENSIONS, values, strict=True)
                ]
            )
        )
        sketch = F.hll_sketch_agg("user_id", LG_K).alias("visitors")
        by = ("event_hour", "dimension", "value")
        audience = views.select("event_hour", "user_id", groups).groupBy(*by).agg(F.count("*").alias("events"), sketch)
        accounts = {
            row["event_hour"]: Account(rows_in=row["count"] * len(AUDIENCE_DIMENSIONS))
            for row in views.groupBy("event_hour").count().collect()
        }
        target = Written(lake=self.access.lake, contract=CONTRACTS[AUDIENCE], run=_run("v1"))
        overwrite_partitions(audience, target, sorted(hours), Provenance(accounts=accounts))

    def refresh(self, code_version: str) -> str:
        """Refresh the table as a run does; return what of it was computed."""
        step: Any = Step(
            contract=CONTRACTS[DATASET],
            partitions=(),
            spark=self.spark,
            access=self.access,
            deployment=None,  # type: ignore[arg-type]
            run=_run(code_version),
        )
        return str(returning_visitors.returning_visitors.compute(step)[DATASET].info["refreshed"])

    def view(self) -> list[Any]:
        """Compute the view."""
        hours = self.access.lake.read(self.spark, AUDIENCE)
        return self._rows(dataset_materializer.shown(self.spark, CONTRACTS[DATASET].view, {AUDIENCE: hours}))

    def table(self) -> list[Any]:
        """Read the table."""
        return self._rows(self.access.lake.read(self.spark, DATASET))

    def _rows(self, frame: Any) -> list[Any]:
        return sorted(tuple(row) for row in frame.select(*COLUMNS).collect())


def measure(bench: Bench, size: Size) -> Result:
    """Measure with this many page views of thirteen weeks, or with the standard size."""
    (rows,) = (size.visits,) if size.visits else STANDARD_ROWS
    say(f"{rows:,} page views of {len(HOURS):,} hours, {size.rounds} rounds")
    blog = _Blog(bench, rows)
    blog.publish(HOURS)
    blog.refresh("v1")
    late = HOURS[len(HOURS) // 2]

    def one_late_hour(number: int) -> None:
        blog.refresh("v1")
        blog.publish([late], more=number + 9)

    peers = [
        Peer(name=VIEW, run=lambda number: blog.view()),
        Peer(name=TABLE, run=lambda number: blog.table()),
        Peer(name=ONE, run=lambda number: blog.refresh("v1"), prepare=one_late_hour),
        # By other code, as after an upgrade.
        Peer(name=WHOLE, run=lambda number: blog.refresh(str(uuid.uuid4()))),
    ]
    seconds = interleaved(peers, size.rounds, warm_ups=1)
    assert blog.table() == blog.view()
    ratios = [ratio(seconds, VIEW, TABLE), ratio(seconds, WHOLE, ONE)]
    facts = {"rows": {AUDIENCE: len(HOURS) * (PAGES + 4), DATASET: len(blog.table())}}
    case = Case(name=f"{rows:,} page views", seconds=seconds, ratios=ratios, facts=facts)
    targets = [Target(what=f"{VIEW} / {TABLE}", bound="at least", limit=5.0, found=ratios[0].value)]
    return Result(letter="r", title="Visitors who come back", cases=[case], targets=targets)


def _run(code_version: str) -> RunContext:
    return RunContext(run_id=str(uuid.uuid4()), job="benchmark", code_version=code_version)
