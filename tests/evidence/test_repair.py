"""Damage to logs, pointers and member tables is found and repaired from the remaining files; without Spark."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

import published
from blogdata.evidence import damage, ledger, repair
from blogdata.evidence.damage import Damage, DamageKind
from blogdata.evidence.events import EventLog
from blogdata.evidence.executions import EMPTY, applied
from blogdata.lake import members
from blogdata.lake.commit import WHOLE_TABLE
from blogdata.lake.lake import Lake
from blogdata.lake.members import Member
from blogdata.lake.store_faults import DataFileDamaged, LogDamaged
from blogdata.publish.contract import Contract
from blogdata.publish.partitions import Grain
from blogdata.publish.schema import Partitioning
from blogdata.publish.writes import InOrder
from toy_members import DATASET, member, names

FIRST, SECOND, THIRD = "2026-01-05", "2026-01-12", "2026-01-19"
WEEKS = Contract(
    dataset=DATASET,
    description="Clicks by week",
    owner="team:tests",
    columns=(),
    partitioning=Partitioning(column="week", grain=Grain.WEEK),
)
PLAIN = replace(WEEKS, dataset="silver.plain", partitioning=None)
EXECUTED = replace(PLAIN, write=InOrder(period=Grain.WEEK))


@pytest.fixture
def lake(lake_root: Path) -> Lake:
    return Lake(root=str(lake_root))


def gone(file: Path) -> None:
    """Remove a file."""
    file.unlink()


def cut(file: Path) -> None:
    """Keep the first half of a file."""
    os.truncate(file, file.stat().st_size // 2)


def emptied(file: Path) -> None:
    """Empty a file."""
    os.truncate(file, 0)


every_harm = pytest.mark.parametrize("harm", [gone, cut, emptied], ids=lambda harm: harm.__name__)


def said(*weeks: str, rows: int = 1) -> dict[str, object]:
    """Build the metadata of a commit that publishes some weeks."""
    return {
        "commit_id": f"c-{weeks}",
        "started_at": 0.0,
        "partition_column": "week",
        "measures": {week: {"rows": rows, "accounted": rows} for week in weeks},
        "accounts": {},
        "reasons": [],
        "own_measures": [],
        "breakdowns": {},
        "inputs": {},
        "run": {"run_id": "r", "code_version": "c"},
    }


def publish(lake: Lake, *weeks: str) -> None:
    """Publish a table for each of these weeks."""
    seen = members.seen(lake, DATASET)
    new = [replace(member(lake, week), since_version=seen.version + 1) for week in weeks]
    assert members.commit(lake, DATASET, seen, [*seen.all, *new], said(*weeks)) == seen.version + 1
    EventLog(lake).publications(DATASET)


def inspected(lake: Lake, contract: Contract = WEEKS) -> list[Damage]:
    return list(damage.inspect(lake, contract.dataset, contract.partition_column))


def mended(lake: Lake, contract: Contract = WEEKS) -> list[str]:
    return list(repair.mend(lake, EventLog(lake), contract, inspected(lake, contract)))


def log_of(lake: Lake, table: str) -> Path:
    return Path(lake.path(table), "_delta_log")


def newest_file(lake: Lake) -> Path:
    """Return the data file of the pointer table."""
    (uri,) = DeltaTable(lake.path(DATASET)).file_uris()
    return Path(uri)


@every_harm
def test_a_pointer_with_a_lost_file_goes_back(lake: Lake, harm: Callable[[Path], None]) -> None:
    publish(lake, FIRST)
    publish(lake, SECOND, THIRD)
    lost = newest_file(lake)
    harm(lost)
    with pytest.raises(DataFileDamaged, match="blogdata job repair"):
        lake.row_counts(DATASET, "week")
    assert [(one.kind, one.file, one.version) for one in inspected(lake)] == [(DamageKind.POINTER, lost, 1)]
    (done,) = mended(lake)
    assert f"to be computed again: {SECOND}, {THIRD}" in done
    assert lake.row_counts(DATASET, "week") == {FIRST: 1}
    assert list(EventLog(lake).publications(DATASET)) == [FIRST]
    assert inspected(lake) == []


def test_an_unreadable_pointer_names_nothing_and_recomputes_all(lake: Lake) -> None:
    publish(lake, FIRST)
    publish(lake, SECOND)
    for file in Path(lake.path(DATASET)).glob("*.parquet"):
        file.unlink()
    assert len(mended(lake)) == 1, "the newest version left is the one before, whose files are gone too"
    (done,) = mended(lake)
    assert "all of it is to be computed again" in done
    assert (lake.row_counts(DATASET, "week"), EventLog(lake).publications(DATASET)) == ({}, {})
    assert inspected(lake) == []
    shutil.rmtree(lake.path(members.table_of(DATASET, "")))
    publish(lake, FIRST, SECOND)
    assert lake.row_counts(DATASET, "week") == {FIRST: 1, SECOND: 1}
    assert set(EventLog(lake).publications(DATASET)) == {FIRST, SECOND}


def test_a_checkpointed_pointer_goes_back_as_well(lake: Lake) -> None:
    publish(lake, FIRST)
    publish(lake, SECOND)
    DeltaTable(lake.path(DATASET)).create_checkpoint()
    newest_file(lake).unlink()
    mended(lake)
    assert lake.row_counts(DATASET, "week") == {FIRST: 1}
    assert inspected(lake) == []


def frozen(lake: Lake, *weeks: str) -> Member:
    """Make a table of several weeks; return its row of the pointer."""
    whole = member(lake, "2025")
    path = lake.path(members.table_of(DATASET, whole.location))
    shutil.rmtree(path)
    for week in weeks:
        write_deltalake(path, pa.table({"week": [week], "click": [1]}), mode="append", partition_by=["week"])
    return replace(whole, version=len(weeks) - 1, rows_of=dict.fromkeys(weeks, 1), frozen=True)


@every_harm
def test_a_damaged_member_costs_only_its_weeks(lake: Lake, harm: Callable[[Path], None]) -> None:
    rows = [frozen(lake, FIRST, SECOND), member(lake, THIRD)]
    members.commit(lake, DATASET, members.NONE_YET, rows, said(FIRST, SECOND, THIRD))
    lost = log_of(lake, members.table_of(DATASET, rows[0].location)) / f"{1:020}.json"
    harm(lost)
    if harm is not emptied:
        with pytest.raises(LogDamaged, match="blogdata job repair"):
            lake.row_counts(DATASET, "week")
    assert [(one.kind, one.file, one.partition) for one in inspected(lake)] == [
        (DamageKind.COMMIT, lost, FIRST),
        (DamageKind.COMMIT, lost, SECOND),
    ]
    done = mended(lake)
    assert done == [f"partition '{week}' is to be computed again" for week in (FIRST, SECOND)]
    assert list(EventLog(lake).publications(DATASET)) == [THIRD]
    seen = members.seen(lake, DATASET)
    new = [member(lake, FIRST), member(lake, SECOND)]
    rows = [*seen.superseded({FIRST, SECOND}, seen.version + 1, rows[0].visible_from), *new]
    members.commit(lake, DATASET, seen, rows, said(FIRST, SECOND))
    assert lake.row_counts(DATASET, "week") == {FIRST: 1, SECOND: 1, THIRD: 1}
    assert inspected(lake) == []


def test_a_missing_member_folder_is_found(lake: Lake) -> None:
    publish(lake, FIRST, SECOND)
    shutil.rmtree(lake.path(members.table_of(DATASET, f"{FIRST}-a")))
    assert [(one.problem, one.partition) for one in inspected(lake)] == [("it is gone", FIRST)]


def test_commits_after_a_members_audit_are_ignored(lake: Lake) -> None:
    publish(lake, FIRST)
    path = lake.path(members.table_of(DATASET, f"{FIRST}-a"))
    write_deltalake(path, pa.table({"week": [FIRST], "click": [7]}), mode="append")
    cut(log_of(lake, members.table_of(DATASET, f"{FIRST}-a")) / f"{1:020}.json")
    assert inspected(lake) == []
    assert lake.row_counts(DATASET, "week") == {FIRST: 1}


def test_only_visible_weeks_of_a_frozen_member_count(lake: Lake) -> None:
    year = frozen(lake, FIRST, SECOND)
    members.commit(lake, DATASET, members.NONE_YET, [year], said(FIRST, SECOND))
    (lost,) = Path(lake.path(members.table_of(DATASET, year.location)), f"week={FIRST}").glob("*.parquet")
    lost.unlink()
    assert [(one.file, one.partition) for one in inspected(lake)] == [(lost, FIRST)]
    seen = members.seen(lake, DATASET)
    rows = [*seen.superseded({FIRST}, 1, year.visible_from), member(lake, FIRST)]
    members.commit(lake, DATASET, seen, rows, said(FIRST))
    assert sorted(names(members.seen(lake, DATASET).visible)) == ["2025", FIRST]
    assert inspected(lake) == []
    assert [line.problem for line in ledger.audit(lake, EventLog(lake), WEEKS)] == [None, None]


def plain(lake: Lake, versions: int = 3) -> Path:
    """Make a table to which each version adds a row; return its log."""
    for number in range(versions):
        write_deltalake(
            lake.path(PLAIN.dataset),
            pa.table({"click": [number]}),
            mode="append",
            commit_properties=CommitProperties(custom_metadata={"userMetadata": "{}"}),
        )
    return log_of(lake, PLAIN.dataset)


def rows(lake: Lake) -> Sequence[int]:
    return sorted(lake.columns(PLAIN.dataset, ["click"])["click"].to_pylist())


def executed(lake: Lake, *marks: tuple[str, int | None]) -> Path:
    """Make a table of executions and restorations, each a version that adds a row; return its log."""
    for number, (period, restores) in enumerate(marks):
        info = {**said(WHOLE_TABLE), "execution": {"period": period, "onto": number - 1, "restores": restores}}
        write_deltalake(
            lake.path(PLAIN.dataset),
            pa.table({"click": [number]}),
            mode="append",
            commit_properties=CommitProperties(custom_metadata={"userMetadata": json.dumps(info)}),
        )
    EventLog(lake).publications(PLAIN.dataset)
    return log_of(lake, PLAIN.dataset)


def test_a_lost_execution_file_costs_all_executions(lake: Lake) -> None:
    executed(lake, (FIRST, None), (SECOND, None), (THIRD, None))
    events = EventLog(lake)
    Path(DeltaTable(lake.path(PLAIN.dataset)).file_uris()[0]).unlink()
    assert sorted(events.publications(PLAIN.dataset)) == [FIRST, SECOND, THIRD]
    (done,) = mended(lake, EXECUTED)
    assert "all executions are to be computed again" in done
    assert events.publications(PLAIN.dataset) == {}
    # They still count until a restoration: a new execution must know which later executions to remove first.
    assert [mark.partition for mark in applied(events.executions(PLAIN.dataset))] == [FIRST, SECOND, THIRD]


@pytest.mark.parametrize("lost", [(THIRD, None), (FIRST, EMPTY)], ids=["execution", "restoration"])
def test_a_lost_execution_or_restoration_never_happened(lake: Lake, lost: tuple[str, int | None]) -> None:
    log = executed(lake, (FIRST, None), (SECOND, None), lost)
    events = EventLog(lake)
    assert len(events.executions(PLAIN.dataset)) == 3
    cut(log / f"{2:020}.json")
    mended(lake, EXECUTED)
    assert [mark.partition for mark in applied(events.executions(PLAIN.dataset))] == [FIRST, SECOND]
    assert sorted(events.publications(PLAIN.dataset)) == [FIRST, SECOND]
    write_deltalake(lake.path(PLAIN.dataset), pa.table({"click": [7]}), mode="append")
    assert len(events.executions(PLAIN.dataset)) == 2


def test_a_table_that_is_gone_is_named(lake: Lake) -> None:
    published.silver(lake, {"2026-01-05T10": 1}, read=0)
    events = EventLog(lake)
    assert damage.inspect(lake, "silver.visits", "event_hour", recorded=events.recorded("silver.visits")) == []
    events.publications("silver.visits")
    shutil.rmtree(lake.path("silver.visits"))
    recorded = events.recorded("silver.visits")
    assert [one.file for one in damage.inspect(lake, "silver.visits", "event_hour", recorded=recorded)] == [
        log_of(lake, "silver.visits")
    ]


def test_two_lost_commits_leave_the_version_before(lake: Lake) -> None:
    log = plain(lake, 4)
    for version in (2, 3):
        cut(log / f"{version:020}.json")
    assert [one.version for one in inspected(lake, PLAIN)] == [3, 2]
    assert len(mended(lake, PLAIN)) == 2
    assert (lake.version(PLAIN.dataset), rows(lake)) == (3, [0, 1])
    assert inspected(lake, PLAIN) == []


def test_a_table_that_lacks_a_commit_begins_anew(lake: Lake) -> None:
    in_bronze = replace(PLAIN, dataset="bronze.plain")
    gone(plain(lake) / f"{1:020}.json")
    shutil.copytree(lake.path(PLAIN.dataset), lake.path(in_bronze.dataset))
    with pytest.raises(LogDamaged, match="blogdata job repair"):
        lake.version(PLAIN.dataset)
    assert [(one.kind, one.problem, one.version) for one in inspected(lake, PLAIN)] == [
        (DamageKind.COMMIT, "it is gone", 1)
    ]
    with pytest.raises(LogDamaged, match="backup"):
        # Bronze's source files may no longer exist.
        mended(lake, in_bronze)
    mended(lake, PLAIN)
    assert (lake.version(PLAIN.dataset), rows(lake), inspected(lake, PLAIN)) == (3, [], [])
    plain(lake, 1)
    assert (lake.version(PLAIN.dataset), rows(lake)) == (4, [0])


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("harm", [cut, emptied], ids=lambda harm: harm.__name__)
def test_a_damaged_commit_behind_a_checkpoint_costs_nothing(
    lake: Lake, version: int, harm: Callable[[Path], None]
) -> None:
    log = plain(lake)
    DeltaTable(lake.path(PLAIN.dataset)).create_checkpoint()
    harm(log / f"{version:020}.json")
    assert [one.version for one in inspected(lake, PLAIN)] == [version]
    (done,) = mended(lake, PLAIN)
    assert "a checkpoint tells the newest version" in done
    assert (lake.version(PLAIN.dataset), rows(lake)) == (2, [0, 1, 2])
    assert inspected(lake, PLAIN) == []
    plain(lake, 1)
    assert (lake.version(PLAIN.dataset), rows(lake)) == (3, [0, 0, 1, 2])
    if version == 1:
        with pytest.raises(LogDamaged):
            lake.row_counts(PLAIN.dataset, None, 1)


@every_harm
def test_commits_replace_a_damaged_checkpoint(lake: Lake, harm: Callable[[Path], None]) -> None:
    log = plain(lake)
    DeltaTable(lake.path(PLAIN.dataset)).create_checkpoint()
    (checkpoint,) = log.glob("*.checkpoint.parquet")
    harm(checkpoint)
    with pytest.raises(LogDamaged, match="blogdata job repair"):
        lake.version(PLAIN.dataset)
    assert [(one.kind, one.file) for one in inspected(lake, PLAIN)] == [(DamageKind.CHECKPOINT, checkpoint)]
    mended(lake, PLAIN)
    assert (inspected(lake, PLAIN), rows(lake)) == ([], [0, 1, 2])
