"""Stateful Merger: a permanently failing merge leaves the table as it was before its restoration."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import ArithmeticException, PySparkException
from pyspark.sql import functions as F

from blogdata.lake.commit import Account, Commit
from blogdata.lake.store_faults import DataFileDamaged
from blogdata.orchestration.step import FullDelivery
from blogdata.publish.partitions import Grain
from blogdata.publish.write_faults import (
    AmbiguousChange,
    AuditFailed,
    SchemaMismatch,
)
from blogdata.publish.writes import InOrder
from blogdata.table.committer import ConcurrentWrite
from idempotency.executing import CONTRACT, DAILY, DAYS, Table, step

pytestmark = pytest.mark.matrix(7)
IN_DAYS = replace(CONTRACT, write=InOrder(period=Grain.DAY))


def with_a_lost_file(table: Table) -> Any:
    path = table.root.with_name("delivery")
    table.frame([("A", "new", False)]).write.format("delta").save(str(path))
    delivery = table.spark.read.format("delta").load(str(path))
    for file in path.glob("*.parquet"):
        file.unlink()
    return delivery


def overflowing(table: Table) -> Any:
    return table.frame([("A", "new", False)]).withColumn("says", F.expr("CAST(length(says) + 2147483647 AS STRING)"))


@pytest.mark.matrix(100)
@pytest.mark.parametrize(
    ("delivery", "error"),
    [
        (overflowing, ArithmeticException),
        (lambda table: table.frame([("A", "one", False), ("A", "other", False)]), AmbiguousChange),
        (lambda table: table.frame([(None, "new", False)]), AuditFailed),
        (
            lambda table: table.frame([("A", "new", False)]).withColumn("says", F.expr("CAST(says AS INT)")),
            SchemaMismatch,
        ),
        (with_a_lost_file, DataFileDamaged),
    ],
    ids=[
        "what nobody foresaw",
        "two changes of a row",
        "a row without a key",
        "a value of another type",
        "a lost file",
    ],
)
def test_every_permanent_merge_error_undoes_the_restoration(
    daily: Table, delivery: Callable[[Table], Any], error: type[Exception]
) -> None:
    before, versions = daily.rows(), daily.versions()
    with pytest.raises(error):
        daily.execute(DAYS[2], changes=lambda _: delivery(daily))
    assert daily.operations()[5:] == ["RESTORE", "RESTORE"]
    assert (daily.rows(), daily.versions(), daily.gone()) == (before, versions, [])
    assert daily.problems() == []


def contended(before: Any) -> Any:
    raise ConcurrentWrite(what="another run was first", where=CONTRACT.dataset, next_step="it is retried")


@pytest.fixture(scope="module")
def restored(spark: Any, four_days: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lake of a daily job whose third day one run has tried twice: the server was lost, then another was first."""
    root = shutil.copytree(four_days, tmp_path_factory.mktemp("restored") / "lake")
    table = Table(spark, root, DAILY, contract=IN_DAYS)

    def lose(_: Any) -> Any:
        raise PySparkException("Socket closed")

    losing = step(spark, root, IN_DAYS, DAYS[2], run="the same")
    with pytest.raises(PySparkException, match="Socket closed"):
        losing.publish(lambda _: FullDelivery(rows=lose, account=Account(rows_in=1)))
    assert (table.operations()[5:], table.gone()) == (["RESTORE"], list(DAYS[2:]))
    with pytest.raises(ConcurrentWrite):
        table.execute(DAYS[2], changes=contended, run="the same")
    return root


@pytest.fixture
def tried(spark: Any, restored: Path, tmp_path: Path) -> Table:
    return Table(spark, shutil.copytree(restored, tmp_path / "tried"), DAILY, contract=IN_DAYS)


def test_a_retry_reuses_the_restoration_after_transient_errors_and_server_loss(tried: Table) -> None:
    assert (tried.operations()[5:], tried.gone()) == (["RESTORE"], list(DAYS[2:]))
    tried.execute(DAYS[2], run="the same")
    assert tried.operations()[5:] == ["RESTORE", "MERGE"]
    assert (tried.rows(), tried.gone()) == (tried.rows(3), [DAYS[3]])


@pytest.mark.parametrize("run", ["the same", "another"])
def test_a_refused_retry_undoes_the_first_trys_restoration(tried: Table, run: str) -> None:
    with pytest.raises(AuditFailed, match="account"):
        tried.execute(DAYS[2], rows=99, run=run)
    assert tried.operations()[5:] == ["RESTORE", "RESTORE"]
    assert (tried.rows(), tried.gone()) == (tried.rows(4), [])
    assert tried.versions() == dict(zip(DAYS, (1, 2, 3, 4), strict=True))
    assert tried.problems() == []


@pytest.mark.campaign
def test_a_refused_later_day_undoes_the_backfill(daily: Table) -> None:
    before = daily.rows()
    daily.deliveries[DAYS[1]] = [("A", None, True), ("Z", "corrected", False)]
    daily.execute(DAYS[1])
    with pytest.raises(AuditFailed, match="account"):
        daily.execute(DAYS[2], rows=99)
    assert daily.rows() == before, "and not the second day's state"
    assert (daily.gone(), daily.problems()) == ([DAYS[1]], [])
    assert daily.backfill() == list(DAYS[1:]), "missing executions are merged again"
    assert "Z" in daily.letters()
    assert (daily.gone(), daily.problems()) == ([], [])


def test_a_repeated_run_restores_what_refusal_removed(daily: Table) -> None:
    """Each day delivers the full set of its own letters."""

    def merge(days: tuple[str, ...], run: str, wrong: tuple[str, ...] = ()) -> Commit:
        def delivery(day: str) -> FullDelivery:
            letter = daily.frame([(day[-1], day, False)]).drop("is_deleted")
            return FullDelivery(rows=lambda _: letter, account=Account(rows_in=99 if day in wrong else 1))

        planned = step(daily.spark, daily.root, daily.contract, *days, run=run)
        return planned.publish(delivery)[daily.contract.dataset]

    before = daily.rows()
    with pytest.raises(AuditFailed, match="account"):
        merge(DAYS[2:], "a run", wrong=DAYS[3:])
    assert (daily.rows(), daily.gone()) == (before, [DAYS[2]]), "not the state of the old day that was merged"
    assert daily.problems() == []
    assert list(merge(DAYS[3:], "another run").entries) == list(DAYS[2:]), "missing executions are merged again"
    assert (daily.letters(), daily.gone(), daily.problems()) == ("8", [], [])
