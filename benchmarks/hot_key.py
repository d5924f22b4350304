"""(k) A hot key: half of the rows in one group, aggregated plainly and salted, with task times."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from benchmarks.deployment import Bench
from benchmarks.measure import Case, Peer, Result, Size, interleaved, ratio, say
from benchmarks.same import require_equal
from blogdata.patterns.data_value import distributed_aggregator
from blogdata.patterns.data_value.distributed_aggregator import How, Measure
from blogdata.services import config, spark_connect, spark_session

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

STANDARD_ROWS = 4_000_000
TASKS = 8
VIEWS = 4
"""Page views of a visit."""
CASES: Mapping[str, tuple[Measure, ...]] = {
    "counts": (Measure(name="events"),),
    "counts and distinct visits and users": (
        Measure(name="events"),
        Measure(name="visits", how=How.DISTINCT, column="visit_id"),
        Measure(name="users", how=How.DISTINCT, column="user_id"),
    ),
    "sketches": (Measure(name="users", how=How.APPROXIMATE, column="user_id"),),
}
SALTS = 16


def measure(bench: Bench, size: Size) -> Result:
    """Measure with this many rows."""
    rows = size.visits or STANDARD_ROWS
    say(f"{rows:,} rows, half of them of one key, {size.rounds} rounds")
    home = bench.folder("hot")
    log = home / "events"
    log.mkdir()
    lines = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": log.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.sql.shuffle.partitions": str(TASKS),
        # Otherwise Spark would coalesce the small partitions, which are the point.
        "spark.sql.adaptive.coalescePartitions.enabled": "false",
    }
    toml = "\n".join(f"{json.dumps(name)} = {json.dumps(value)}" for name, value in lines.items())
    (home / "blogdata.toml").write_text(f"[spark.conf]\n{toml}\n", encoding="utf-8")
    settings = config.load(overrides={"BLOGDATA_HOME": str(home)})
    spark = spark_session.attach(spark_connect.running_server(settings).url)
    spans: dict[tuple[str, str], tuple[float, float]] = {}
    seconds: dict[str, Mapping[str, list[float]]] = {}
    try:
        table = _table(spark, rows, str(home / "rows"))
        for name, measures in CASES.items():
            frames = {
                "plain": distributed_aggregator.aggregate(table, ("key",), measures),
                "salted": salted(table, measures),
            }
            if name != "sketches":
                require_equal(frames["plain"], frames["salted"], where=name, exactly=True)
            peers = [Peer(name=way, run=_timed(frame, spans, (name, way))) for way, frame in frames.items()]
            seconds[name] = interleaved(peers, size.rounds, warm_ups=1)
    finally:
        spark_session.release(spark)
        spark_connect.stop(settings)
    tasks = list(_tasks(log))
    cases = [
        Case(
            name=name,
            seconds=taken,
            ratios=[ratio(taken, "salted", "plain")],
            facts={
                "tasks after a shuffle (milliseconds, last round)": {
                    way: _of(tasks, *spans[name, way]) for way in ("plain", "salted")
                }
            },
        )
        for name, taken in seconds.items()
    ]
    return Result(letter="k", title="A hot key", cases=cases)


def salted(frame: DataFrame, measures: Sequence[Measure]) -> DataFrame:
    """Aggregate in two steps: first by the key, a hash of the visit and the counted values, then by the key alone.

    The salt is computed from the row: a random one would change when a task is retried.
    """
    counted = sorted({measure.column or "" for measure in measures if measure.how is How.DISTINCT})
    salt = F.pmod(F.xxhash64("visit_id"), F.lit(SALTS)).alias("salt")
    others = [measure for measure in measures if measure.how is not How.DISTINCT]
    partial = frame.groupBy("key", salt, *[F.col(name).alias(f"of_{name}") for name in counted]).agg(
        *[_partial(measure).alias(measure.name) for measure in others]
    )
    return partial.groupBy("key").agg(*[_merged(measure).alias(measure.name) for measure in measures])


def _partial(measure: Measure) -> Column:
    return F.hll_sketch_agg(measure.column, measure.lg_k) if measure.column else F.count(F.lit(1))


def _merged(measure: Measure) -> Column:
    if measure.how is How.DISTINCT:
        return F.count_distinct(F.col(f"of_{measure.column}"))
    return F.hll_sketch_estimate(F.hll_union_agg(measure.name)) if measure.column else F.sum(measure.name)


def _table(spark: Any, rows: int, path: str) -> DataFrame:
    visit = F.expr(f"id div {VIEWS}")
    frame = spark.range(rows).select(
        F.concat(F.lit("visit-"), visit).alias("visit_id"),
        F.concat(F.lit("user-"), F.pmod(F.hash(visit), F.lit(rows // 13))).alias("user_id"),
        F.when(F.pmod(F.hash(visit, F.lit(1)), F.lit(2)) == 0, "hot")
        .otherwise(F.concat(F.lit("key-"), F.pmod(F.hash(visit, F.lit(2)), F.lit(400))))
        .alias("key"),
    )
    frame.repartition(TASKS).write.format("delta").save(path)
    stored: DataFrame = spark.read.format("delta").load(path)
    return stored


def _timed(
    frame: DataFrame, spans: dict[tuple[str, str], tuple[float, float]], name: tuple[str, str]
) -> Callable[[int], None]:
    def run(number: int) -> None:
        started = time.time()
        frame.write.format("noop").mode("overwrite").save()
        spans[name] = (1000 * started, 1000 * time.time())

    return run


def _tasks(log: Path) -> Iterator[Mapping[str, Any]]:
    for file in log.iterdir():
        for line in file.read_text(encoding="utf-8").splitlines():
            event = json.loads(line)
            if event["Event"] == "SparkListenerTaskEnd":
                yield event


def _of(tasks: list[Mapping[str, Any]], started: float, ended: float) -> dict[str, float]:
    """Find the stage with the longest task among those that read a shuffle; return its task times."""
    stages: dict[int, list[tuple[int, int]]] = {}
    for task in tasks:
        info, read = task["Task Info"], task["Task Metrics"]["Shuffle Read Metrics"]["Total Records Read"]
        if started <= info["Launch Time"] <= ended and read:
            stages.setdefault(task["Stage ID"], []).append((info["Finish Time"] - info["Launch Time"], read))
    longest = max(stages.values(), key=max)
    return {
        "longest task": max(longest)[0],
        "median task": median(taken for taken, _ in longest),
        "most rows of a task": max(read for _, read in longest),
        "median rows of a task": median(read for _, read in longest),
    }
