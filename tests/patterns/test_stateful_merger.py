"""Stateful Merger: an old delivery is merged into the table's earlier state, on Spark and Delta, row by row.

A permanently failing merge leaves the table as it was before its restoration.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import ArithmeticException, PySparkException
from pyspark.sql import functions as F

from blogdata.contract.partitions import Grain
from blogdata.contract.publication import Account
from blogdata.contract.schema import Column
from blogdata.contract.writes import InOrder
from blogdata.errors import PlatformError
from blogdata.ledger.executions import ReplayTooLong, due
from blogdata.ledger.held_versions import held_versions
from blogdata.patterns.idempotency.stateful_merger import restorable
from blogdata.runs.step import FullDelivery
from blogdata.runs.upkeep import unneeded_data
from blogdata.table import unneeded
from blogdata.table.committer import ConcurrentWrite
from blogdata.table.write_faults import AuditFailed
from laws.stepping import Probe
from patterns.executing import CONTRACT, DAILY, DAYS, Table, step

IN_DAYS = replace(CONTRACT, write=InOrder(period=Grain.DAY))


@pytest.fixture(scope="module")
def four_days(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lake of table 4-4: four executions of a daily job."""
    root = tmp_path_factory.mktemp("four-days") / "lake"
    root.mkdir()
    Table(spark, root, DAILY, contract=IN_DAYS).execute(*DAYS, run="before")
    return root


@pytest.fixture
def daily(spark: Any, four_days: Path, tmp_path: Path) -> Table:
    """A copy of that lake for each test."""
    return Table(spark, shutil.copytree(four_days, tmp_path / "daily"), DAILY, contract=IN_DAYS)


def test_table_4_5_no_restoration_follows_a_backfill(daily: Table) -> None:
    """A corrected third day runs again, and then the run of all days for the fourth.

    The book does not count the restoration as a version; here it is a commit of its own, number 5.
    """
    daily.deliveries[DAYS[2]] = [("A", None, True), ("Z", "corrected", False)]
    daily.execute(DAYS[2], run="theirs")
    assert (daily.versions(), daily.gone()) == (dict(zip(DAYS, (1, 2, 6), strict=False)), [DAYS[3]])
    assert not daily.execute(DAYS[3], run="before").repeated, "a run that was restored over is executed again"
    assert daily.operations() == ["CREATE TABLE", *["MERGE"] * 4, "RESTORE", "MERGE", "MERGE"]
    assert daily.rows(5) == daily.rows(2), "restored to the second day's state"
    assert daily.versions() == dict(zip(DAYS, (1, 2, 6, 7), strict=True))
    assert (daily.gone(), daily.problems()) == ([], [])


def test_a_version_from_before_a_column_is_restored_with_its_default(daily: Table) -> None:
    size = Column(name="size", type="INT", description="Its size", default="length(letter) + 6")
    daily.contract = replace(daily.contract, columns=(*daily.contract.columns, size))
    before = daily.rows(2)
    changes = daily.frame([("Z", "sized", False)]).withColumn("size", F.lit(1))
    daily.execute(DAYS[2], changes=lambda _: changes)
    after: list[Any] = [*((*row, 7) for row in before), ("Z", "sized", 1)]
    assert list[Any](daily.rows()) == sorted(after)
    assert (daily.gone(), daily.problems()) == ([DAYS[3]], [])


def test_figure_4_7_restoring_keeps_an_earlier_compaction(daily: Table) -> None:
    """The first compaction of the figure: the version before that of an execution, not that of the day before it."""
    fifth, sixth = "2024-10-09", "2024-10-10"
    daily.deliveries.update({day: [(day, "new", False)] for day in (fifth, sixth)})
    daily.execute(fifth)
    # Added rows are in files of their own: there is something to compact.
    daily.compact()
    for _ in range(2):
        daily.execute(sixth)
    assert daily.operations()[5:] == ["MERGE", "OPTIMIZE", "MERGE", "RESTORE", "MERGE"]
    assert daily.rows(8) == daily.rows(6) == daily.rows(5)
    assert (daily.versions()[fifth], daily.versions()[sixth], daily.problems()) == (5, 9, [])


@pytest.mark.campaign
@pytest.mark.parametrize("phase", ["committed", "audited"])
def test_a_restoration_cut_off_is_atomic_and_retried(daily: Table, probe: Probe, phase: str) -> None:
    before, version = daily.rows(), daily.lake.version(CONTRACT.dataset)
    assert version is not None
    probe.end(phase)
    with pytest.raises(Exception, match=f"the write was ended at {phase}"):
        daily.execute(DAYS[2], run="cut off", lost=True, probe=str(probe.folder))
    restored = phase == "committed"
    assert daily.lake.version(CONTRACT.dataset) == version + restored
    assert daily.rows() == (daily.rows(2) if restored else before)
    assert daily.problems() == [], "between restoration and merge the table has the second day's state"
    assert daily.gone() == (list(DAYS[2:]) if restored else [])
    daily.execute(DAYS[2], run="cut off")
    assert daily.backfill() == [DAYS[3]]
    assert (daily.rows(), daily.versions()) == (before, dict(zip(DAYS, (1, 2, 6, 7), strict=True)))


