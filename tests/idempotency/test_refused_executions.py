"""Stateful Merger: a merge that fails for good leaves the table as it was before it was restored for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import functions as F

from idempotency.executing import CONTRACT, DAILY, DAYS, Table
from patterns.core.errors import PlatformError
from patterns.core.store_faults import DataFileDamaged
from patterns.quality.write_faults import (
    AmbiguousChange,
    AuditFailed,
    ConcurrentWrite,
    ConstraintViolated,
    SchemaMismatch,
)
from patterns.storage.tables import SchemaDrift

pytestmark = pytest.mark.matrix(2)


@pytest.mark.parametrize("day", [DAYS[0], DAYS[2]])
def test_a_merge_that_is_refused_leaves_the_table_as_it_was_before_the_restoration(daily: Table, day: str) -> None:
    before, versions = daily.rows(), daily.versions()
    with pytest.raises(AuditFailed, match="account"):
        daily.execute(day, rows=99)
    assert (daily.rows(), daily.versions(), daily.gone()) == (before, versions, [])
    assert daily.problems() == []


def with_a_lost_file(table: Table) -> Any:
    path = table.root.with_name("delivery")
    table.frame([("A", "new", False)]).write.format("delta").save(str(path))
    delivery = table.spark.read.format("delta").load(str(path))
    for file in path.glob("*.parquet"):
        file.unlink()
    return delivery


@pytest.mark.parametrize(
    ("delivery", "error"),
    [
        (lambda table: table.frame([("A", "one", False), ("A", "other", False)]), AmbiguousChange),
        (lambda table: table.frame([(None, "new", False)]), ConstraintViolated),
        (
            lambda table: table.frame([("A", "new", False)]).withColumn("says", F.expr("CAST(says AS INT)")),
            SchemaMismatch,
        ),
        (with_a_lost_file, DataFileDamaged),
    ],
    ids=["two changes of a row", "a row without a key", "a value of another type", "a lost file"],
)
def test_whatever_ends_a_merge_for_good_leaves_the_table_as_it_was_before_the_restoration(
    daily: Table, delivery: Callable[[Table], Any], error: type[PlatformError]
) -> None:
    before, versions = daily.rows(), daily.versions()
    with pytest.raises(error):
        daily.execute(DAYS[2], changes=lambda _: delivery(daily))
    assert daily.operations()[5:] == ["RESTORE", "RESTORE"]
    assert (daily.rows(), daily.versions(), daily.gone()) == (before, versions, [])
    assert daily.problems() == []


def test_a_contract_that_does_not_fit_the_restored_table_leaves_the_one_before(spark: Any, daily: Table) -> None:
    before, versions = daily.rows(), daily.versions()
    narrower = replace(daily.contract, columns=daily.contract.columns[:1])
    with pytest.raises(SchemaDrift):
        Table(spark, daily.root, DAILY, contract=narrower).execute(DAYS[2])
    assert (daily.rows(), daily.versions(), daily.gone()) == (before, versions, [])


def test_after_a_transient_error_the_restored_table_is_what_the_retry_goes_on_with(daily: Table) -> None:
    def contended(before: Any) -> Any:
        raise ConcurrentWrite(what="another run was first", where=CONTRACT.dataset, next_step="it is retried")

    with pytest.raises(ConcurrentWrite):
        daily.execute(DAYS[2], changes=contended, run="contended")
    assert daily.gone() == list(DAYS[2:])
    daily.execute(DAYS[2], run="contended")
    assert daily.operations()[5:] == ["RESTORE", "MERGE"]
