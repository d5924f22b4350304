"""Spark generates no code and plans in one job for few rows, not for many, and a configured mode is never changed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

import plans
from blogdata.contract.publication import Account
from blogdata.patterns.idempotency.data_overwrite import overwrite_partitions
from blogdata.table.target import Provenance
from toy import HOURS, accounts, clicks, resting, target

MODE = "spark.sql.codegen.factoryMode"
ADAPTIVE, PARTITIONS = "spark.sql.adaptive.enabled", "spark.sql.shuffle.partitions"
ROWS = 4
MANY = 10_000


def many() -> Mapping[str, Account]:
    return {
        key: Account(rows_in=account.rows_in + MANY, reasons={"left_out": MANY})
        for key, account in accounts(ROWS).items()
    }


def task_setting(setting: str = MODE) -> Column:
    # Nested, because Spark's workers cannot import the tests.
    def of(_):  # type: ignore[no-untyped-def]  # Spark would take hints for those of Arrow.
        from pyspark import TaskContext

        task = TaskContext.get()
        assert task is not None
        return task.getLocalProperty(setting)

    return F.udf(of, "string")("click")


def overwrite(session: Any, root: Path, run: str, page: Column, *, dimension: Any = None, rows: int = ROWS) -> None:
    given = clicks(session, ROWS).withColumn("page", page)
    if dimension is not None:
        given = given.join(dimension.select("click").distinct(), on="click", how="left").select(*given.columns)
    accounted = accounts(ROWS) if rows == ROWS else many()
    overwrite_partitions(given, target(root, run), HOURS, Provenance(accounts=accounted))


def test_few_rows_are_planned_in_one_job(session: Any, lake_root: Path) -> None:
    few = {MODE: "NO_CODEGEN", ADAPTIVE: "false", PARTITIONS: "1"}
    plans.configure(session, plans.AS_IN_PRODUCTION)
    usual = {setting: session.conf.get(setting) for setting in few}
    settings = F.concat_ws(" ", *(F.coalesce(task_setting(setting), F.lit("none")) for setting in few))
    overwrite(session, lake_root, "few", settings)
    assert {page for *_, page in resting(lake_root)} == {" ".join(few.values())}
    assert {setting: session.conf.get(setting) for setting in few} == usual
    assert all(usual[setting] != few[setting] for setting in few)
    overwrite(session, lake_root, "many", settings, rows=MANY)
    (seen_by_many,) = {tuple(page.split()) for *_, page in resting(lake_root)}
    assert all(value in ("none", usual[setting]) for setting, value in zip(few, seen_by_many, strict=True))
