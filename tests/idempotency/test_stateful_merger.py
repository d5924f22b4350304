"""Stateful Merger: an old delivery is merged into the table's earlier state, on Spark and Delta, row by row."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from blogdata.evidence.executions import ReplayTooLong, due, state
from blogdata.evidence.held_versions import held_versions
from blogdata.lake import unneeded
from blogdata.lake.commit import Commit
from blogdata.orchestration import upkeep
from blogdata.orchestration.upkeep import Inspection, Vacuuming
from blogdata.patterns.idempotency.stateful_merger import VersionVacuumed, restorable
from blogdata.publish.changes import Restore
from blogdata.publish.partitions import Grain
from blogdata.publish.publish import publish
from blogdata.publish.target import Provenance
from blogdata.publish.write_faults import AuditFailed
from blogdata.publish.writes import InOrder
from idempotency.executing import CONTRACT, DAILY, DAYS, Table
from laws.stepping import Probe
from tidied import whole
from toy import target


@pytest.fixture
def probe(tmp_path: Path) -> Iterator[Probe]:
    made = Probe(tmp_path / "probe")
    yield made
    made.release()


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
    assert version is not None
    aim = target(daily.root, "restoring", contract=daily.contract)
    with pytest.raises(AuditFailed, match="rows"):
        publish(
            daily.lake.read(spark, CONTRACT.dataset, 2),
            aim,
            change=Restore(at=version, to=2),
            partitions=(),
            provenance=Provenance(expected={"": {"rows": len(before) + 7}}),
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
    assert whole(upkeep.look(seen, [Vacuuming()], [contract])) != []
    unneeded.remove(unneeded.data_files(daily.lake, contract.dataset, {2, 3}, seen.now))
    assert [restorable(daily.lake, contract.dataset, version) for version in (1, 2, 3, 4)] == [False, True, True, True]
    assert whole(upkeep.look(seen, [Vacuuming()], [contract])) == []
    assert [one.to_pyarrow_table().num_rows for one in held] == rows_then


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
