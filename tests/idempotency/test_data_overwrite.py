"""Data Overwrite: repeated runs, in any order, give the same table; other partitions stay unchanged.

Pattern: Data Overwrite.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

from blogdata.errors import ConfigurationError
from blogdata.lake.commit import Account
from blogdata.lake.lake import Lake
from blogdata.patterns.idempotency.data_overwrite import overwrite_partitions, overwrite_table
from blogdata.publish.target import Engine, Provenance
from blogdata.publish.write_faults import AuditFailed, ConcurrentWrite, RowsOutsidePredicate
from laws.stepping import Held, Probe
from toy import CONTRACT, HOURS, WHOLE, clicks, table, target

pytestmark = pytest.mark.matrix(4)
both_engines = pytest.mark.parametrize("engine", list(Engine))


@both_engines
def test_running_twice_in_one_run_publishes_once(spark: Any, lake_root: Path, engine: Engine) -> None:
    first = overwrite_partitions(clicks(spark), target(lake_root, engine=engine), HOURS, Provenance())
    again = overwrite_partitions(clicks(spark), target(lake_root, engine=engine), HOURS, Provenance())
    assert again.repeated
    assert again.version == first.version == Lake(root=str(lake_root)).version(CONTRACT.dataset)


@both_engines
def test_another_run_replaces_only_its_partition(spark: Any, lake_root: Path, engine: Engine) -> None:
    overwrite_partitions(clicks(spark), target(lake_root, "one", engine), HOURS, Provenance())
    only_first = clicks(spark, rows=10).where(F.col("hour") == HOURS[0])
    for run in ("two", "three"):
        overwrite_partitions(only_first, target(lake_root, run, engine), HOURS[:1], Provenance())
    rows = table(spark, lake_root)
    assert len([row for row in rows if row[0] == HOURS[0]]) == 5
    assert len([row for row in rows if row[0] == HOURS[1]]) == 50


@both_engines
def test_a_partition_without_rows_is_emptied_not_skipped(spark: Any, lake_root: Path, engine: Engine) -> None:
    overwrite_partitions(clicks(spark), target(lake_root, "one", engine), HOURS, Provenance())
    commit = overwrite_partitions(
        clicks(spark).limit(0),
        target(lake_root, "two", engine),
        HOURS[:1],
        Provenance(accounts={HOURS[0]: Account(rows_in=0)}),
    )
    assert commit.entries[HOURS[0]].rows_out == 0
    assert {row[0] for row in table(spark, lake_root)} == {HOURS[1]}


@both_engines
def test_rows_of_an_undeclared_partition_are_refused(spark: Any, lake_root: Path, engine: Engine) -> None:
    overwrite_partitions(clicks(spark), target(lake_root, "one", engine), HOURS, Provenance())
    before = table(spark, lake_root)
    with pytest.raises((RowsOutsidePredicate, AuditFailed)):
        overwrite_partitions(clicks(spark, 10), target(lake_root, "two", engine), HOURS[:1], Provenance())
    assert table(spark, lake_root) == before


def test_a_plain_overwrite_would_have_deleted_the_neighbours(spark: Any, lake_root: Path) -> None:
    overwrite_partitions(clicks(spark), target(lake_root), HOURS, Provenance())
    one_hour = clicks(spark, 10).where(F.col("hour") == HOURS[0])
    one_hour.write.format("delta").mode("overwrite").save(f"{lake_root}/silver/clicks")
    assert {row[0] for row in table(spark, lake_root)} == {HOURS[0]}


def test_a_table_without_partitions_is_replaced_whole(spark: Any, lake_root: Path) -> None:
    for run, rows in (("one", 10), ("two", 4)):
        overwrite_table(clicks(spark, rows), target(lake_root, run, contract=WHOLE), Provenance())
    assert len(table(spark, lake_root, "silver.whole")) == 4
    with pytest.raises(ConfigurationError):
        overwrite_table(clicks(spark), target(lake_root), Provenance())
    with pytest.raises(ConfigurationError):
        overwrite_partitions(clicks(spark), target(lake_root), (), Provenance())


@pytest.mark.parametrize("phase", ["opened", "written", "audited"])
def test_of_two_runs_on_a_partition_one_publishes(spark: Any, lake_root: Path, tmp_path: Path, phase: str) -> None:
    overwrite_partitions(clicks(spark), target(lake_root, "before"), HOURS, Provenance())
    probe = Probe(tmp_path / "probe")
    aim = target(lake_root, "slow", probe=str(probe.folder))
    with Held(lambda: overwrite_partitions(clicks(spark, 20), aim, HOURS, Provenance()), probe, phase) as slow:
        # Nothing of the slow run is visible while it is in progress.
        assert len(table(spark, lake_root)) == 100
        overwrite_partitions(clicks(spark, 60), target(lake_root, "fast"), HOURS, Provenance())
    assert isinstance(slow.error, ConcurrentWrite)
    assert slow.error.transient
    assert len(table(spark, lake_root)) == 60


def test_runs_on_different_partitions_both_publish(spark: Any, lake_root: Path, tmp_path: Path) -> None:
    overwrite_partitions(clicks(spark, 2), target(lake_root, "before"), HOURS, Provenance())
    probe = Probe(tmp_path / "probe")
    first = clicks(spark).where(F.col("hour") == HOURS[0])
    second = clicks(spark).where(F.col("hour") == HOURS[1])
    aim = target(lake_root, "a", probe=str(probe.folder))
    with Held(lambda: overwrite_partitions(first, aim, HOURS[:1], Provenance()), probe, "audited"):
        overwrite_partitions(second, target(lake_root, "b"), HOURS[1:], Provenance())
    assert len(table(spark, lake_root)) == 100
