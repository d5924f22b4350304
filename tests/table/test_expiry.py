"""Partitions leave companions and members as they leave one table: in one commit, and counted."""

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


@pytest.fixture
def lake(lake_root: Path) -> Lake:
    return Lake(root=str(lake_root))


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
    assert [one.name for one in members.seen(lake, DATASET).visible] == [WEEKS[1]]
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
