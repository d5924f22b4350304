import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from blogdata.contract.contract import Contract
from blogdata.contract.publication import Account, Added, Commit
from blogdata.contract.schema import RowRule
from blogdata.contract.writes import ByPeriod, Slices
from blogdata.errors import PlatformError
from blogdata.patterns.idempotency import fast_metadata_cleaner
from blogdata.patterns.idempotency.fast_metadata_cleaner import freeze, replace_periods
from blogdata.table import members
from blogdata.table.faults import AuditFailed, ConcurrentWrite
from blogdata.table.lake import Lake
from blogdata.table.target import Additions, Provenance, Target
from laws.stepping import Held, Probe
from toy import copies_of, declared, problems, target

OLD, LAST, NEW = "2025-12-15", "2025-12-22", "2026-01-05"
WEEKS = declared(
    "gold.weeks",
    "week STRING NOT NULL, click BIGINT NOT NULL",
    key=("click",),
    by="week",
    write=ByPeriod(kept=timedelta(days=7)),
    rules=(RowRule(name="positive", expression="click >= 0", description="Identifiers are positive"),),
)
Clicks = dict[str, set[int]]
BEFORE: Clicks = {OLD: {0, 1}, LAST: {2, 3, 4}, NEW: {5}}


def publish(spark: Any, lake: Lake, clicks: Clicks, run: str, contract: Contract = WEEKS, **how: Any) -> Commit:
    rows = [(week, click) for week, of_week in clicks.items() for click in sorted(of_week)]
    frame = spark.createDataFrame(rows, "week STRING, click BIGINT")
    into = target(Path(lake.root), run, contract=contract, probe=how.pop("probe", None))
    provenance = Provenance(accounts={week: Account(rows_in=len(of_week)) for week, of_week in clicks.items()})
    return replace_periods(frame, into, list(clicks), provenance, **how)


def stored(spark: Any, lake: Lake, version: int | None = None) -> Clicks:
    weeks: Clicks = {}
    newest = lake.columns(WEEKS.dataset, ["week", "click"]).to_pylist()
    for row in newest if version is None else lake.read(spark, WEEKS.dataset, version).collect():
        assert row["click"] not in weeks.setdefault(row["week"], set()), "no row is doubled"
        weeks[row["week"]].add(row["click"])
    return weeks


def tables(lake: Lake) -> dict[str, str]:
    """Return the view: table name to location."""
    return {member.name: member.location for member in fast_metadata_cleaner.visible(lake, WEEKS.dataset)}


lake = copies_of(
    lambda spark, root: publish(spark, Lake(root=str(root)), BEFORE, "first"), lambda _, root: Lake(root=str(root))
)


def test_replacing_a_week_opens_no_other_file(spark: Any, lake: Lake) -> None:
    before = tables(lake)
    shutil.rmtree(Path(lake.path(members.table_of(WEEKS.dataset, before[OLD])), "data"))
    commit = publish(spark, lake, {NEW: {6, 7}}, "again")
    after = tables(lake)
    assert {name for name in after if after[name] != before[name]} == {NEW}
    assert (commit.rows_out, list(commit.entries)) == (2, [NEW])
    assert lake.row_counts(WEEKS.dataset, "week") == {OLD: 2, LAST: 3, NEW: 2}
    table = lake.caught_up(WEEKS.dataset)
    assert table is not None
    assert table.history(1)[0]["operationMetrics"]["num_added_files"] == 1, "the pointer's own"


def test_readers_see_whole_states_and_old_versions(spark: Any, lake: Lake, tmp_path: Path) -> None:
    probe = Probe(tmp_path / "probe")
    version = lake.version(WEEKS.dataset)
    with Held(lambda: publish(spark, lake, {NEW: {6}}, "slow", probe=str(probe.folder)), probe, "audited") as held:
        assert stored(spark, lake) == BEFORE
        # Another week changes concurrently: both changes are kept.
        publish(spark, lake, {LAST: set()}, "fast")
        assert stored(spark, lake) == {OLD: {0, 1}, NEW: {5}}
    assert held.error is None
    assert stored(spark, lake) == {OLD: {0, 1}, NEW: {6}}
    assert stored(spark, lake, version) == BEFORE
    assert problems(lake, WEEKS) == []


