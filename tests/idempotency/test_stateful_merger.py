"""Stateful Merger: an old delivery is merged into the table's earlier state, on Spark and Delta, row by row."""

from __future__ import annotations

import functools
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from blogdata.errors import ConfigurationError
from blogdata.evidence.executions import ReplayTooLong, due, state
from blogdata.evidence.held_versions import held_versions
from blogdata.lake import unneeded
from blogdata.lake.commit import Commit
from blogdata.orchestration import maintenance
from blogdata.orchestration.maintenance import Inspection
from blogdata.orchestration.upkeep import Vacuuming
from blogdata.patterns.idempotency.stateful_merger import VersionVacuumed, restorable
from blogdata.publish.partitions import Grain
from blogdata.publish.publish import restate
from blogdata.publish.target import Engine, Provenance
from blogdata.publish.write_faults import AuditFailed, ConcurrentWrite
from blogdata.publish.writes import InOrder, Replace
from idempotency.executing import CONTRACT, DAILY, DAYS, EIGHT, NINE, TABLE_4_1, TEN, Table
from laws.stepping import Probe
from laws.writers import meanwhile
from tidied import whole
from toy import target

ENFORCED = "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration"


@pytest.fixture
def probe(tmp_path: Path) -> Iterator[Probe]:
    made = Probe(tmp_path / "probe")
    yield made
    made.release()


@dataclass(frozen=True)
class Hours:
    """A table after the four executions of table 4-1, and its rows after each of them."""

    table: Table
    seen: Mapping[str, Sequence[tuple[str, str | None]]]


@pytest.fixture(scope="module")
def hourly(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Engine], Hours]:
    """Executes the hours once for each requested way to write."""

    @functools.cache
    def execute(engine: Engine) -> Hours:
        table, seen = Table(spark, tmp_path_factory.mktemp("hourly"), TABLE_4_1, engine), {}
        for period in TABLE_4_1:
            table.execute(period)
            seen[period] = table.rows()
        return Hours(table, seen)

    return execute


@pytest.mark.campaign
@pytest.mark.parametrize("engine", list(Engine), ids=lambda engine: engine.value)
def test_table_4_2_backfills_show_the_original_rows(
    spark: Any, hourly: Callable[[Engine], Hours], tmp_path: Path, engine: Engine
) -> None:
    """The plain Merger shows ABCMNO, ACMNO, ACMNO instead: tests/idempotency/test_merger.py."""
    made = hourly(engine)
    assert ["".join(letter for letter, _ in rows) for rows in made.seen.values()] == ["A", "AB", "AC", "ACMNO"]
    table = Table(spark, shutil.copytree(made.table.root, tmp_path / "backfilled"), TABLE_4_1, engine)
    for period in (EIGHT, NINE, TEN):
        table.execute(period, run=f"backfill of {period}")
        assert table.rows() == made.seen[period]
        assert table.problems() == []
    assert table.gone() == []


@pytest.mark.campaign
def test_table_4_4_rerunning_day_one_starts_empty(daily: Table) -> None:
    assert daily.versions() == {"2024-10-05": 1, "2024-10-06": 2, "2024-10-07": 3, "2024-10-08": 4}
    assert daily.operations() == ["CREATE TABLE", *["MERGE"] * 4], "a normal run restores nothing"
    daily.execute("2024-10-05")
    assert daily.letters() == "AB", "the first one begins with an empty table"
    assert daily.versions() == {"2024-10-05": 6}
    assert daily.gone() == [*DAYS[1:]]
    assert daily.problems() == []


@dataclass(frozen=True, kw_only=True)
class Backfilled:
    """The table of a daily job after its third day ran again, and after the run of all days ran again for the fourth.

    Args:
        applied: The versions of the executions after the third day, and those that are missing.
        again: The commit of the fourth day.
    """

    table: Table
    applied: Mapping[str, int]
    gone: Sequence[str]
    again: Commit


@pytest.fixture(scope="module")
def backfilled(spark: Any, four_days: Path, tmp_path_factory: pytest.TempPathFactory) -> Backfilled:
    root = shutil.copytree(four_days, tmp_path_factory.mktemp("backfilled") / "lake")
    table = Table(spark, root, DAILY, contract=replace(CONTRACT, write=InOrder(period=Grain.DAY)))
    table.execute("2024-10-07", run="theirs")
    lines = state(table.events.executions(CONTRACT.dataset))
    applied, gone = {key: line.version for key, line in lines.items()}, table.gone()
    return Backfilled(table=table, applied=applied, gone=gone, again=table.execute("2024-10-08", run="before"))


