"""Passthrough Replicator of tables: a copy has the same bytes, whatever happens to its source, or nobody sees it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from blogdata.lake.lake import Lake
from blogdata.patterns.ingestion import passthrough_replicator, replicated_tables
from blogdata.patterns.ingestion.passthrough_replicator import CorruptCopy, Replica
from blogdata.patterns.ingestion.replicated_tables import copy_table, keep_readable
from blogdata.patterns.security import role_folders

DATASET = "silver.devices"


class Killed(BaseException):
    """Ends a copy as a kill does: nothing handles it."""


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A table of three versions, with a checkpoint of the third."""
    lake = Lake(root=str(tmp_path / "lake"))
    for number in range(3):
        grow(lake, number)
    DeltaTable(lake.path(DATASET)).create_checkpoint()
    return lake


def grow(lake: Lake, number: int) -> None:
    """Add a row in a partition of its own."""
    row = {"device_type": [f"type {number}"], "full_name": [f"{number}.0 and 1e3"]}
    write_deltalake(lake.path(DATASET), pa.table(row), mode="append", partition_by=["device_type"])


def compact_and_vacuum(lake: Lake) -> None:
    """Replace all files of a table, and remove them."""
    table = DeltaTable(lake.path(DATASET))
    write_deltalake(table, table.to_pyarrow_table(), mode="overwrite")
    table = DeltaTable(lake.path(DATASET))
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)


def content(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def names(table: str | Path) -> list[str]:
    return sorted(DeltaTable(table).to_pyarrow_table().column("full_name").to_pylist())


def test_a_copy_has_the_same_files_byte_for_byte(lake: Lake, tmp_path: Path) -> None:
    copy_table(lake, DATASET, 2, tmp_path / "copy")
    assert content(tmp_path / "copy") == content(Path(lake.path(DATASET)))
    times = [file.stat().st_mtime_ns for file in sorted((tmp_path / "copy" / "_delta_log").glob("*.json"))]
    assert times == [file.stat().st_mtime_ns for file in sorted(Path(lake.path(DATASET), "_delta_log").glob("*.json"))]


def test_what_is_written_while_it_is_copied_is_not_copied(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = content(Path(lake.path(DATASET)))

    def busy() -> None:
        grow(lake, 3)
        DeltaTable(lake.path(DATASET)).create_checkpoint()

    meanwhile(monkeypatch, busy, at=2)
    copy_table(lake, DATASET, 2, tmp_path / "copy")
    copied = content(tmp_path / "copy")
    # Which checkpoint is the last one has changed, and is only a hint.
    del before["_delta_log/_last_checkpoint"]
    assert copied == before
    assert names(tmp_path / "copy") == [f"{number}.0 and 1e3" for number in range(3)]


def test_a_copy_without_one_of_its_files_is_refused(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The naive way lists the folder, and takes what is there for the table."""
    monkeypatch.setattr(replicated_tables, "_log_files", lambda log, version: [log / f"{0:020}.json"])
    with pytest.raises(CorruptCopy, match="another table"):
        copy_table(lake, DATASET, 2, tmp_path / "copy")


def test_readers_see_the_old_version_or_the_new_one_wherever_the_copy_is_killed(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kills between any two files; then the second run ends what the first one began."""
    folder, group = tmp_path / "staging", os.getgid()
    replicated(lake, folder, group)
    shown = folder / "silver" / "devices"
    old = names(shown)
    grow(lake, 3)
    files, killed = len(content(Path(lake.path(DATASET)))), 0
    for at in range(files):
        with monkeypatch.context() as patch:
            meanwhile(patch, die, at=at)
            with pytest.raises(Killed):
                replicated(lake, folder, group)
        assert names(shown) == old
        killed += 1
    assert killed >= 10
    assert replicated(lake, folder, group)
    assert names(shown) == names(lake.path(DATASET)) != old
    assert [path for path in (folder / DATASET).iterdir() if path.name.startswith(".")] == []
    assert not replicated(lake, folder, group), "it is there"


def test_a_reader_that_has_begun_reads_on(lake: Lake, tmp_path: Path) -> None:
    folder, group = tmp_path / "staging", os.getgid()
    replicated(lake, folder, group)
    shown = folder / "silver" / "devices"
    begun = [shown / file for file in DeltaTable(shown).to_pyarrow_dataset().files]
    compact_and_vacuum(lake)
    replicated(lake, folder, group)
    assert [file for file in begun if not file.exists()] == []
    assert names(shown) == names(lake.path(DATASET))
    compact_and_vacuum(lake)
    replicated(lake, folder, group)
    assert [file for file in begun if file.exists()] == [], "of the version before only"


def replicated(lake: Lake, folder: Path, group: int) -> bool:
    """Copy the newest version as the job `replicate` does."""
    version = lake.version(DATASET)
    assert version is not None
    name = role_folders.named(lake, DATASET, version, "as it is")

    def write(copy: Path) -> None:
        copy_table(lake, DATASET, version, copy)
        if (before := role_folders.staying(folder, DATASET, name)) is not None:
            keep_readable(before, copy)

    is_new = role_folders.write(folder, DATASET, name, group, write)
    role_folders.show_as_lake(folder, DATASET, group)
    return is_new


def die() -> None:
    raise Killed


def meanwhile(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object], *, at: int) -> None:
    """Run an action before the file of a number is copied."""
    copied = 0

    def replicate(source: Path, target: Path) -> Replica:
        nonlocal copied
        if copied == at:
            act()
        copied += 1
        return passthrough_replicator.replicate(source, target)

    monkeypatch.setattr("blogdata.patterns.ingestion.replicated_tables.replicate", replicate)
