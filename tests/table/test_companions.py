"""A companion's log follows its main table's log: every commit once, in order, permanently.

Pattern: Transactional Writer.
"""

from __future__ import annotations

import json
import time
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from blogdata.deliver.query import version_at
from blogdata.errors import PlatformError
from blogdata.table import companions
from blogdata.table.lake import Lake

MAIN, BESIDE = "silver.main", "silver.beside"
KEY = "a:b"
"""Its folder's name is escaped, and the path in the log once more."""


@pytest.fixture
def lake(lake_root: Path) -> Lake:
    """A companion with nothing to follow yet; its table expires transactions after a time."""
    made = Lake(root=str(lake_root))
    DeltaTable.create(
        made.path(BESIDE),
        schema=pa.schema([("key", pa.string()), ("value", pa.int64())]),
        partition_by=["key"],
        configuration={companions.APPEARS_WITH: MAIN, "delta.setTransactionRetentionDuration": "interval 1 seconds"},
        raise_if_key_not_exists=False,
    )
    return made


def commit(lake: Lake, number: int, **notes: object) -> None:
    """Commit to the main table a reference to one file of the companion."""
    path, stats = f"key=a%3Ab/file-{number}.parquet", json.dumps({"numRecords": number})
    added = {"path": path, "size": 1, "partition_values": {"key": KEY}, "modification_time": 1, "stats": stats}
    info = {"commit_id": f"beside-{number}", "measures": {}, "partition_column": "key", "inputs": {}}
    notes = notes or {"companions": {BESIDE: {"info": info, "added": [added], "partitions": [KEY]}}}
    user_metadata = json.dumps({"commit_id": f"main-{number}", "measures": {}, **notes})
    properties = CommitProperties(custom_metadata={"userMetadata": user_metadata})
    write_deltalake(lake.path(MAIN), pa.table({"value": [number]}), mode="overwrite", commit_properties=properties)


def test_commits_are_followed_once_each_and_in_order(lake: Lake) -> None:
    for number in range(5):
        commit(lake, number)
    assert lake.row_counts(BESIDE, "key") == {KEY: 4}, "only the newest commit's file is there"
    assert lake.version(BESIDE) == lake.version(BESIDE) == 5
    counts = [lake.row_counts(BESIDE, "key", companions.version_with(lake, BESIDE, version)) for version in range(5)]
    assert counts == [{KEY: number} for number in range(5)]


def test_a_commit_without_the_companion_changes_nothing(lake: Lake) -> None:
    commit(lake, 1)
    commit(lake, 2, companions={})
    assert lake.versions([MAIN, BESIDE]) == {MAIN: 1, BESIDE: 1}
    assert lake.row_counts(BESIDE, "key") == {KEY: 1}


def test_followed_commits_are_remembered_after_transactions_expire(lake: Lake) -> None:
    for number in range(3):
        commit(lake, number)
    table = lake.caught_up(BESIDE)
    assert table is not None
    table.create_checkpoint()
    time.sleep(1.2)
    commit(lake, 3)
    assert lake.version(BESIDE) == 4


def test_missing_unfollowed_commits_raise_an_error(lake: Lake) -> None:
    commit(lake, 0)
    assert lake.version(BESIDE) == 1
    for number in range(1, 6):
        commit(lake, number)
    DeltaTable(lake.path(MAIN)).create_checkpoint()
    for number in range(4):
        (Path(lake.path(MAIN)) / "_delta_log" / f"{number:020}.json").unlink()
    with pytest.raises(PlatformError, match="no commits between versions 0 and 5") as missed:
        lake.version(BESIDE)
    assert f"move the folder of {MAIN} away" in missed.value.next_step


def test_an_as_of_query_reads_the_matching_companion(lake: Lake) -> None:
    """The companion's commits are later than the main commits they follow: by its own times it would lag behind."""
    for number in range(3):
        commit(lake, number)
    main = lake.caught_up(MAIN)
    assert main is not None
    moments = {int(entry["version"]): int(entry["timestamp"]) for entry in main.history()}
    for version, milliseconds in moments.items():
        moment = datetime.fromtimestamp(milliseconds / 1000, tz=timezone.utc)
        newest = max(other for other, at in moments.items() if at <= milliseconds)
        assert lake.row_counts(BESIDE, "key", version_at(lake, BESIDE, moment)) == {KEY: newest}, version
