"""A failing store: every fault is reported with a remedy, and readers keep all readable rows."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

from blogdata.contract.publication import Commit
from blogdata.errors import DiskFull, PlatformError
from blogdata.ledger import ledger
from blogdata.ledger.events import Event, EventLog
from blogdata.patterns.idempotency.data_overwrite import overwrite_partitions
from blogdata.table.lake import Lake
from blogdata.table.store_faults import StoreNotWritable, store_faults
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


class World:
    """A copy of the whole table, to be damaged."""

    def __init__(self, spark: Any, root: Path) -> None:
        self.spark, self.root = spark, root
        self.lake = Lake(root=str(root))
        self.events = EventLog(self.lake)
        self.folder = root / "silver" / "clicks"
        self.log = self.folder / "_delta_log"

    def commits(self) -> list[Path]:
        return sorted(self.log.glob("*.json"))

    def rows(self, version: int | None = None) -> list[Any]:
        with store_faults(DATASET):
            return self.lake.read(self.spark, DATASET, version).collect()

    def problems(self) -> list[str]:
        return [line.problem for line in ledger.audit(self.lake, self.events, CONTRACT) if line.problem]


@pytest.fixture
def world(spark: Any, whole: Path, tmp_path: Path) -> World:
    root = tmp_path / "lake"
    shutil.copytree(whole, root)
    return World(spark, root)


@pytest.fixture(scope="module")
def expected(whole: Path) -> list[Any]:
    return resting(whole)


def test_a_clock_set_back_changes_no_order(world: World, expected: list[Any]) -> None:
    ahead = time.time() + 86_400
    for commit in world.commits()[-2:]:
        lines = [json.loads(line) for line in commit.read_text(encoding="utf-8").splitlines()]
        for line in lines:
            if "commitInfo" in line:
                line["commitInfo"]["timestamp"] = int(ahead * 1000)
        commit.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        commit.with_name(f".{commit.name}.crc").unlink(missing_ok=True)
        os.utime(commit, (ahead, ahead))
    shutil.rmtree(world.root / "ops")
    after = publish(world.spark, world.root, "after", SECOND)
    newest = world.events.publications(DATASET)
    assert {key: entry.run_id for key, entry in newest.items()} == {HOURS[0]: "first", HOURS[1]: "after"}
    assert newest[HOURS[1]].version == after.version == world.lake.version(DATASET)
    assert publish(world.spark, world.root, "after", SECOND).repeated
    assert sorted(tuple(row) for row in world.rows()) == expected
    assert world.problems() == []


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
    with pytest.raises(StoreNotWritable, match="make it writable"), store_faults("ops.events"):
        EventLog(Lake(root=str(root))).append([Event(kind="note", dataset=DATASET)])
    assert table(spark, root) == expected
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    assert publish(spark, root, "again").rows_out == ROWS


def fill(file: Path) -> None:
    """Write until the disk is full."""
    with file.open("wb", buffering=0) as full:
        while True:
            try:
                full.write(b"\0" * 4096)
            except OSError:
                return


def test_a_full_disk_is_named_and_loses_nothing(spark: Any, whole: Path, small_disk: Path, expected: list[Any]) -> None:
    root = small_disk / "lake"
    shutil.copytree(whole, root)
    filler = small_disk / "filler"
    fill(filler)
    with pytest.raises(PlatformError) as told:
        publish(spark, root, "again")
    assert isinstance(told.value, DiskFull)
    assert resting(root) == expected
    filler.unlink()
    assert publish(spark, root, "again").rows_out == ROWS
    assert resting(root) == expected
