"""(f) A week replaced, in a dataset of one week and of a hundred: tables behind one view compared with DELETE."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake import write_deltalake
from pyspark.sql import functions as F

from benchmarks import same
from benchmarks.deployment import Bench
from benchmarks.measure import Case, Peer, Result, Size, Target, interleaved, ratio, say
from blogdata.lake import members
from blogdata.lake.commit import Account
from blogdata.lake.lake import Lake
from blogdata.lake.members import NONE_YET, Member
from blogdata.patterns.idempotency.fast_metadata_cleaner import replace_periods
from blogdata.publish.contract import Contract
from blogdata.publish.partitions import Grain, between
from blogdata.publish.run import RunContext
from blogdata.publish.schema import Column, Partitioning, RowRule
from blogdata.publish.target import Provenance
from blogdata.publish.target import Target as WriteTarget

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STANDARD_ROWS = 50_000
"""Rows of a week."""
HISTORY = (1, 100)
REPEATS = 5
WARM_UPS = 3
WEEKS = between("2024-01-01", "2025-11-24", Grain.WEEK)
CONTRACT = Contract(
    dataset="bench.weeks",
    description="Events made up for a measurement",
    owner="team:platform",
    columns=(
        Column(name="week", type="STRING", nullable=False, description="Week"),
        Column(name="event_id", type="BIGINT", nullable=False, description="Identifier"),
        Column(name="page", type="STRING", nullable=False, description="Page"),
    ),
    key=("event_id",),
    partitioning=Partitioning(column="week", grain=Grain.WEEK),
    rules=(RowRule(name="has_a_page", expression="length(page) > 0", description="The page is known"),),
)


@dataclass(frozen=True, kw_only=True)
class World:
    """A history of several weeks, the last of which is replaced: as tables behind one view and as one table."""

    bench: Bench
    rows: int
    weeks: int
    lake: Lake
    plain: str

    @classmethod
    def make(cls, bench: Bench, rows: int, weeks: int) -> World:
        """Write the history, with delta-rs, because only its presence matters."""
        folder = bench.folder(f"weeks-{weeks}")
        world = cls(
            bench=bench, rows=rows, weeks=weeks, lake=Lake(root=str(folder / "lake")), plain=str(folder / "plain")
        )
        there = [world._member(number) for number in range(weeks)]
        members.commit(world.lake, CONTRACT.dataset, NONE_YET, there, {})
        for number in range(weeks):
            write_deltalake(world.plain, _table(number, rows), mode="append")
        return world

    @property
    def span(self) -> str:
        """Describe the length of the history."""
        return f"{self.weeks} week{'s' * (self.weeks > 1)}"

    @property
    def week(self) -> str:
        """The replaced week."""
        return WEEKS[self.weeks - 1]

    def frame(self, number: int) -> DataFrame:
        """Make up the week's rows of a round."""
        first = (self.weeks - 1) * self.rows
        made: DataFrame = self.bench.spark.range(first, first + self.rows).select(
            F.lit(self.week).alias("week"),
            F.col("id").alias("event_id"),
            F.concat(F.lit(f"/{number}/"), F.col("id") % 1000).alias("page"),
        )
        return made

    def by_metadata(self, number: int) -> None:
        """Replace the week as the platform does."""
        run = RunContext(run_id=f"round-{number}", job="benchmark", code_version="benchmark")
        target = WriteTarget(lake=self.lake, contract=CONTRACT, run=run)
        accounts = {self.week: Account(rows_in=self.rows)}
        replace_periods(self.frame(number), target, [self.week], Provenance(accounts=accounts))

    def by_delete(self, number: int) -> None:
        """Replace the week with the two obvious statements."""
        self.bench.spark.sql(f"DELETE FROM delta.`{self.plain}` WHERE week = '{self.week}'")
        self.frame(number).write.format("delta").mode("append").save(self.plain)

    def require_same(self) -> None:
        """Compare the rows of both."""
        spark = self.bench.spark
        view, table = self.lake.read(spark, CONTRACT.dataset), spark.read.format("delta").load(self.plain)
        rows = same.require_equal(view, table, where=str(Path(self.plain).parent))
        assert rows == self.rows * self.weeks

    def counted(self, rounds: int) -> dict[str, list[float]]:
        """Time a reader who counts all rows: the cost of a view over many tables."""
        spark = self.bench.spark
        peers = [
            Peer(name="view", run=lambda number: self.lake.read(spark, CONTRACT.dataset).count()),
            Peer(name="one table", run=lambda number: spark.read.format("delta").load(self.plain).count()),
        ]
        return interleaved(peers, rounds, warm_ups=WARM_UPS)

    def _member(self, number: int) -> Member:
        week, location = WEEKS[number], f"{WEEKS[number]}-first"
        path = self.lake.path(members.table_of(CONTRACT.dataset, location))
        write_deltalake(path, _table(number, self.rows), partition_by=["week"])
        return Member(
            name=week,
            location=location,
            version=0,
            partition_column="week",
            columns={column.name: column.type for column in CONTRACT.columns},
            frozen=False,
            rows_of={week: self.rows},
            run_id="first",
            since_version=0,
            visible_from=datetime.now(timezone.utc),
        )


def measure(bench: Bench, size: Size) -> Result:
    """Measure with weeks of this many rows, or of fifty thousand."""
    rows = size.visits or STANDARD_ROWS
    say(f"a week of {rows:,} rows replaced, after {HISTORY[0]} and {HISTORY[1]} weeks")
    few, many = (World.make(bench, rows, weeks) for weeks in HISTORY)
    peers = [
        Peer(name=f"{how}, {world.span}", run=run)
        for world in (few, many)
        for how, run in (("metadata", world.by_metadata), ("DELETE and INSERT", world.by_delete))
    ]
    seconds = interleaved(peers, size.rounds * REPEATS, warm_ups=WARM_UPS)
    few.require_same()
    many.require_same()
    ratios = [ratio(seconds, f"{how}, {many.span}", f"{how}, {few.span}") for how in ("metadata", "DELETE and INSERT")]
    facts = {
        "rows": rows * many.weeks,
        "rows of all weeks counted (seconds, median)": {
            f"{name}, {world.span}": round(median(taken), 3)
            for world in (few, many)
            for name, taken in world.counted(size.rounds * REPEATS).items()
        },
    }
    case = Case(name=f"{rows:,} rows a week", seconds=seconds, ratios=ratios, facts=facts)
    target = Target(
        what=f"a week replaced by metadata after {many.weeks} weeks / after {few.weeks}",
        bound="at most",
        limit=1.2,
        found=ratios[0].value,
    )
    return Result(letter="f", title="A week replaced", cases=[case], targets=[target])


def _table(number: int, rows: int) -> pa.Table:
    first = number * rows
    return pa.table(
        {
            "week": [WEEKS[number]] * rows,
            "event_id": pa.array(range(first, first + rows), pa.int64()),
            "page": [f"/first/{one % 1000}" for one in range(first, first + rows)],
        }
    )
