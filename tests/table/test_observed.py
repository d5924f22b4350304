"""Rows are counted while they are written; what is read back, by anybody, is what was counted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from blogdata.contract.schema import Audit, Column
from blogdata.errors import TransientError
from blogdata.patterns.idempotency.data_overwrite import overwrite_partitions, overwrite_table
from blogdata.table.actions import files_below
from blogdata.table.faults import AuditFailed
from blogdata.table.lake import Lake
from blogdata.table.observed import FEW, enforced
from blogdata.table.target import Provenance
from toy import CONTRACT, WHOLE, resting, table, target

ODD = ("ü", "a b/c:%é", "x'y\"{z}[1]*?~+")
PLAIN = replace(CONTRACT, key=(), measures={}, breakdowns={}, audits=(), reasons={}, stands_for="count(1)")
TIMED = replace(
    WHOLE,
    dataset="silver.timed",
    columns=(
        *WHOLE.columns,
        Column(name="moment", type="TIMESTAMP", description="When"),
        Column(name="even", type="BOOLEAN", description="Whether its number is even", generated="click % 2 = 0"),
    ),
    statistics=("click", "moment"),
    breakdowns={},
)


def rows(spark: Any, *values: str) -> Any:
    made = spark.createDataFrame([(value, number) for number, value in enumerate(values)], "hour STRING, click BIGINT")
    return made.selectExpr("hour", "click", "1L AS stands_for", "'/' AS page")


def numbered(spark: Any, count: int, *more: str, click: str = "id", tasks: int = 1) -> Any:
    rows = spark.range(0, count, numPartitions=tasks)
    return rows.selectExpr("'h' AS hour", f"{click} AS click", "1L AS stands_for", "'/' AS page", *more)


def test_partitions_of_any_name_are_written_replaced_and_read(spark: Any, lake_root: Path) -> None:
    def write(run: str, *values: str) -> None:
        frame = rows(spark, *values)
        overwrite_partitions(frame, target(lake_root, run, PLAIN), values, Provenance())

    def paths() -> list[str]:
        opened = Lake(root=str(lake_root)).table(PLAIN.dataset)
        assert opened is not None
        return [str(path) for path in opened.get_add_actions(flatten=True)["path"].to_pylist()]

    write("all", *ODD)
    folders = sorted(Path(path).parent.name for path in paths())
    for value in ODD:
        write(f"only {value}", value)
    expected = sorted((value, 0, 1, "/") for value in ODD)
    assert table(spark, lake_root) == resting(lake_root) == expected
    assert all(path.isascii() and "%" not in path for path in paths())
    # A single partition has the folder that it has among others.
    assert sorted(Path(path).parent.name for path in paths()) == folders


def test_the_conditions_and_statistics_of_the_table_are_kept(spark: Any, lake_root: Path) -> None:
    moment = "timestamp_micros(1767571200000000 + id * 1000001) AS moment"
    frame = numbered(spark, 10, moment, "id % 2 = 0 AS even")
    aim = target(lake_root, "one", contract=TIMED)
    commit = overwrite_table(frame, aim, Provenance())
    assert commit.rows_out == 10
    opened = aim.lake.table(TIMED.dataset)
    assert opened is not None
    assert {"positive", "not_null.click", "not_null.hour", "generated.even"} == set(enforced(opened))
    log = Path(lake_root, "silver", "timed", "_delta_log", f"{commit.version:020d}.json").read_text()
    (add,) = [line["add"] for line in map(json.loads, log.splitlines()) if "add" in line]
    statistics = json.loads(add["stats"])
    assert statistics["minValues"] == {"click": 0, "moment": "2026-01-05T00:00:00.000Z"}
    assert statistics["maxValues"] == {"click": 9, "moment": "2026-01-05T00:00:09.001Z"}
    written = pq.read_metadata(Path(lake_root, "silver", "timed", add["path"]))
    assert statistics["numRecords"] == written.num_rows == 10
    opened.alter.add_constraint({"of_others": "click <> 50"})
    wrong = frame.withColumn("even", F.expr("click < 5")).withColumn("click", F.expr("if(click = 9, 50, click)"))
    with pytest.raises(AuditFailed) as refused:
        overwrite_table(wrong, target(lake_root, "two", contract=TIMED), Provenance())
    found = {(item.rule, item.found) for item in refused.value.violations}
    assert found == {("generated.even", 5), ("of_others", 1)}


def test_files_that_lack_counted_rows_are_not_committed(spark: Any, lake_root: Path) -> None:
    frame, aim = numbered(spark, 10, tasks=2), target(lake_root, "one", contract=PLAIN)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("blogdata.table.observed.files_below", lambda *given, **how: files_below(*given, **how)[1:])
        with pytest.raises(TransientError, match="written files have") as refused:
            overwrite_partitions(frame, aim, ["h"], Provenance())
    assert refused.value.transient
    assert resting(lake_root) == []
    overwrite_partitions(frame, aim, ["h"], Provenance())
    assert len(resting(lake_root)) == 10


@pytest.mark.parametrize(
    ("few", "key"), [(FEW, ["click"]), (0, ["click"]), (FEW, ["click", "place"])], ids=["client", "Spark", "nested"]
)
def test_repeated_keys_are_found(
    spark: Any, lake_root: Path, monkeypatch: pytest.MonkeyPatch, few: int, key: list[str]
) -> None:
    monkeypatch.setattr("blogdata.table.observed.FEW", few)
    nested = Column(name="place", type="STRUCT<x: BIGINT>", description="Where")
    contract = replace(PLAIN, columns=(*PLAIN.columns, nested), key=tuple(key))
    frame = numbered(spark, 5, "named_struct('x', id % 2) AS place", click="id % 2")
    with pytest.raises(AuditFailed) as refused:
        overwrite_partitions(frame, target(lake_root, contract=contract), ["h"], Provenance())
    assert [(item.rule, item.found) for item in refused.value.violations] == [("unique." + "+".join(key), 3)]


@pytest.mark.parametrize("measure", ["-count_if(click < 0)", "0 - count(distinct page)"], ids=["observed", "queried"])
def test_a_table_without_rows_is_measured_and_audited(spark: Any, lake_root: Path, measure: str) -> None:
    contract = replace(WHOLE, breakdowns={}, reasons={"kept": measure}, measures={})
    nothing = rows(spark, "h").limit(0)
    entry = overwrite_table(nothing, target(lake_root, "one", contract=contract), Provenance()).entries[""]
    assert (entry.rows_out, entry.reasons) == (0, {"kept": 0})
    some = replace(contract, audits=(Audit(name="some", expression="count(1) > 0", description="Never empty"),))
    with pytest.raises(AuditFailed) as refused:
        overwrite_table(nothing, target(lake_root, "two", contract=some), Provenance())
    assert [item.rule for item in refused.value.violations] == ["some"]