def test_table_4_5_no_restoration_follows_a_backfill(backfilled: Backfilled) -> None:
    """The book does not count the restoration as a version; here it is a commit of its own, number 5."""
    table = backfilled.table
    assert backfilled.applied == dict(zip(DAYS, (1, 2, 6, 4), strict=True))
    assert backfilled.gone == ["2024-10-08"]
    assert table.rows(5) == table.rows(2), "restored to the second day's state"
    assert table.versions() == dict(zip(DAYS, (1, 2, 6, 7), strict=True))
    assert table.operations()[5:] == ["RESTORE", "MERGE", "MERGE"]


def test_a_run_restored_over_is_executed_again(backfilled: Backfilled) -> None:
    table = backfilled.table
    assert not backfilled.again.repeated
    assert [table.rows(version) for version in (6, 7)] == [table.rows(version) for version in (3, 4)]
    assert (table.gone(), table.problems()) == ([], [])


def test_a_restoration_is_audited_like_every_write(spark: Any, daily: Table) -> None:
    before, version = daily.rows(), daily.lake.version(CONTRACT.dataset)
    aim = target(daily.root, "restoring", contract=daily.contract)
    with pytest.raises(AuditFailed, match="rows"):
        restate(
            spark, aim, "RESTORE TABLE {table} TO VERSION AS OF 2", Provenance(expected={"": {"rows": len(before) + 7}})
        )
    assert (daily.rows(), daily.lake.version(CONTRACT.dataset)) == (before, version)


def test_figure_4_7_restoring_keeps_an_earlier_compaction(daily: Table) -> None:
    """The first compaction of the figure: the version before that of an execution, not that of the day before it."""
    fifth, sixth = "2024-10-09", "2024-10-10"
    daily.deliveries.update({day: [(day, "new", False)] for day in (fifth, sixth)})
    daily.execute(fifth)
    # Added rows are in files of their own: there is something to compact.
    daily.compact()
    daily.execute(sixth)
    assert (daily.operations()[5:], daily.versions()[sixth]) == (["MERGE", "OPTIMIZE", "MERGE"], 7)
    daily.execute(sixth)
    assert daily.files(8) == daily.files(6) != daily.files(5), "version 7 - 1"
    assert (daily.versions()[fifth], daily.versions()[sixth], daily.problems()) == (5, 9, [])


@pytest.mark.campaign
def test_a_backfill_equals_a_rebuild_from_scratch(spark: Any, daily: Table, tmp_path: Path) -> None:
    daily.deliveries["2024-10-06"] = [("A", None, True), ("Z", "corrected", False)]
    assert daily.backfill("2024-10-06") == list(DAYS[1:])
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    rebuilt = Table(spark, scratch, daily.deliveries, contract=daily.contract)
    rebuilt.execute(*DAYS)
    assert daily.rows() == rebuilt.rows()
    assert daily.gone() == []
    assert daily.problems() == []


@pytest.mark.campaign
@pytest.mark.matrix(8)
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