def test_a_vacuumed_version_is_refused_but_rebuilds_work(daily: Table) -> None:
    table = daily.lake.caught_up(CONTRACT.dataset)
    assert table is not None
    before = daily.rows()
    assert restorable(daily.lake, CONTRACT.dataset, 2)
    assert table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert not restorable(daily.lake, CONTRACT.dataset, 2)
    version = daily.lake.version(CONTRACT.dataset)
    with pytest.raises(PlatformError, match="version 2, on which 2024-10-07") as refused:
        daily.execute(DAYS[2])
    (advised,) = [part for part in refused.value.next_step.split(": ") if part.startswith("blogdata")]
    assert advised == f"blogdata job replay dataset={CONTRACT.dataset} partitions=all", "no other day is suggested"
    assert (daily.rows(), daily.lake.version(CONTRACT.dataset)) == (before, version)
    assert due(daily.contract, daily.events.executions(CONTRACT.dataset), DAYS) == list(DAYS)
    daily.execute(DAYS[0])
    assert (daily.letters(), daily.gone()) == ("AB", list(DAYS[1:]))


def test_maintenance_keeps_the_restore_points_of_the_executions_that_may_run_again(daily: Table) -> None:
    contract = replace(daily.contract, write=InOrder(period=Grain.DAY, replay_limit=1))
    held = [daily.lake.at(contract.dataset, version) for version in (2, 3, 4)]
    rows_then = [one.to_pyarrow_table().num_rows for one in held]
    now = datetime.now(timezone.utc) + timedelta(days=60)
    assert set(held_versions(daily.lake, daily.events, contract, contract.dataset)) == {2, 3}
    found = unneeded_data(daily.lake, daily.events, contract, now)
    assert found == unneeded.data_files(daily.lake, contract.dataset, {2, 3}, now) != []
    unneeded.remove(found)
    assert [restorable(daily.lake, contract.dataset, version) for version in (1, 2, 3, 4)] == [False, True, True, True]
    assert unneeded_data(daily.lake, daily.events, contract, now) == []
    assert [one.to_pyarrow_table().num_rows for one in held] == rows_then


def test_too_many_executions_are_replayed_only_when_named(daily: Table) -> None:
    contract = replace(daily.contract, write=InOrder(period=Grain.DAY, replay_limit=2))
    marks = daily.events.executions(CONTRACT.dataset)
    assert due(contract, marks, [DAYS[1]]) == list(DAYS[1:])
    with pytest.raises(ReplayTooLong, match="3 later executions") as refused:
        due(contract, marks, [DAYS[0]])
    assert f"{DAYS[0]}..{DAYS[3]}" in refused.value.next_step
    assert due(contract, marks, DAYS) == list(DAYS)


def overflowing(table: Table) -> Any:
    return table.frame([("A", "new", False)]).withColumn("says", F.expr("CAST(length(says) + 2147483647 AS STRING)"))


def test_a_permanent_error_undoes_the_restoration(daily: Table) -> None:
    before, versions = daily.rows(), daily.versions()
    with pytest.raises(ArithmeticException):
        daily.execute(DAYS[2], changes=lambda _: overflowing(daily))
    assert daily.operations()[5:] == ["RESTORE", "RESTORE"]
    assert (daily.rows(), daily.versions(), daily.gone()) == (before, versions, [])
    assert daily.problems() == []


def contended(before: Any) -> Any:
    raise ConcurrentWrite(what="another run was first", where=CONTRACT.dataset, next_step="it is retried")


@pytest.fixture
def tried(spark: Any, daily: Table) -> Table:
    """The table whose third day one run has tried twice: the server was lost, then another was first."""

    def lose(_: Any) -> Any:
        raise PySparkException("Socket closed")

    losing = step(spark, daily.root, IN_DAYS, DAYS[2], run="the same")
    with pytest.raises(PySparkException, match="Socket closed"):
        losing.publish(lambda _: FullDelivery(rows=lose, account=Account(rows_in=1)))
    assert (daily.operations()[5:], daily.gone()) == (["RESTORE"], list(DAYS[2:]))
    with pytest.raises(ConcurrentWrite):
        daily.execute(DAYS[2], changes=contended, run="the same")
    return daily


def test_a_retry_reuses_the_restoration_after_transient_errors_and_server_loss(tried: Table) -> None:
    assert (tried.operations()[5:], tried.gone()) == (["RESTORE"], list(DAYS[2:]))
    tried.execute(DAYS[2], run="the same")
    assert tried.operations()[5:] == ["RESTORE", "MERGE"]
    assert (tried.rows(), tried.gone()) == (tried.rows(3), [DAYS[3]])


@pytest.mark.matrix(1000)
@pytest.mark.parametrize("run", ["the same", "another"])
def test_a_refused_retry_undoes_the_first_trys_restoration(tried: Table, run: str) -> None:
    with pytest.raises(AuditFailed, match="account"):
        tried.execute(DAYS[2], rows=99, run=run)
    assert tried.operations()[5:] == ["RESTORE", "RESTORE"]
    assert (tried.rows(), tried.gone()) == (tried.rows(4), [])
    assert tried.versions() == dict(zip(DAYS, (1, 2, 3, 4), strict=True))
    assert tried.problems() == []
