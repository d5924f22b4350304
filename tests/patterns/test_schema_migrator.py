from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType
from pyspark.errors import PySparkException

from blogdata.contract.contract import Contract
from blogdata.contract.migrations import carried, migrating
from blogdata.contract.publication import Account
from blogdata.contract.schema import Column, Migration
from blogdata.contract.writes import Merge, Serve
from blogdata.deliver import lake_views
from blogdata.errors import ConfigurationError, PlatformError
from blogdata.ledger.deliveries import Served, record_deliveries
from blogdata.ledger.events import EventLog
from blogdata.patterns.idempotency.data_overwrite import overwrite_partitions
from blogdata.patterns.quality import schema_migrator
from blogdata.patterns.quality.schema_migrator import Phase, Reader, readers, remove
from blogdata.table.faults import ConcurrentWrite
from blogdata.table.lake import Lake
from blogdata.table.target import Provenance
from quality.contracts import CONTRACTS, DECLARED, SERVED
from toy import CONTRACT, target

MONDAY, TUESDAY, WEDNESDAY = "2026-01-05", "2026-01-06", "2026-01-07"
COUNTED, *_, HELD_EQUAL = CONTRACTS["gold.referral_stats"].rules
NOW = replace(CONTRACTS["gold.referral_stats"], rules=(COUNTED, HELD_EQUAL))
(MIGRATION,) = NOW.migrations
BEFORE = replace(
    NOW,
    columns=tuple(column for column in NOW.columns if column.name != "visitors"),
    rules=(COUNTED,),
    migrations=(),
)
AFTER = replace(
    NOW,
    columns=tuple(replace(column, default=None) for column in NOW.columns if column.name != "users"),
    rules=(replace(COUNTED, expression=COUNTED.expression.replace("users", "visitors")),),
)
FIRST, LAST = MIGRATION.since, MIGRATION.ends


def publish(spark: Any, lake: Lake, contract: Contract, day: str, visitors: int, name: str = "visitors") -> None:
    ddl = "event_date STRING, referral_host STRING, events BIGINT, visits BIGINT, {} BIGINT, hours_present INT"
    frame = spark.createDataFrame([(day, "direct", 9, 9, visitors, 24)], ddl.format(name))
    aim = target(Path(lake.root), f"{day} {visitors} {len(contract.columns)}", contract=contract)
    overwrite_partitions(frame, aim, [day], Provenance(accounts={day: Account(rows_in=9)}))


def columns(lake: Lake, *names: str) -> set[tuple[Any, ...]]:
    """Read columns as a program without Spark does."""
    table = lake.columns(NOW.dataset, ["event_date", *names]).to_pydict()
    return set(zip(*table.values(), strict=True))


def phase(lake: Lake, contract: Contract) -> Phase:
    return schema_migrator.phase(lake, contract, MIGRATION)


def test_a_column_is_renamed_through_its_phases(spark: Any, lake_root: Path) -> None:
    lake = Lake(root=str(lake_root))
    path = lake.path(NOW.dataset)
    publish(spark, lake, BEFORE, MONDAY, 3, "users")
    old_version = lake.version(NOW.dataset)
    assert phase(lake, NOW) is Phase.ADD

    without = replace(BEFORE, columns=tuple(column for column in BEFORE.columns if column.name != "users"))
    with pytest.raises(PlatformError, match="users: was removed"):
        publish(spark, lake, without, TUESDAY, 4)
    assert (lake.version(NOW.dataset), columns(lake, "users")) == (old_version, {(MONDAY, 3)})

    # Add and both: the older day gets its value; old and new readers can read every day.
    publish(spark, lake, NOW, TUESDAY, 4)
    both = {(MONDAY, 3, 3), (TUESDAY, 4, 4)}
    assert (phase(lake, NOW), columns(lake, "users", "visitors")) == (Phase.BOTH, both)
    with pytest.raises(PySparkException, match="DELTA_VIOLATE_CONSTRAINT"):
        spark.sql(f"UPDATE delta.`{path}` SET visitors = 9")

    # The contract no longer has the old column, but it is still written.
    publish(spark, lake, AFTER, WEDNESDAY, 6)
    assert (WEDNESDAY, 6, 6) in columns(lake, "users", "visitors")
    assert phase(lake, AFTER) is Phase.REMOVE
    (view,) = [line for line in lake_views.statements(lake, [AFTER], lake_views.SPARK) if "_public" in line]
    assert "`users`" in view

    def removed(*reading: Reader, on: date = LAST) -> int | None:
        return remove(lake, AFTER, "users", reading, today=on)

    with pytest.raises(PlatformError, match=str(LAST)):
        removed(on=LAST - timedelta(days=1))
    with pytest.raises(PlatformError, match=r"gold.other.users \(team:sales; column lineage\)"):
        removed(Reader(name="gold.other.users", owner="team:sales", how="column lineage"))
    assert phase(lake, AFTER) is Phase.REMOVE

    files, last = set(DeltaTable(path).file_uris()), lake.version(NOW.dataset)
    assert removed() is not None
    assert set(DeltaTable(path).file_uris()) == files
    assert "users" not in lake.read(spark, NOW.dataset).columns
    assert columns(lake, "visitors") == {(MONDAY, 3), (TUESDAY, 4), (WEDNESDAY, 6)}
    assert {row.users for row in lake.read(spark, NOW.dataset, last).collect()} == {3, 4, 6}
    assert (removed(), phase(lake, AFTER)) == (None, Phase.OVER)

    publish(spark, lake, AFTER, MONDAY, 7)
    assert carried(AFTER, lake.table(NOW.dataset)) is AFTER
    assert columns(lake, "visitors") == {(MONDAY, 7), (TUESDAY, 4), (WEDNESDAY, 6)}
    back = replace(AFTER, columns=(*AFTER.columns, Column(name="users", type="BIGINT", description="Registered users")))
    with pytest.raises(ConfigurationError, match="users was removed from this table"):
        publish(spark, lake, replace(back, migrations=()), MONDAY, 3)