@pytest.mark.campaign
def test_without_the_jar_a_restoration_replaces_no_commit(daily: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Table(daily.spark, daily.root, DAILY, Engine.CHECKPOINT, daily.contract)
    daily.deliveries["2024-10-09"] = [("F", "9th", False)]
    meanwhile(monkeypatch, lambda: daily.execute("2024-10-09", run="fast"))
    with pytest.raises(ConcurrentWrite):
        plain.execute(DAYS[1], run="slow")
    assert "F" in daily.letters()
    before = daily.rows()
    plain.deliveries["2024-10-09"] = daily.deliveries["2024-10-09"]
    assert plain.backfill(DAYS[1]) == [*DAYS[1:], "2024-10-09"]
    assert daily.rows() == before


def test_a_restoration_from_a_stale_version_is_refused(spark: Any, daily: Table) -> None:
    aim = target(daily.root, "late", contract=daily.contract)
    with pytest.raises(ConcurrentWrite):
        restate(spark, aim, "RESTORE TABLE {table} TO VERSION AS OF 2", Provenance(), at=3)
    assert daily.lake.version(CONTRACT.dataset) == 4


def test_a_vacuumed_version_is_refused_but_rebuilds_work(daily: Table) -> None:
    table = daily.lake.caught_up(CONTRACT.dataset)
    assert table is not None
    before = daily.rows()
    assert restorable(daily.lake, CONTRACT.dataset, 2)
    assert table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert not restorable(daily.lake, CONTRACT.dataset, 2)
    version = daily.lake.version(CONTRACT.dataset)
    with pytest.raises(VersionVacuumed, match="version 2, on which 2024-10-07") as refused:
        daily.execute(DAYS[2])
    (advised,) = [part for part in refused.value.next_step.split(": ") if part.startswith("blogdata")]
    assert advised == f"blogdata plan --replay {CONTRACT.dataset} --partitions all", "no other day is suggested"
    assert (daily.rows(), daily.lake.version(CONTRACT.dataset)) == (before, version)
    assert due(daily.contract, daily.events.executions(CONTRACT.dataset), DAYS) == list(DAYS)
    daily.execute(DAYS[0])
    assert (daily.letters(), daily.gone()) == ("AB", list(DAYS[1:]))


def test_maintenance_keeps_the_restore_points_of_the_executions_that_may_run_again(daily: Table) -> None:
    contract, folder = replace(daily.contract, write=InOrder(period=Grain.DAY, replay_limit=1)), daily.lake.folder
    held = [daily.lake.at(contract.dataset, version) for version in (2, 3, 4)]
    rows_then = [one.to_pyarrow_table().num_rows for one in held]
    then = time.time() - 60 * 24 * 3600
    for file in Path(folder(contract.dataset) or "").rglob("*"):
        os.utime(file, (then, then))
    seen = Inspection(lake=daily.lake, events=daily.events, now=datetime.now(timezone.utc))
    assert set(held_versions(daily.lake, daily.events, contract, contract.dataset)) == {2, 3}
    assert whole(maintenance.look(seen, [Vacuuming()], [contract])) != []
    unneeded.remove(unneeded.data_files(daily.lake, contract.dataset, {2, 3}, seen.now))
    assert [restorable(daily.lake, contract.dataset, version) for version in (1, 2, 3, 4)] == [False, True, True, True]
    assert whole(maintenance.look(seen, [Vacuuming()], [contract])) == []
    assert [one.to_pyarrow_table().num_rows for one in held] == rows_then


@pytest.mark.campaign
def test_vacuumed_deletion_vectors_make_a_version_unrestorable(spark: Any, lake_root: Path) -> None:
    # Each day changes every fourth letter, so every file has other deletion vectors after each day.
    days = {
        day: [(f"{number:02}", day, False) for number in range(40) if nth == 0 or number % 4 == nth]
        for nth, day in enumerate(DAYS)
    }
    marked = Table(spark, lake_root, days, contract=replace(CONTRACT, write=InOrder(period=Grain.DAY, marks_rows=True)))
    marked.execute(*DAYS)
    before, path = marked.rows(), Path(marked.lake.path(CONTRACT.dataset))
    assert restorable(marked.lake, CONTRACT.dataset, 2)
    there = set(path.iterdir())
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        spark.sql(f"VACUUM delta.`{path}` RETAIN 0 HOURS").collect()
    finally:
        spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    assert {file.suffix for file in there - set(path.iterdir()) if not file.name.startswith(".")} == {".bin"}
    assert not restorable(marked.lake, CONTRACT.dataset, 2)
    assert restorable(marked.lake, CONTRACT.dataset, 4)
    version = marked.lake.version(CONTRACT.dataset)
    with pytest.raises(VersionVacuumed, match="version 2, on which 2024-10-07"):
        marked.execute(DAYS[2])
    assert (marked.rows(), marked.lake.version(CONTRACT.dataset)) == (before, version)


@pytest.mark.campaign
def test_a_version_past_its_retention_is_restored_while_its_files_are_held(spark: Any, daily: Table) -> None:
    path, before = daily.lake.path(CONTRACT.dataset), daily.rows()
    kept = "'delta.deletedFileRetentionDuration' = 'interval 1 seconds'"
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ({kept})")
    own = spark.conf.get(ENFORCED)
    # Delta's default, which a server may have that is not the platform's own.
    spark.conf.set(ENFORCED, "true")
    try:
        with pytest.raises(VersionVacuumed, match="version 2, on which 2024-10-07"):
            daily.execute(DAYS[2])
    finally:
        # Not unset: that would be Delta's default, too.
        spark.conf.set(ENFORCED, own)
    assert daily.rows() == before
    daily.execute(DAYS[2])
    assert (daily.rows(), daily.gone()) == (daily.rows(3), [DAYS[3]])


def test_a_version_missing_from_the_log_is_unrestorable(daily: Table) -> None:
    assert not restorable(daily.lake, CONTRACT.dataset, 99)


def test_too_many_executions_are_replayed_only_when_named(daily: Table) -> None:
    contract = replace(daily.contract, write=InOrder(period=Grain.DAY, replay_limit=2))
    marks = daily.events.executions(CONTRACT.dataset)
    assert due(contract, marks, [DAYS[1]]) == list(DAYS[1:])
    with pytest.raises(ReplayTooLong, match="3 later executions") as refused:
        due(contract, marks, [DAYS[0]])
    assert f"{DAYS[0]}..{DAYS[3]}" in refused.value.next_step
    assert due(contract, marks, DAYS) == list(DAYS)


def test_a_contract_without_an_execution_period_is_refused(spark: Any, lake_root: Path) -> None:
    table = Table(spark, lake_root, DAILY, contract=replace(CONTRACT, write=Replace()))
    with pytest.raises(ConfigurationError, match="period of an execution"):
        table.execute(DAYS[0])
