"""Stateful Merger: an old delivery meets the table as it was before it, on Spark and Delta, row by row."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.toy import target
from laws.stepping import Held, Probe
from patterns.core import ledger
from patterns.core.commit import Account, Commit
from patterns.core.contract import Column, Contract
from patterns.core.errors import ConfigurationError
from patterns.core.events import EventLog
from patterns.core.executions import state
from patterns.core.lake import Lake
from patterns.core.partitions import Grain
from patterns.idempotency.stateful_merger import ReplayTooLong, VersionVacuumed, due, execute, restorable
from patterns.quality.audit_write_audit_publish import Engine, Provenance, restate
from patterns.quality.write_faults import AuditFailed, ConcurrentWrite

CONTRACT = Contract(
    dataset="silver.devices_now",
    description="Letters that say what is known of them, for tests",
    owner="team:tests",
    columns=(
        Column(name="letter", type="STRING", nullable=False, description="The key"),
        Column(name="says", type="STRING", description="What it says"),
    ),
    key=("letter",),
    executed=Grain.HOUR,
)
Change = tuple[str, str | None, bool]
EIGHT, NINE, TEN = "2026-01-05T08", "2026-01-05T09", "2026-01-05T10"
SEVEN = "2026-01-05T07"
TABLE_4_1: Mapping[str, Sequence[Change]] = {
    SEVEN: [("A", "new", False)],
    EIGHT: [("A", "updated", False), ("B", "new", False)],
    NINE: [("B", None, True), ("C", "new", False)],
    TEN: [("M", "new", False), ("N", "new", False), ("O", "new", False)],
}
DAYS = ("2024-10-05", "2024-10-06", "2024-10-07", "2024-10-08")
DAILY: Mapping[str, Sequence[Change]] = {
    "2024-10-05": [("A", "5th", False), ("B", "5th", False)],
    "2024-10-06": [("B", None, True), ("C", "6th", False)],
    "2024-10-07": [("A", "7th", False), ("D", "7th", False)],
    "2024-10-08": [("C", None, True), ("E", "8th", False)],
}


class Table:
    """A table that executions are merged into, each time by a run of its own."""

    def __init__(
        self,
        spark: Any,
        root: Path,
        deliveries: Mapping[str, Sequence[Change]],
        engine: Engine = Engine.TRANSACTION,
        contract: Contract = CONTRACT,
    ) -> None:
        self.spark, self.root, self.engine, self.contract = spark, root, engine, contract
        self.deliveries = dict(deliveries)
        self.lake = Lake(root=str(root))
        self.events = EventLog(self.lake)
        self.runs = 0

    def execute(self, *periods: str, run: str | None = None, rows: int | None = None, **more: Any) -> Commit:
        """Merge deliveries in the order given, as one run."""
        self.runs += 1
        aim = target(self.root, run or f"run-{self.runs}", self.engine, self.contract, **more)
        accounts = {} if rows is None else {"": Account(rows_in=rows)}
        for period in periods:
            frame = self.spark.createDataFrame(
                list(self.deliveries[period]), "letter STRING, says STRING, is_deleted BOOLEAN"
            )
            said = Provenance(accounts=accounts)
            commit = execute(self.spark, aim, self.events, period, lambda _, rows=frame: rows, said)
        return commit

    def backfill(self, *periods: str) -> list[str]:
        """Do what an orchestrator does: execute these, and whatever is due after them; gives what was."""
        done: list[str] = []
        left = set(periods)
        while todo := due(self.contract, self.events.executions(self.contract.dataset), left):
            self.execute(todo[0])
            done.append(todo[0])
            left.discard(todo[0])
        return done

    def rows(self, version: int | None = None) -> list[tuple[str, str | None]]:
        frame = self.lake.read(self.spark, self.contract.dataset, version)
        return sorted(tuple(row) for row in frame.collect())

    def letters(self, version: int | None = None) -> str:
        return "".join(letter for letter, _ in self.rows(version))

    def versions(self) -> dict[str, int]:
        """The state table of what the table contains."""
        lines = state(self.events.executions(self.contract.dataset)).values()
        return {line.execution: line.version for line in lines if line.applied}

    def gone(self) -> list[str]:
        lines = state(self.events.executions(self.contract.dataset)).values()
        return [line.execution for line in lines if not line.applied]

    def compact(self) -> None:
        self.runs += 1
        aim = target(self.root, f"compaction-{self.runs}", contract=self.contract)
        assert restate(self.spark, aim, "OPTIMIZE {table}", Provenance()) is not None

    def files(self, version: int) -> list[str]:
        opened = self.lake.table(self.contract.dataset)
        assert opened is not None
        opened.load_as_version(version)
        return sorted(opened.file_uris())

    def operations(self) -> list[str]:
        opened = self.lake.table(self.contract.dataset)
        assert opened is not None
        return [line["operation"] for line in reversed(opened.history())]

    def problems(self) -> list[str]:
        return [line.problem for line in ledger.audit(self.lake, self.events, self.contract) if line.problem]


@pytest.fixture
def probe(tmp_path: Path) -> Iterator[Probe]:
    made = Probe(tmp_path / "probe")
    yield made
    made.release()


@pytest.fixture(scope="module")
def four_days(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lake of table 4-4: four executions of a daily job."""
    root = tmp_path_factory.mktemp("four-days") / "lake"
    root.mkdir()
    Table(spark, root, DAILY, contract=replace(CONTRACT, executed=Grain.DAY)).execute(*DAYS, run="before")
    return root