@pytest.mark.campaign
def test_an_addition_that_died_before_its_values_is_completed(spark: Any, lake_root: Path) -> None:
    lake = Lake(root=str(lake_root))
    publish(spark, lake, BEFORE, MONDAY, 3, "users")
    table = lake.caught_up(NOW.dataset)
    assert table is not None
    table.alter.add_columns([Field("visitors", PrimitiveType("long"))])
    publish(spark, lake, NOW, TUESDAY, 5)
    assert columns(lake, "users", "visitors") == {(MONDAY, 3, 3), (TUESDAY, 5, 5)}


ROWS = pa.table({"hour": ["a"], "click": [1], "stands_for": [1], "page": ["/x"]})


def table_of(lake: Lake, rows: pa.Table = ROWS, dataset: str = CONTRACT.dataset, **more: Any) -> DeltaTable:
    write_deltalake(lake.path(dataset), rows, **more)
    table = lake.table(dataset)
    assert table is not None
    return table


RETIRED = replace(
    CONTRACT, columns=CONTRACT.columns[:3], migrations=(Migration(old="page", since=FIRST, grace=timedelta(days=1)),)
)


def test_a_column_of_an_unpartitioned_table_is_removed_with_its_constraints(tmp_path: Path) -> None:
    lake = Lake(root=str(tmp_path))
    table = table_of(lake)
    table.alter.add_constraint({"paged": "page <> ''"})
    assert remove(lake, replace(RETIRED, partitioning=None), "page", [], today=LAST) is not None
    after = lake.table(CONTRACT.dataset)
    assert after is not None
    assert (after.file_uris(), after.to_pyarrow_table()) == (table.file_uris(), ROWS.drop_columns("page"))
    assert "delta.constraints.paged" not in after.metadata().configuration


def test_a_removal_yields_to_a_publication(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake(root=str(tmp_path))
    table_of(lake, partition_by="hour")
    lift = schema_migrator._lift

    def overtaken(table: DeltaTable, contract: Contract, column: str) -> None:
        lift(table, contract, column)
        table.update_incremental()
        table_of(lake, mode="overwrite")

    monkeypatch.setattr(schema_migrator, "_lift", overtaken)
    monkeypatch.setattr(DeltaTable, "update_incremental", lambda table: None)
    with pytest.raises(ConcurrentWrite):
        remove(lake, RETIRED, "page", [], today=LAST)
    monkeypatch.undo()
    assert remove(lake, RETIRED, "page", [], today=LAST) is not None


def test_a_column_without_its_successor_is_not_removed(tmp_path: Path) -> None:
    lake = Lake(root=str(tmp_path))
    table_of(lake, pa.table({column.name: [1] for column in BEFORE.columns}), NOW.dataset)
    with pytest.raises(ConfigurationError, match="visitors may lack values of users"):
        remove(lake, AFTER, "users", [], today=LAST)


def test_a_delivery_outside_the_lake_is_a_reader(tmp_path: Path) -> None:
    lake = Lake(root=str(tmp_path))
    served_at = datetime(2026, 1, 6, tzinfo=timezone.utc)
    served = Served(batch_id="b", partition=MONDAY, inputs={}, rows=1, run_id="r", served_at=served_at)
    sink = SERVED["serving.daily_stats"]
    assert isinstance(sink.write, Serve)
    moved = replace(sink, write=replace(sink.write, without=("gold.referral_stats.users",)))

    def reading(contract: Contract) -> list[Reader]:
        declared = {**DECLARED, sink.dataset: contract}
        return readers(lake, EventLog(lake), declared, NOW.dataset, "users", landing="")

    assert reading(sink) == []
    record_deliveries(EventLog(lake), sink.dataset, [served], job_of=lambda run: None)
    assert [(reader.name, reader.owner) for reader in reading(sink)] == [(sink.dataset, "team:analytics")]
    assert reading(moved) == []


AS_TEXT = Migration(
    old="stands_for", new="stands", new_from_old="cast(stands_for AS STRING)", since=FIRST, grace=timedelta(days=9)
)


def test_an_impossible_migration_is_refused() -> None:
    key = replace(RETIRED.migrations[0], old="click")
    for change, fault in (
        ({"migrations": (replace(AS_TEXT, old="page", new="path"),)}, "lacks path"),
        ({"migrations": (key,)}, "identifies rows"),
        ({"migrations": RETIRED.migrations, "write": Merge()}, "replaced is migrated"),
    ):
        with pytest.raises(AssertionError, match=fault):
            migrating(replace(CONTRACT, **change))


def test_a_column_that_a_contract_dropped_before_its_table_had_the_new_one_is_carried(tmp_path: Path) -> None:
    stands = Column(name="stands", type="STRING", description="The same as text")
    hasty = replace(CONTRACT, columns=(*CONTRACT.columns[:2], CONTRACT.columns[3], stands), migrations=(AS_TEXT,))
    columns = carried(hasty, table_of(Lake(root=str(tmp_path)))).columns
    assert [column.default for column in columns[3:]] == ["cast(stands_for AS STRING)", None]
