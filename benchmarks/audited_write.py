"""One partition of ten replaced: a plain Delta write compared with an audited, accounted, published one."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from benchmarks import same
from benchmarks.deployment import Bench
from benchmarks.measure import Case, Peer, Size, interleaved, ratio, say
from blogdata.contract.contract import Contract
from blogdata.contract.partitions import Grain, between
from blogdata.contract.publication import Account
from blogdata.contract.schema import Audit, Column, Partitioning, RowRule
from blogdata.table.lake import Lake
from blogdata.table.publish import publish
from blogdata.table.target import Overwrite, Provenance, RunContext, Target

STANDARD_ROWS = 2_000_000
REPEATS = 5
WARM_UPS = 3
PLAIN, PUBLISHED = "plain Delta write", "published write"
DAYS = between("2026-01-05", "2026-01-14", Grain.DAY)
CONTRACT = Contract(
    dataset="bench.events",
    description="Events made up for a measurement",
    owner="team:platform",
    columns=(
        Column(name="day", type="STRING", nullable=False, description="Day"),
        Column(name="event_id", type="BIGINT", nullable=False, description="Identifier"),
        Column(name="user_id", type="STRING", nullable=False, description="User"),
        Column(name="event_time", type="TIMESTAMP", nullable=False, description="When"),
        Column(name="page", type="STRING", nullable=False, description="Page"),
        Column(name="referral", type="STRING", description="Where from"),
        Column(name="amount", type="DOUBLE", description="How much"),
        Column(name="occurrences", type="BIGINT", nullable=False, description="Rows it stands for"),
    ),
    key=("event_id",),
    partitioning=Partitioning(column="day", grain=Grain.DAY),
    rules=(
        RowRule(name="identified", expression="length(user_id) > 0", description="The user is known"),
        RowRule(name="counted", expression="occurrences >= 1", description="A row stands for itself"),
        RowRule(name="in_its_day", expression="day = date_format(event_time, 'yyyy-MM-dd')", description="Its own day"),
    ),
    audits=(Audit(name="few_repeats", expression="sum(occurrences) <= 2 * count(1)", description="No flood"),),
    stands_for="sum(occurrences)",
    reasons={"duplicates": "sum(occurrences - 1)"},
    measures={"no_referral": "avg(cast(referral is null as double))", "users": "approx_count_distinct(user_id)"},
    statistics=("event_time", "user_id"),
)


def measure(bench: Bench, size: Size) -> Sequence[Case]:
    """Measure with a table of this many rows, or of two million."""
    return [_case(bench, size.visits or STANDARD_ROWS, size.rounds * REPEATS)]


def events(bench: Bench, day: str, rows: int, seed: int) -> DataFrame:
    """Make up the rows of a day; they cost almost nothing to compute, so that only the write is measured."""
    first = DAYS.index(day) * rows
    made: DataFrame = bench.spark.range(first, first + rows).select(
        F.lit(day).alias("day"),
        F.col("id").alias("event_id"),
        F.concat(F.lit("user-"), F.xxhash64("id", F.lit(seed)) % 100_000).alias("user_id"),
        (F.lit(f"{day}T00:00:00Z").cast("timestamp") + F.expr("make_dt_interval(0, 0, 0, id % 86400)")).alias(
            "event_time"
        ),
        F.concat(F.lit("/page/"), F.pmod(F.hash("id"), F.lit(1000))).alias("page"),
        F.when(F.col("id") % 3 > 0, F.concat(F.lit("https://example.org/"), F.col("id") % 50)).alias("referral"),
        (F.pmod(F.hash("id"), F.lit(10_000)) / 100).alias("amount"),
        (1 + F.col("id") % 2).alias("occurrences"),
    )
    return made


def _case(bench: Bench, rows: int, rounds: int) -> Case:
    folder = bench.folder("writes")
    lake, plain = Lake(root=str(folder / "lake")), str(folder / "plain")
    of_a_day = rows // len(DAYS)
    account = {day: Account(rows_in=of_a_day + _odd(DAYS.index(day) * of_a_day, of_a_day)) for day in DAYS}

    def published(days: tuple[str, ...], frame: DataFrame, run: str) -> None:
        context = RunContext(run_id=run, job="benchmark", code_version="benchmark")
        target = Target(lake=lake, contract=CONTRACT, run=context)
        provenance = Provenance(accounts={day: account[day] for day in days})
        publish(frame, target, change=Overwrite(), partitions=days, provenance=provenance)

    def day_of(number: int) -> str:
        return DAYS[number % len(DAYS)]

    def write_published(number: int) -> None:
        day = day_of(number)
        published((day,), events(bench, day, of_a_day, number), f"round-{number}")

    def write_plain(number: int) -> None:
        day = day_of(number)
        frame = events(bench, day, of_a_day, number)
        frame.write.format("delta").mode("overwrite").option("replaceWhere", f"day = '{day}'").save(plain)

    say(f"a partition of ten replaced, {rows:,} rows in the table, {rounds} rounds")
    table = events(bench, DAYS[0], of_a_day, -1)
    for day in DAYS[1:]:
        table = table.unionByName(events(bench, day, of_a_day, -1))
    published(DAYS, table, "first")
    # Collect the same statistics as the published table; the default would collect more.
    statistics = ",".join(CONTRACT.statistics)
    first = table.write.format("delta").partitionBy("day").option("delta.dataSkippingStatsColumns", statistics)
    first.save(plain)
    peers = [Peer(name=PUBLISHED, run=write_published), Peer(name=PLAIN, run=write_plain)]
    seconds = interleaved(peers, rounds, warm_ups=WARM_UPS)
    both = lake.read(bench.spark, CONTRACT.dataset), bench.spark.read.format("delta").load(plain)
    same.require_equal(*both, where=str(folder))
    facts = ratio(seconds, PUBLISHED, PLAIN)
    return Case(name=f"{of_a_day:,} of {rows:,} rows replaced", seconds=seconds, facts=facts)


def _odd(first: int, rows: int) -> int:
    """Count the odd numbers among this many from the first on: these rows stand for two."""
    return (first + rows) // 2 - first // 2
