"""The pointer of a dataset stored in several tables has one writer at a time; partitions leave it, and companions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from blogdata.contract.partitions import Grain
from blogdata.contract.publication import Entry
from blogdata.contract.schema import Partitioning
from blogdata.ledger import ledger
from blogdata.ledger.events import EventLog
from blogdata.table import companions, expiry, members
from blogdata.table.lake import Lake
from blogdata.table.members import NONE_YET
from published import publish
from toy import CONTRACT
from toy_members import DATASET, NOON, member

RUN = {"run_id": "expires", "code_version": "test"}
WEEKS = ("2026-01-05", "2026-01-12")
MAIN, BESIDE = "silver.main", "silver.beside"
LONG = timedelta(days=30)


@pytest.fixture
def lake(lake_root: Path) -> Lake:
    return Lake(root=str(lake_root))


def test_a_stale_change_of_members_is_refused(lake: Lake) -> None:
    monday, tuesday = member(lake, "2026-01-05"), member(lake, "2026-01-12")
    assert members.commit(lake, DATASET, NONE_YET, [monday], {}) == 0
    assert members.commit(lake, DATASET, NONE_YET, [tuesday], {}) is None, "another writer was first"
    base = members.seen(lake, DATASET)
    assert members.commit(lake, DATASET, base, [monday, tuesday], {}) == 1
    assert members.commit(lake, DATASET, base, [tuesday], {}) is None
    assert [part.name for part in members.seen(lake, DATASET).visible] == ["2026-01-05", "2026-01-12"]
    assert lake.row_counts(DATASET, "week") == {"2026-01-05": 1, "2026-01-12": 1}
    assert lake.row_counts(DATASET, "week", version=0) == {"2026-01-05": 1}
    (part,) = lake.parts(DATASET, partitions=["2026-01-12"])
    assert part.name.endswith("2026-01-12-a"), "tables that are not requested are not opened"


def test_the_view_has_every_members_columns(lake: Lake) -> None:
    old = member(lake, "2026-01-05", since=1)
    wide = {**old.columns, "page": "STRING"}
    wider = replace(old, name="2026-01-12", columns=wide, visible_from=NOON - timedelta(hours=1))
    for chosen in ([old, wider], [wider, old], [replace(wider, visible_from=NOON), old]):
        assert members.columns_of(chosen) == wide
    assert list(members.columns_of([old, wider])) == ["week", "click", "page"]
    assert members.columns_of([old]) == old.columns
    # Two writers have each added a column concurrently.
    other = replace(old, name="2026-01-19", columns={**old.columns, "device": "STRING"})
    assert set(members.columns_of([old, wider, other])) == {"week", "click", "page", "device"}


def test_an_interrupted_removal_is_finished_by_the_next(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    old, visible = member(lake, "2026-01-05", until=NOON), member(lake, "2026-01-12")
    members.commit(lake, DATASET, NONE_YET, [old, visible], {})
    with monkeypatch.context() as patch:
        patch.setattr("blogdata.table.expiry.shutil.rmtree", lambda folder: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            expiry.remove(lake, DATASET, keep=LONG, now=NOON + 2 * LONG)
    assert [part.removed_at for part in members.seen(lake, DATASET).all] == [NOON + 2 * LONG, None]
    assert list(expiry.remove(lake, DATASET, keep=LONG, now=NOON + 3 * LONG)) == ["2026-01-05-a"]


def balanced(lake: Lake, dataset: str, column: str) -> Mapping[str, Entry]:
    contract = replace(CONTRACT, dataset=dataset, partitioning=Partitioning(column=column, grain=Grain.WEEK))
    lines = ledger.audit(lake, EventLog(lake), contract)
    assert [line.problem for line in lines] == [None] * len(lines)
    return {line.entry.partition: line.entry for line in lines}


def info_of(rows: Mapping[str, int]) -> Mapping[str, object]:
    measures = {key: {"rows": count, "accounted": count} for key, count in rows.items()}
    nothing: dict[str, object] = {"accounts": {}, "reasons": [], "own_measures": [], "breakdowns": {}, "inputs": {}}
    return {
        "commit_id": "c",
        "started_at": 0.0,
        "partition_column": "week",
        "measures": measures,
        "run": RUN,
        **nothing,
    }


def test_a_week_leaves_the_pointer_and_its_table_goes_when_no_reader_needs_it(lake: Lake) -> None:
    made = [member(lake, week, rows=2) for week in WEEKS]
    members.commit(lake, DATASET, NONE_YET, made, info_of(dict.fromkeys(WEEKS, 2)))
    assert expiry.leave(lake, DATASET, "week", WEEKS[:1], run=RUN) == {WEEKS[0]: 2}
    assert [part.name for part in members.seen(lake, DATASET).visible] == [WEEKS[1]]
    assert lake.row_counts(DATASET, "week") == {WEEKS[1]: 2}
    lines = balanced(lake, DATASET, "week")
    assert (lines[WEEKS[0]].rows_out, lines[WEEKS[0]].reasons) == (0, {"expired": 2})
    assert (lines[WEEKS[1]].rows_out, lines[WEEKS[1]].reasons) == (2, {})
    assert lake.row_counts(DATASET, "week", version=0) == dict.fromkeys(WEEKS, 2), "earlier readers go on"
    assert expiry.remove(lake, DATASET, keep=timedelta(days=7)) == {}, "it was visible until now"
    assert list(expiry.remove(lake, DATASET, keep=timedelta(0))) == [made[0].location]


def test_a_frozen_year_loses_one_week_and_keeps_the_others(lake: Lake) -> None:
    year = replace(member(lake, "2026", rows=2), rows_of=dict.fromkeys(WEEKS, 1), frozen=True)
    members.commit(lake, DATASET, NONE_YET, [year], info_of(dict.fromkeys(WEEKS, 1)))
    expiry.leave(lake, DATASET, "week", WEEKS[:1], run=RUN)
    assert [one.partitions for one in members.seen(lake, DATASET).visible] == [WEEKS[1:]]
    assert expiry.remove(lake, DATASET, keep=timedelta(0), now=NOON + timedelta(days=9)) == {}


def test_companions_follow_and_lose_the_same_partitions(lake: Lake) -> None:
    DeltaTable.create(
        lake.path(BESIDE),
        schema=pa.schema([("week", pa.string()), ("row", pa.int64())]),
        partition_by=["week"],
        configuration={companions.APPEARS_WITH: MAIN},
        raise_if_key_not_exists=False,
    )
    content = pa.table({"week": [WEEKS[0], *WEEKS], "row": range(3)})
    write_deltalake(lake.path(BESIDE), content, mode="append")
    publish(lake, MAIN, "week", {WEEKS[0]: 2, WEEKS[1]: 1}, content=content)
    assert expiry.leave(lake, MAIN, "week", WEEKS[:1], run=RUN, companions=[BESIDE]) == {WEEKS[0]: 2}
    for dataset in (MAIN, BESIDE):
        assert lake.row_counts(dataset, "week") == {WEEKS[1]: 1}
    versions = lake.versions([MAIN, BESIDE])
    assert lake.versions([MAIN, BESIDE]) == versions, "followed once"
    assert companions.version_with(lake, BESIDE, 0) < versions[BESIDE]
    assert lake.row_counts(BESIDE, "week", companions.version_with(lake, BESIDE, 0)) == {WEEKS[0]: 2, WEEKS[1]: 1}
    assert balanced(lake, MAIN, "week")[WEEKS[0]].reasons == {"expired": 2}