@pytest.fixture
def daily(spark: Any, four_days: Path, tmp_path: Path) -> Table:
    """A copy of it for each test."""
    root = shutil.copytree(four_days, tmp_path / "daily")
    return Table(spark, root, DAILY, contract=replace(CONTRACT, executed=Grain.DAY))


def test_table_4_3_the_state_table_has_the_version_that_each_execution_made(spark: Any, lake_root: Path) -> None:
    hourly = Table(spark, lake_root, TABLE_4_1)
    hourly.execute(SEVEN, EIGHT, NINE, TEN)
    assert hourly.versions() == {SEVEN: 1, EIGHT: 2, NINE: 3, TEN: 4}
    assert hourly.operations() == ["CREATE TABLE", *["MERGE"] * 4], "a normal run restores nothing"
    assert due(CONTRACT, hourly.events.executions(CONTRACT.dataset), ["2026-01-05T11"]) == ["2026-01-05T11"]


@pytest.mark.matrix(2)
@pytest.mark.parametrize("engine", list(Engine), ids=lambda engine: engine.value)
def test_table_4_2_is_no_problem_any_more_readers_see_in_a_backfill_what_they_saw_before(
    spark: Any, lake_root: Path, engine: Engine
) -> None:
    """The Merger shows ABCMNO, ACMNO, ACMNO instead: tests/idempotency/test_merger.py."""
    hourly = Table(spark, lake_root, TABLE_4_1, engine)
    seen = {}
    for period in TABLE_4_1:
        hourly.execute(period)
        seen[period] = hourly.rows()
    assert ["".join(letter for letter, _ in rows) for rows in seen.values()] == ["A", "AB", "AC", "ACMNO"]
    for period in (EIGHT, NINE, TEN):
        hourly.execute(period)
        assert hourly.rows() == seen[period]
        assert hourly.problems() == []
    assert hourly.gone() == []


def test_table_4_4_the_next_run_and_the_first_and_a_later_one_again(daily: Table) -> None:
    assert daily.versions() == {"2024-10-05": 1, "2024-10-06": 2, "2024-10-07": 3, "2024-10-08": 4}
    daily.deliveries["2024-10-09"] = [("F", "9th", False)]
    daily.execute("2024-10-09")
    assert daily.versions()["2024-10-09"] == 5, "nothing to restore"
    assert daily.letters() == "ADEF"
    daily.execute("2024-10-05")
    assert daily.letters() == "AB", "the first one begins with an empty table"
    assert daily.versions() == {"2024-10-05": 7}
    assert daily.gone() == [*DAYS[1:], "2024-10-09"]
    assert daily.problems() == []


def test_table_4_5_after_a_backfill_of_the_third_day_the_fourth_is_a_normal_run(daily: Table) -> None:
    """The book leaves the restoration out of its versions; here it is a commit of its own, number 5."""
    daily.execute("2024-10-07")
    lines = state(daily.events.executions(CONTRACT.dataset))
    assert {key: line.version for key, line in lines.items()} == dict(zip(DAYS, (1, 2, 6, 4), strict=True))
    assert daily.gone() == ["2024-10-08"]
    assert daily.rows(5) == daily.rows(2), "restored to what the second day left"
    daily.execute("2024-10-08")
    assert daily.versions() == dict(zip(DAYS, (1, 2, 6, 7), strict=True))
    assert daily.operations()[5:] == ["RESTORE", "MERGE", "MERGE"]