@pytest.mark.campaign
def test_rows_are_added_to_the_table_of_a_week_once(spark: Any, lake: Lake) -> None:
    contract = replace(WEEKS, write=ByPeriod(kept=timedelta(days=7), slices=Slices(of="silver.clicks", column="at")))
    version = publish(spark, lake, {NEW: {5}}, "open", contract=contract).version
    before = tables(lake)
    assert list(fast_metadata_cleaner.extensible(lake, WEEKS.dataset, [OLD, NEW])) == [NEW], "the others are closed"

    def add(clicks: set[int], run: str, rows: int, at: int) -> Commit:
        added = Added(after=at, rows_before=rows - len(clicks), slices=("late",), times=1)
        frame = spark.createDataFrame([(NEW, click) for click in clicks], "week STRING, click BIGINT")
        accounts = {NEW: Account(rows_in=rows)}
        provenance = Provenance(accounts=accounts, additions=Additions(at=at, of={NEW: added}))
        return replace_periods(frame, target(Path(lake.root), run, contract=contract), [NEW], provenance)

    commit = add({6}, "late", 2, version)
    assert (commit.entries[NEW].rows_written, commit.entries[NEW].rows_out) == (1, 2)
    assert (stored(spark, lake), tables(lake)) == ({**BEFORE, NEW: {5, 6}}, before)
    assert stored(spark, lake, version) == BEFORE
    with pytest.raises(AuditFailed, match="unique"):
        add({6}, "twice", 3, commit.version)
    with pytest.raises(ConcurrentWrite):
        add({7}, "slow", 2, version)
    assert (stored(spark, lake)[NEW], problems(lake, WEEKS)) == ({5, 6}, [])


def test_a_final_year_freezes_into_one_table(spark: Any, lake: Lake) -> None:
    into = target(Path(lake.root), "freeze", contract=WEEKS)
    assert freeze(spark, into, final_before="2025-12-29") == [], "the year may still change"
    arranged: list[int] = []

    def arrange(table: Target, at: int) -> int:
        """Stands for the Sorter: another version of the same rows."""
        spark.sql(f"ALTER TABLE delta.`{table.lake.path(table.contract.dataset)}` SET TBLPROPERTIES ('toy' = 'sorted')")
        arranged.append(at + 1)
        return at + 1

    (year,) = freeze(spark, into, final_before=NEW, arrange=arrange)
    assert (year.name, year.partitions, year.rows) == ("2025", (OLD, LAST), 5)
    assert [it.version for it in fast_metadata_cleaner.visible(lake, WEEKS.dataset) if it.frozen] == arranged
    assert list(tables(lake)) == ["2025", NEW]
    assert stored(spark, lake) == BEFORE
    assert lake.row_counts(WEEKS.dataset, "week") == {OLD: 2, LAST: 3, NEW: 1}
    assert problems(lake, WEEKS) == [], "the weeks keep the accounts of their publication"
    assert freeze(spark, into, final_before=NEW) == []
    version = lake.version(WEEKS.dataset)
    with pytest.raises(PlatformError, match=f"{LAST} is frozen") as refused:
        publish(spark, lake, {LAST: {9}, NEW: {7}}, "late")
    assert "--accept frozen" in refused.value.next_step
    assert lake.version(WEEKS.dataset) == version
    # A person may: the view takes the week from a new table, the year's table stays unchanged.
    publish(spark, lake, {LAST: {9}}, "corrected", thaw=True)
    assert stored(spark, lake) == {**BEFORE, LAST: {9}}
    assert lake.row_counts(WEEKS.dataset, "week") == {OLD: 2, LAST: 1, NEW: 1}
    assert list(tables(lake)) == ["2025", LAST, NEW]
    assert problems(lake, WEEKS) == []


@pytest.mark.campaign
def test_a_year_with_lost_rows_is_not_frozen(spark: Any, lake: Lake) -> None:
    path = lake.path(members.table_of(WEEKS.dataset, tables(lake)[OLD]))
    log = sorted(Path(path, "_delta_log").glob("*1.json"))[0]
    # A broken store has lost the file, so the log lacks it.
    kept = [line for line in log.read_text().splitlines() if not line.startswith('{"add"')]
    log.write_text("\n".join(kept) + "\n")
    for checksum in (log.with_suffix(".crc"), log.with_name(f".{log.name}.crc")):
        checksum.unlink(missing_ok=True)
    with pytest.raises(AuditFailed, match=OLD):
        freeze(spark, target(Path(lake.root), "freeze", contract=WEEKS), final_before=NEW)
    assert set(tables(lake)) == {OLD, LAST, NEW}
