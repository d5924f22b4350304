from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import functions as F

from assets.gold import returning_visitors
from assets.gold.returning_visitors import AUDIENCE
from blogdata.contract.publication import WHOLE_TABLE, Account
from blogdata.patterns.idempotency.data_overwrite import overwrite_partitions
from blogdata.patterns.storage import dataset_materializer
from blogdata.patterns.storage.dataset_materializer import Followed
from blogdata.planning.snapshot import Snapshot
from blogdata.planning.staleness import Staleness
from blogdata.runs.lake_resource import LakeResource
from blogdata.table.lake import Lake
from blogdata.table.target import Provenance
from quality.contracts import CONTRACTS, GRAPH
from quality.contracts.audience import ALL, AUDIENCE_DIMENSIONS, LG_K
from toy import entry, step, target

DATASET = "gold.returning_visitors"
WEEKS = tuple(f"2026-01-{day:02}" for day in (5, 12, 19))
CLICKS = Followed(dataset="gold.clicks", partition="hour", columns=("page", "n"), where="page = 'all'")
SCHEMA = pa.schema({"hour": pa.string(), "page": pa.string(), "n": pa.int32()})


def publish(spark: Any, root: Path, run: str, visitors: dict[str, range]) -> None:
    """Publish sketches of the visitors of some hours, as gold.audience_hourly has them."""
    rows = [(hour, f"u{number}") for hour, numbers in visitors.items() for number in numbers]
    frame = spark.createDataFrame(rows, "event_hour STRING, user STRING")
    dimensions = F.explode(F.array(*map(F.lit, AUDIENCE_DIMENSIONS))).alias("dimension")
    sketch = F.hll_sketch_agg("user", LG_K).alias("visitors")
    groups = frame.select("*", dimensions).groupBy("event_hour", "dimension")
    hours = groups.agg(F.lit(ALL).alias("value"), F.count("user").alias("events"), sketch)
    accounts = {hour: Account(rows_in=len(of) * len(AUDIENCE_DIMENSIONS)) for hour, of in visitors.items()}
    aim = target(root, run, CONTRACTS[AUDIENCE])
    overwrite_partitions(hours, aim, sorted(visitors), Provenance(accounts=accounts))


def test_late_rows_of_a_week_are_taken_from_its_feed(spark: Any, lake_root: Path) -> None:
    hours, contract = [f"{week}T00" for week in WEEKS], CONTRACTS[DATASET]

    def refreshed(run: str) -> str:
        computed = returning_visitors.returning_visitors.compute(step(spark, lake_root, contract, run=run))
        return str(computed[DATASET].info["refreshed"])

    def is_stale() -> bool:
        access = LakeResource(root=str(lake_root), landing=str(lake_root / "landing"))
        planner = Staleness(graph=GRAPH, look=Snapshot(access.landing_zone, access.events))
        return bool(planner.stale(GRAPH.task_of(DATASET)))

    def rows(frame: Any) -> list[tuple[Any, ...]]:
        return sorted(tuple(row) for row in frame.select(*[column.name for column in contract.columns]).collect())

    publish(spark, lake_root, "1", {hour: range(at * 100, at * 100 + 300) for at, hour in enumerate(hours)})
    assert refreshed("2") == "all weeks, since the table is new"
    lake = Lake(root=str(lake_root))
    before = rows(lake.read(spark, DATASET))
    publish(spark, lake_root, "3", {hours[0]: range(350)})
    assert is_stale()
    assert refreshed("4").partition(", since")[0] == WEEKS[0]
    assert not is_stale()
    view = dataset_materializer.evaluate(spark, contract.view, {AUDIENCE: lake.read(spark, AUDIENCE)})
    assert rows(lake.read(spark, DATASET)) == rows(view) != before


@pytest.fixture
def clicks(lake_root: Path) -> Lake:
    lake = Lake(root=str(lake_root))
    fed = {"delta.enableChangeDataFeed": "true"}
    DeltaTable.create(lake.path(CLICKS.dataset), SCHEMA, partition_by=["hour"], configuration=fed)
    write(lake, "00", [("all", 1), ("other", 1)])
    write(lake, "01", [("all", 1)])
    return lake


def write(lake: Lake, hour: str, rows: list[tuple[str, int]], **how: Any) -> None:
    content = [dict(zip(SCHEMA.names, (hour, *row), strict=True)) for row in rows]
    how = how or {"mode": "overwrite", "predicate": f"hour = '{hour}'"}
    write_deltalake(lake.path(CLICKS.dataset), pa.Table.from_pylist(content, SCHEMA), **how)


def changed(spark: Any, lake: Lake, since: int, **more: Any) -> set[str] | str:
    """Return the hours that changed since a version that was read; the reason if that is not known."""
    until = lake.version(CLICKS.dataset)
    assert until is not None
    known = {"code_version": "v1", "committed_at": datetime.now(timezone.utc), **more}
    before = entry("gold.view", WHOLE_TABLE, rows=1, inputs={CLICKS.dataset: since}, **known)
    hours, why = dataset_materializer.changes(spark, lake, CLICKS, before, until=until, code_version="v1")
    return why if hours is None else set(hours)


def test_only_other_rows_that_the_view_reads_are_changes(spark: Any, clicks: Lake) -> None:
    write(clicks, "00", [("all", 1)])
    write(clicks, "00", [("other", 9)], mode="append")
    assert DeltaTable(clicks.path(CLICKS.dataset)).optimize.compact()["numFilesAdded"] == 1
    assert changed(spark, clicks, 2) == set(), "computed again, with another row that the view does not read"
    write(clicks, "00", [("all", 2)])
    write(clicks, "01", [])
    assert changed(spark, clicks, 2) == {"00", "01"}
    write(clicks, "00", [("all", 1)])
    assert changed(spark, clicks, 2) == {"01"}, "as it was read"


def test_a_feed_that_does_not_tell_everything_is_not_followed(spark: Any, clicks: Lake) -> None:
    assert changed(spark, clicks, 1, code_version="v0") == "other code has computed the table"
    another = "is another table than the one that was read"
    assert another in str(changed(spark, clicks, 9))
    assert another in str(changed(spark, clicks, 1, committed_at=datetime(2026, 1, 1, tzinfo=timezone.utc)))
    (file,) = Path(clicks.path(CLICKS.dataset)).glob("hour=01/*.parquet")
    write(clicks, "01", [("all", 5)])
    file.unlink()
    assert "does not reach back to version 1" in str(changed(spark, clicks, 1))
    for value in ("false", "true"):
        table = f"ALTER TABLE delta.`{clicks.path(CLICKS.dataset)}`"
        spark.sql(f"{table} SET TBLPROPERTIES (delta.enableChangeDataFeed = {value})")
    assert "does not reach back to version 3" in str(changed(spark, clicks, 3)), "it was off for a while"