def test_a_restoration_is_audited_like_every_write(spark: Any, daily: Table) -> None:
    before, version = daily.rows(), daily.lake.version(CONTRACT.dataset)
    aim = target(daily.root, "restoring", contract=daily.contract)
    with pytest.raises(AuditFailed, match="rows"):
        restate(
            spark, aim, "RESTORE TABLE {table} TO VERSION AS OF 2", Provenance(expected={"": {"rows": len(before) + 7}})
        )
    assert (daily.rows(), daily.lake.version(CONTRACT.dataset)) == (before, version)


@pytest.mark.parametrize("day", [DAYS[0], DAYS[2]])
def test_a_merge_that_is_refused_leaves_the_table_as_it_was_before_the_restoration(daily: Table, day: str) -> None:
    before, versions = daily.rows(), daily.versions()
    with pytest.raises(AuditFailed, match="account"):
        daily.execute(day, rows=99)
    assert (daily.rows(), daily.versions(), daily.gone()) == (before, versions, [])
    assert daily.problems() == []


def test_figure_4_7_a_compaction_between_two_runs_is_not_lost(daily: Table) -> None:
    daily.deliveries.update({"2024-10-09": [("F", "9th", False)], "2024-10-10": [("G", "10th", False)]})
    daily.compact()
    daily.execute("2024-10-09")
    daily.execute("2024-10-10")
    assert list(daily.versions().values()) == [1, 2, 3, 4, 6, 7]
    daily.execute("2024-10-09")
    assert daily.files(8) == daily.files(5) != daily.files(4), "version 6 - 1, not that of the day before"
    assert list(daily.versions().values()) == [1, 2, 3, 4, 9]
    assert daily.problems() == []


def test_a_backfill_of_an_old_day_leaves_the_rows_of_a_rebuild_from_scratch(
    spark: Any, daily: Table, tmp_path: Path
) -> None:
    daily.deliveries["2024-10-06"] = [("A", None, True), ("Z", "corrected", False)]
    assert daily.backfill("2024-10-06") == list(DAYS[1:])
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    rebuilt = Table(spark, scratch, daily.deliveries, contract=daily.contract)
    rebuilt.execute(*DAYS)
    assert daily.rows() == rebuilt.rows()
    assert daily.gone() == []
    assert daily.problems() == []


def test_an_execution_that_never_ran_is_merged_where_it_belongs(daily: Table) -> None:
    daily.deliveries["2024-10-06, later"] = [("A", "late", False), ("C", None, True)]
    assert daily.backfill("2024-10-06, later") == ["2024-10-06, later", *DAYS[2:]]
    assert daily.rows(6) == [("A", "late")], "merged into what the second day had left"
    assert daily.rows() == [("A", "7th"), ("D", "7th"), ("E", "8th")]


def test_the_same_run_again_is_the_same_commit_and_another_run_the_same_rows(daily: Table) -> None:
    before = daily.rows()
    first = daily.execute(DAYS[3], run="again")
    second = daily.execute(DAYS[3], run="again")
    assert (second.version, second.repeated) == (first.version, True)
    assert dict(second.entries) == dict(first.entries)
    assert daily.rows() == before


def test_a_first_execution_that_leaves_nothing_can_run_again(spark: Any, lake_root: Path) -> None:
    table = Table(spark, lake_root, {DAYS[0]: [("A", None, True)], DAYS[1]: [("B", "new", False)]})
    table.execute(DAYS[0])
    table.execute(DAYS[0])
    table.execute(DAYS[1])
    assert (table.rows(), table.gone(), table.problems()) == ([("B", "new")], [], [])


def test_a_run_whose_execution_was_restored_over_is_not_taken_for_done(daily: Table) -> None:
    daily.execute(DAYS[3], run="mine")
    expected = daily.rows()
    daily.execute(DAYS[1], run="theirs")
    daily.execute(DAYS[2], run="theirs")
    assert not daily.execute(DAYS[3], run="mine").repeated
    assert daily.rows() == expected


