"""A failing store: every fault is reported with a remedy, and readers keep all readable rows."""

from __future__ import annotations

import shutil
import subprocess
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

import table_files
from blogdata.contract.publication import Commit
from blogdata.errors import DiskFull
from blogdata.ledger import ledger
from blogdata.ledger.events import Event, EventLog
from blogdata.patterns.idempotency.data_overwrite import overwrite_partitions
from blogdata.table.faults import StoreNotWritable, typed_errors
from blogdata.table.lake import Lake
from blogdata.table.target import Provenance
from toy import CONTRACT, HOURS, accounts, clicks, resting, table, target

DATASET = CONTRACT.dataset
SECOND = HOURS[1:]
ROWS = 100


def publish(spark: Any, root: Path, run: str, hours: tuple[str, ...] = HOURS) -> Commit:
    rows = clicks(spark, ROWS)
    given = {hour: account for hour, account in accounts(ROWS).items() if hour in hours}
    frame = rows.where(F.col("hour").isin(*hours))
    commit = overwrite_partitions(frame, target(root, run), hours, Provenance(accounts=given))
    EventLog(Lake(root=str(root))).record(commit)
    return commit


@pytest.fixture(scope="module")
def whole(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of two publications; the second one has the second hour only."""
    root = tmp_path_factory.mktemp("whole") / "lake"
    root.mkdir()
    publish(spark, root, "first")
    publish(spark, root, "last", SECOND)
    return root


@pytest.fixture(scope="module")
def expected(whole: Path) -> list[Any]:
    return resting(whole)


def test_a_clock_set_back_changes_no_order(spark: Any, whole: Path, tmp_path: Path, expected: list[Any]) -> None:
    root, ahead = shutil.copytree(whole, tmp_path / "lake"), datetime.now(timezone.utc) + timedelta(days=1)
    table_files.age(root / "silver" / "clicks", ahead)
    for checksum in (root / "silver" / "clicks" / "_delta_log").glob(".*.crc"):
        checksum.unlink()
    shutil.rmtree(root / "ops")
    after = publish(spark, root, "after", SECOND)
    lake = Lake(root=str(root))
    newest = EventLog(lake).publications(DATASET)
    assert {key: entry.run_id for key, entry in newest.items()} == {HOURS[0]: "first", HOURS[1]: "after"}
    assert newest[HOURS[1]].version == after.version == lake.version(DATASET)
    assert publish(spark, root, "after", SECOND).repeated
    assert table(spark, root) == expected
    assert [line.problem for line in ledger.audit(lake, EventLog(lake), CONTRACT)] == [None, None]


def test_a_read_only_store_is_named_and_readable(
    spark: Any, whole: Path, small_disk: Path, expected: list[Any]
) -> None:
    root = small_disk / "lake"
    shutil.copytree(whole, root)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(StoreNotWritable, match="make it writable"):
        publish(spark, root, "again")
    with pytest.raises(StoreNotWritable, match="make it writable"):
        publish(spark, small_disk / "another", "again")
    with pytest.raises(StoreNotWritable, match="make it writable"), typed_errors("ops.events"):
        EventLog(Lake(root=str(root))).append([Event(kind="note", dataset=DATASET)])
    assert table(spark, root) == expected
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    assert publish(spark, root, "again").rows_out == ROWS


def test_a_full_disk_is_named_and_loses_nothing(spark: Any, whole: Path, small_disk: Path, expected: list[Any]) -> None:
    root = small_disk / "lake"
    shutil.copytree(whole, root)
    filler = small_disk / "filler"
    subprocess.run(["dd", "if=/dev/zero", f"of={filler}"], check=False, stderr=subprocess.DEVNULL)
    with pytest.raises(DiskFull):
        publish(spark, root, "again")
    assert resting(root) == expected
    filler.unlink()
    assert publish(spark, root, "again").rows_out == ROWS
    assert resting(root) == expected
