from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

from blogdata.contract.partitions import Grain
from blogdata.contract.publication import Account, Commit
from blogdata.contract.schema import Column
from blogdata.contract.writes import InOrder
from blogdata.errors import PlatformError
from blogdata.ledger.events import EventLog
from blogdata.ledger.executions import due, state
from blogdata.patterns.idempotency.stateful_merger import execute, restorable
from blogdata.runs.upkeep import held_versions, unneeded_data
from blogdata.table import unneeded
from blogdata.table.compactor import compact
from blogdata.table.faults import AuditFailed, ConcurrentWrite
from blogdata.table.lake import Lake
from blogdata.table.target import Provenance
from laws.stepping import Probe
from toy import LETTERS, copies_of, problems, resting, target

CONTRACT = replace(LETTERS, dataset="silver.devices_now", write=InOrder(period=Grain.DAY))
DAILY: dict[str, Sequence[tuple[Any, ...]]] = {
    "2024-10-05": [("A", "5th", False), ("B", "5th", False)],
    "2024-10-06": [("B", None, True), ("C", "6th", False)],
    "2024-10-07": [("A", "7th", False), ("D", "7th", False)],
    "2024-10-08": [("C", None, True), ("E", "8th", False)],
    "2024-10-09": [("A", "9th", False)],
    "2024-10-10": [("B", "10th", False)],
}
DAYS = tuple(DAILY)[:4]


class Table:
    def __init__(self, spark: Any, root: Path) -> None:
        self.spark, self.root, self.contract = spark, root, CONTRACT
        self.deliveries = dict(DAILY)
        self.lake = Lake(root=str(root))
        self.events = EventLog(self.lake)
        self.runs = 0

    def execute(
        self,
        period: str,
        run: str | None = None,
        rows: int | None = None,
        changes: Callable[[Any], Any] | None = None,
        probe: Probe | None = None,
    ) -> Commit:
        self.runs += 1
        into = target(self.root, run or f"run-{self.runs}", self.contract, probe=probe and str(probe.folder))
        frame = self.spark.createDataFrame(self.deliveries[period], "letter STRING, says STRING, is_deleted BOOLEAN")
        provenance = Provenance(accounts={} if rows is None else {"": Account(rows_in=rows)})
        return execute(self.spark, into, self.events, period, changes or (lambda _: frame), provenance)

    def rows(self, version: int | None = None) -> list[Any]:
        return resting(self.root, CONTRACT.dataset, version)

    def versions(self) -> dict[str, int]:
        lines = state(self.events.history(CONTRACT.dataset))
        return {execution: version for execution, version, is_applied in lines if is_applied}


daily = copies_of(lambda spark, root: [Table(spark, root).execute(day, run="before") for day in DAYS], Table)
"""The table of table 4-4: four executions of a daily job."""


def test_table_4_5_a_corrected_day_runs_again_and_then_the_days_after_it(daily: Table) -> None:
    daily.deliveries[DAYS[2]] = [("A", None, True), ("Z", "corrected", False)]
    with pytest.raises(AuditFailed, match="account"):
        daily.execute(DAYS[2], rows=99)
    assert daily.versions() == dict(zip(DAYS, (1, 2, 3, 4), strict=True)), "a refused execution undoes nothing"
    daily.execute(DAYS[2], run="theirs")
    assert daily.versions() == dict(zip(DAYS, (1, 2, 5), strict=False))
    assert daily.rows() == [("C", "6th"), ("Z", "corrected")], "merged into the second day's state"
    assert due(CONTRACT, daily.events.history(CONTRACT.dataset), []) == [DAYS[3]]
    assert set(held_versions(daily.lake, daily.events, CONTRACT, CONTRACT.dataset)) == {0, 1, 2}
    assert not daily.execute(DAYS[3], run="before").repeated, "a run that was undone is executed again"
    assert daily.execute(DAYS[3], run="before").repeated
    assert (daily.rows(), problems(daily.lake, daily.contract)) == ([("E", "8th"), ("Z", "corrected")], [])
    assert daily.versions() == dict(zip(DAYS, (1, 2, 5, 6), strict=True))