@pytest.mark.parametrize("phase", ["audited", "committed"])
def test_cut_off_in_the_restoration_nothing_or_all_of_it_is_done_and_the_retry_goes_on(
    daily: Table, probe: Probe, phase: str
) -> None:
    before, version = daily.rows(), daily.lake.version(CONTRACT.dataset)
    assert version is not None
    probe.end(phase)
    with pytest.raises(Exception, match=f"the write was ended at {phase}"):
        daily.execute(DAYS[2], run="cut off", probe=str(probe.folder))
    restored = phase == "committed"
    assert daily.lake.version(CONTRACT.dataset) == version + restored
    assert daily.rows() == (daily.rows(2) if restored else before)
    assert daily.problems() == [], "between restoration and merge the table is what the second day left"
    assert daily.gone() == (list(DAYS[2:]) if restored else [])
    daily.execute(DAYS[2], run="cut off")
    assert daily.backfill() == [DAYS[3]]
    assert (daily.rows(), daily.versions()) == (before, dict(zip(DAYS, (1, 2, 6, 7), strict=True)))


def test_of_two_at_once_one_is_refused_and_finds_the_table_as_the_other_left_it(daily: Table, probe: Probe) -> None:
    before = daily.rows()
    with Held(lambda: daily.execute(DAYS[1], run="slow", probe=str(probe.folder)), probe, "audited") as slow:
        daily.execute(DAYS[3], run="fast")
    assert isinstance(slow.error, ConcurrentWrite), slow.error
    assert slow.error.transient
    assert daily.rows() == before
    assert daily.backfill(DAYS[1]) == list(DAYS[1:])
    assert daily.rows() == before


def test_a_restoration_is_for_the_version_it_was_decided_on_and_no_other(spark: Any, daily: Table) -> None:
    aim = target(daily.root, "late", contract=daily.contract)
    with pytest.raises(ConcurrentWrite):
        restate(spark, aim, "RESTORE TABLE {table} TO VERSION AS OF 2", Provenance(), at=3)
    assert daily.lake.version(CONTRACT.dataset) == 4


def test_a_version_that_a_vacuum_took_is_refused_with_nothing_touched_and_a_rebuild_works(daily: Table) -> None:
    table = daily.lake.table(CONTRACT.dataset)
    assert table is not None
    before = daily.rows()
    assert restorable(daily.lake, CONTRACT.dataset, 2)
    assert table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert not restorable(daily.lake, CONTRACT.dataset, 2)
    version = daily.lake.version(CONTRACT.dataset)
    with pytest.raises(VersionVacuumed, match="version 2, on which 2024-10-07") as refused:
        daily.execute(DAYS[2])
    assert "--partitions all" in refused.value.next_step
    assert (daily.rows(), daily.lake.version(CONTRACT.dataset)) == (before, version)
    assert daily.backfill(*DAYS) == list(DAYS)
    assert daily.rows() == before


def test_a_version_that_a_vacuum_may_take_any_moment_is_refused_the_same_way(spark: Any, daily: Table) -> None:
    path, before = daily.lake.path(CONTRACT.dataset), daily.rows()
    kept = "'delta.deletedFileRetentionDuration' = 'interval 1 seconds'"
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ({kept})")
    with pytest.raises(VersionVacuumed, match="version 2, on which 2024-10-07"):
        daily.execute(DAYS[2])
    assert daily.rows() == before


def test_a_version_that_is_not_in_the_log_cannot_be_restored(daily: Table) -> None:
    assert not restorable(daily.lake, CONTRACT.dataset, 99)


def test_more_executions_than_the_limit_are_not_replayed_unless_they_are_named(daily: Table) -> None:
    contract = replace(daily.contract, replay_limit=2)
    marks = daily.events.executions(CONTRACT.dataset)
    assert due(contract, marks, [DAYS[1]]) == list(DAYS[1:])
    with pytest.raises(ReplayTooLong, match="3 later executions") as refused:
        due(contract, marks, [DAYS[0]])
    assert f"{DAYS[0]}..{DAYS[3]}" in refused.value.next_step
    assert due(contract, marks, DAYS) == list(DAYS)


def test_a_contract_that_says_nothing_of_executions_is_refused(spark: Any, lake_root: Path) -> None:
    table = Table(spark, lake_root, DAILY, contract=replace(CONTRACT, executed=None))
    with pytest.raises(ConfigurationError, match="period of an execution"):
        table.execute(DAYS[0])
