"""(j) A month's visitors: merged sketches of its hours compared with a distinct count of its page views."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import functions as F

from benchmarks.deployment import Bench
from benchmarks.measure import Case, Peer, Result, Size, Target, interleaved, ratio, say
from blogdata.lake.lake import Lake
from blogdata.lake.stored import Stored
from blogdata.patterns.data_value import local_aggregator, sketches
from blogdata.patterns.data_value.distributed_aggregator import How, Measure

STANDARD_ROWS = (10_000_000, 50_000_000)
HOURS = 30 * 24
VISITS, AUDIENCE = "bench.visits", "bench.audience"
LG_K = 12
MEASURES = (Measure(name="visitors", how=How.SKETCH, column="user_id", lg_k=LG_K),)
EXACT, MERGED = "distinct count of the page views", "sketches merged, without Spark"


def measure(bench: Bench, size: Size) -> Result:
    """Measure with this many page views of a month, or with both standard sizes; the targets hold for the largest."""
    cases = []
    for rows in (size.visits,) if size.visits else STANDARD_ROWS:
        say(f"{rows:,} page views of {HOURS} hours, {size.rounds} rounds")
        lake = Lake(root=str(bench.folder(f"visitors-{rows}") / "lake"))
        _write(bench.spark, lake, rows)
        cases.append(_case(bench, lake, rows, size.rounds))
    largest = cases[-1]
    visitors = largest.facts["visitors"]
    targets = [
        Target(what=f"exact / sketches, {largest.name}", bound="at least", limit=100.0, found=largest.ratios[0].value),
        Target(
            what="error / stated standard error",
            bound="at most",
            limit=2.0,
            found=round(_error(visitors) / sketches.relative_error(LG_K), 3),
        ),
    ]
    return Result(letter="j", title="A month's visitors", cases=cases, targets=targets)


def _case(bench: Bench, lake: Lake, rows: int, rounds: int) -> Case:
    found: dict[str, float] = {}
    peers = [
        Peer(name=EXACT, run=lambda number: found.update({EXACT: _exact(bench.spark, lake)})),
        Peer(name=MERGED, run=lambda number: found.update({MERGED: _merged(lake)})),
    ]
    seconds = interleaved(peers, rounds, warm_ups=1)
    visitors = {"exact": int(found[EXACT]), "from sketches": int(found[MERGED])}
    return Case(
        name=f"{rows:,} page views",
        seconds=seconds,
        ratios=[ratio(seconds, EXACT, MERGED)],
        facts={
            "visitors": visitors,
            "errors, per cent": {
                "found": round(100 * _error(visitors), 2),
                "one standard error": round(100 * sketches.relative_error(LG_K), 2),
            },
            "bytes": {VISITS: _size(lake, VISITS), AUDIENCE: _size(lake, AUDIENCE)},
        },
    )


def _error(visitors: Mapping[str, int]) -> float:
    return abs(visitors["from sketches"] / visitors["exact"] - 1)


def _write(spark: Any, lake: Lake, rows: int) -> None:
    hour = F.date_format(
        F.timestamp_seconds(F.lit(1_767_225_600) + (F.col("id") % HOURS) * 3600), "yyyy-MM-dd'T'HH"
    ).alias("event_hour")
    user = F.concat(F.lit("user-"), F.pmod(F.xxhash64("id"), F.lit(rows // 10))).alias("user_id")
    frame = spark.range(rows).select(hour, user)
    frame.repartition(8, "event_hour").write.format("delta").partitionBy("event_hour").save(lake.path(VISITS))
    hours = sorted(lake.row_counts(VISITS, "event_hour"))
    stored = Stored(lake=lake, dataset=VISITS, version=0, partitions=hours)
    audience = local_aggregator.aggregate(spark, stored, ("event_hour",), MEASURES)
    audience.write.format("delta").partitionBy("event_hour").save(lake.path(AUDIENCE))


def _exact(spark: Any, lake: Lake) -> int:
    return int(lake.read(spark, VISITS).agg(F.count_distinct("user_id")).collect()[0][0])


def _merged(lake: Lake) -> int:
    found = lake.columns(AUDIENCE, ("visitors",), since="2026-01-01T00", until="2026-01-31T00")
    return sketches.estimate(found.column("visitors").to_pylist(), lg_k=LG_K, where=AUDIENCE).value


def _size(lake: Lake, dataset: str) -> int:
    return sum(file.stat().st_size for file in Path(lake.path(dataset)).rglob("*.parquet"))
