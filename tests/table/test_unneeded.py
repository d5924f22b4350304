"""Files that no readable version needs are found; what may still be read, or is held, stays."""

from __future__ import annotations

import os
import shutil
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import table_files
from blogdata.table import unneeded
from blogdata.table.lake import Lake
from blogdata.table.store import sums_of
from blogdata.table.unneeded import LOGGED, READABLE

NAME = "silver.pages"
NOW = datetime.now(timezone.utc)
LONG_AGO = timedelta(days=60)


class Table:
    def __init__(self, root: Path) -> None:
        self.lake, self.folder = Lake(root=str(root)), root / "silver" / "pages"

    @staticmethod
    def age(file: Path, moment: datetime) -> None:
        os.utime(file, (moment.timestamp(), moment.timestamp()))

    def rows(self, version: int | None = None) -> int:
        return int(DeltaTable(self.folder, version=version).to_pyarrow_table().num_rows)

    def readable(self) -> list[int]:
        return [version for version in range(DeltaTable(self.folder).version() + 1) if self.has(version)]

    def has(self, version: int) -> bool:
        try:
            return self.rows(version) > 0
        except FileNotFoundError:
            return False

    def unneeded(self, *held: int, now: datetime = NOW) -> list[Path]:
        return unneeded.data_files(self.lake, NAME, held, now)


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("weeks")
    folder = Table(root).folder
    for day in range(40):
        rows = pa.table({"part": ["a b", "c"], "n": [day, day]})
        write_deltalake(folder, rows, mode="overwrite", partition_by=["part"])
        for file in folder.glob("part=*/*.parquet"):
            sums_of(file).touch()
        table_files.age(folder, NOW - LONG_AGO + timedelta(days=day), since=NOW.timestamp() - 3600)
    return root


@pytest.fixture
def weeks(origin: Path, tmp_path: Path) -> Table:
    """A table that was replaced day by day; version n was published n days after the first one."""
    return Table(shutil.copytree(origin, tmp_path / "lake"))


# Files of one more day stay: a write may have begun so long before its commit.
@pytest.mark.parametrize(("written", "oldest"), [(None, 31), ("1970-01-02", 32), ("2099-01-01", 0)])
def test_versions_of_the_retention_stay_readable(weeks: Table, written: str | None, oldest: int) -> None:
    """By the times of their commits, also in a home that was unpacked or copied."""
    now = NOW - LONG_AGO + timedelta(days=39)
    for file in weeks.folder.rglob("*") if written else ():
        Table.age(file, datetime.fromisoformat(f"{written}T00:00:00+00:00"))
    found = weeks.unneeded(now=now)
    unneeded.remove(found)
    assert weeks.readable() == list(range(oldest, 40))
    assert weeks.unneeded(now=now) == []
    assert weeks.rows() == weeks.rows(32) == 2


def test_held_versions_stay_readable(weeks: Table) -> None:
    unneeded.remove(weeks.unneeded(3, 17))
    assert weeks.readable() == [3, 17, 39]
    assert weeks.rows(3) == weeks.rows(17) == weeks.rows() == 2
    unneeded.remove(weeks.unneeded(17))
    assert weeks.readable() == [17, 39]


def test_files_of_writes_that_were_cut_off_go_when_they_are_old(weeks: Table) -> None:
    unneeded.remove(weeks.unneeded())
    left = weeks.folder / "part=c" / "part-left.parquet"
    left.touch()
    assert weeks.unneeded() == []
    Table.age(left, NOW - READABLE - timedelta(days=2))
    assert weeks.unneeded() == [left]


def test_the_tables_own_retention_counts(weeks: Table) -> None:
    retention = {"delta.deletedFileRetentionDuration": "interval 32 days"}
    DeltaTable(weeks.folder).alter.set_table_properties(retention)
    unneeded.remove(weeks.unneeded())
    assert weeks.readable() == list(range(60 - 32 - 1, 41))


def versions_of(files: list[Path]) -> list[int]:
    return sorted({int(file.name.lstrip(".")[:20]) for file in files})


def test_the_log_begins_with_a_checkpoint_that_nobody_needs_to_be_older(weeks: Table) -> None:
    assert unneeded.log_files(weeks.lake, NAME, 39, NOW) == [], "without a checkpoint the table needs all of it"
    for version in (10, 20, 35):
        DeltaTable(weeks.folder, version=version).create_checkpoint()
    assert versions_of(unneeded.log_files(weeks.lake, NAME, 39, NOW)) == list(range(20)), f"it tells of {LOGGED}"
    assert versions_of(unneeded.log_files(weeks.lake, NAME, 15, NOW)) == list(range(10)), "somebody reads from 15 on"
    unneeded.remove(unneeded.log_files(weeks.lake, NAME, 39, NOW))
    assert weeks.rows() == weeks.rows(20) == weeks.rows(37) == 2
    assert not [file for file in (weeks.folder / "_delta_log").iterdir() if file.name.lstrip(".") < f"{20:020}"]
    assert unneeded.log_files(weeks.lake, NAME, 39, NOW) == []


def test_nothing_is_removed_while_it_is_unknown_what_a_version_needs(weeks: Table) -> None:
    for version in (10, 39):
        DeltaTable(weeks.folder, version=version).create_checkpoint()
    assert weeks.unneeded(15)
    file = weeks.folder / "_delta_log" / f"{10:020}.checkpoint.parquet"
    file.write_bytes(file.read_bytes()[:-100])
    assert weeks.unneeded(15) == []
    assert weeks.unneeded()


def test_a_log_does_not_begin_with_a_part_of_a_checkpoint(weeks: Table) -> None:
    DeltaTable(weeks.folder, version=20).create_checkpoint()
    log = weeks.folder / "_delta_log"
    whole = log / f"{20:020}.checkpoint.parquet"
    whole.rename(log / f"{20:020}.checkpoint.{1:010}.{2:010}.parquet")
    (log / "_last_checkpoint").unlink()
    assert unneeded.log_files(weeks.lake, NAME, 39, NOW) == []