@pytest.mark.parametrize("phase", [pytest.param("audited", marks=pytest.mark.campaign), "committed"])
def test_a_day_that_dies_while_it_runs_again_is_there_whole_or_as_before(
    daily: Table, tmp_path: Path, phase: str
) -> None:
    probe, made = Probe(tmp_path / "probe"), phase == "committed"
    probe.end(phase)
    with pytest.raises(RuntimeError):
        daily.execute(DAYS[2], run="theirs", probe=probe)
    assert tuple(daily.versions().values()) == ((1, 2, 5) if made else (1, 2, 3, 4))
    assert daily.execute(DAYS[2], run="theirs").repeated == made
    assert due(CONTRACT, daily.events.history(CONTRACT.dataset), []) == [DAYS[3]]
    assert (daily.rows(), problems(daily.lake, daily.contract)) == ([("A", "7th"), ("C", "6th"), ("D", "7th")], [])


def test_an_execution_is_refused_if_another_run_merges_meanwhile(daily: Table) -> None:
    def contended(before: Any) -> Any:
        daily.execute("2024-10-09")
        return before.withColumn("is_deleted", F.lit(False))

    with pytest.raises(ConcurrentWrite):
        daily.execute(DAYS[2], changes=contended)
    assert daily.versions() == dict(zip([*DAYS, "2024-10-09"], range(1, 6), strict=True))


@pytest.mark.campaign
def test_a_version_from_before_a_column_is_restored_with_its_default(daily: Table) -> None:
    size = Column(name="size", type="INT", description="Its size", default="length(letter) + 6")
    daily.contract = replace(CONTRACT, columns=(*CONTRACT.columns, size))
    daily.execute(DAYS[2], changes=lambda before: before.where("letter = 'A'").selectExpr("*", "false AS is_deleted"))
    assert (daily.rows(), problems(daily.lake, daily.contract)) == ([("A", "5th", 7), ("C", "6th", 7)], [])


@pytest.mark.campaign
def test_figure_4_7_restoring_keeps_an_earlier_compaction(daily: Table) -> None:
    """The first compaction of the figure: the version before that of an execution, not that of the day before it."""
    fifth, sixth = "2024-10-09", "2024-10-10"
    daily.execute(fifth)
    into = target(daily.root, "compaction", CONTRACT)
    assert compact(daily.spark, into, ()) is not None
    compacted = daily.rows(6)
    for _ in range(2):
        daily.execute(sixth)
    assert daily.rows() == sorted([*compacted, ("B", "10th")])
    assert set(held_versions(daily.lake, daily.events, CONTRACT, CONTRACT.dataset)) >= {6}
    assert (daily.versions()[fifth], daily.versions()[sixth], problems(daily.lake, daily.contract)) == (5, 8, [])


def test_a_vacuumed_version_is_refused_but_rebuilds_work(daily: Table) -> None:
    table, before = daily.lake.caught_up(CONTRACT.dataset), daily.rows()
    assert table is not None
    assert table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    version = daily.lake.version(CONTRACT.dataset)
    with pytest.raises(PlatformError, match="version 2, on which 2024-10-07") as refused:
        daily.execute(DAYS[2])
    assert f"blogdata job replay dataset={CONTRACT.dataset} partitions=all" in refused.value.next_step
    assert (daily.rows(), daily.lake.version(CONTRACT.dataset)) == (before, version)
    daily.execute(DAYS[0])
    assert daily.rows() == [("A", "5th"), ("B", "5th")]
    assert due(CONTRACT, daily.events.history(CONTRACT.dataset), []) == list(DAYS[1:])


def test_maintenance_keeps_the_restore_points_of_the_executions_that_may_run_again(daily: Table) -> None:
    contract = replace(CONTRACT, write=InOrder(period=Grain.DAY, replay_limit=1))
    now = datetime.now(timezone.utc) + timedelta(days=60)
    assert set(held_versions(daily.lake, daily.events, contract, contract.dataset)) == {2, 3}
    files = unneeded_data(daily.lake, daily.events, contract, now)
    assert files
    unneeded.remove(files)
    assert [restorable(daily.lake, contract.dataset, version) for version in (1, 2, 3, 4)] == [False, True, True, True]
    assert unneeded_data(daily.lake, daily.events, contract, now) == []
