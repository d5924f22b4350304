"""A provider's hours land whole, and a run reads its windows only.

Pattern: Incremental Loader.
"""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from blogdata.patterns.ingestion.incremental_loader import Partitions


@pytest.fixture
def partitions(tmp_path: Path) -> Partitions:
    """A provider with three hours, the last of which is not complete."""
    found = Partitions(
        source=tmp_path / "provider" / "visits", landed=tmp_path / "landing" / "visits", prefix="provider_visits"
    )
    for hour in (10, 11, 12):
        deliver(found, hour, f"line of {hour}\n".encode())
    (folder(found.source, 12) / "_SUCCESS").unlink()
    return found


def folder(root: Path, hour: int) -> Path:
    return root / "date=2026-01-05" / f"hour={hour:02}"


def deliver(partitions: Partitions, hour: int, content: bytes, name: str = "part-0.json") -> Path:
    file = folder(partitions.source, hour) / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    (file.parent / "_SUCCESS").touch()
    return file


def landed(partitions: Partitions) -> dict[str, bytes]:
    files = partitions.landed.rglob("provider_visits-*")
    return {f"{file.parent.name[5:]}/{file.name.removeprefix('provider_visits-')}": file.read_bytes() for file in files}


def test_incremental_loader_by_time_partition_lands_complete_hours_once(partitions: Partitions) -> None:
    assert partitions.new() == ["2026-01-05T10", "2026-01-05T11"]
    assert partitions.load(partitions.new()) == {"2026-01-05T10": 1, "2026-01-05T11": 1}
    assert landed(partitions) == {"10/part-0.json": b"line of 10\n", "11/part-0.json": b"line of 11\n"}
    assert all((folder(partitions.landed, hour) / "_SUCCESS").is_file() for hour in (10, 11))
    assert partitions.new() == []
    before = {file: file.stat().st_ctime_ns for file in partitions.landed.rglob("*") if file.is_file()}
    assert partitions.load(["2026-01-05T10", "2026-01-05T11", "2026-01-05T12"]) == {
        "2026-01-05T10": 0,
        "2026-01-05T11": 0,
    }
    assert {file: file.stat().st_ctime_ns for file in before} == before


def test_incremental_loader_by_time_partition_reads_the_windows_of_its_run_only(partitions: Partitions) -> None:
    """A backfill of an old hour needs no other hour: others cannot even be read, and new files of them do not land."""
    partitions.load(partitions.new())
    deliver(partitions, 10, b"more\n", "part-1.json")
    late = deliver(partitions, 11, b"late\n", "part-1.json")
    late.unlink()
    late.symlink_to("/nonexistent")
    assert partitions.load(["2026-01-05T10"]) == {"2026-01-05T10": 1}
    assert sorted(landed(partitions)) == ["10/part-0.json", "10/part-1.json", "11/part-0.json"]


def test_incremental_loader_by_time_partition_lands_a_corrected_file_again(partitions: Partitions) -> None:
    partitions.load(partitions.new())
    corrected = deliver(partitions, 10, b"line of 1O\n")
    os.utime(corrected, ns=(corrected.stat().st_mtime_ns + 1, corrected.stat().st_mtime_ns + 1))
    assert partitions.new() == ["2026-01-05T10"]
    partitions.load(partitions.new())
    assert landed(partitions)["10/part-0.json"] == b"line of 1O\n"
    assert partitions.new() == []


def test_incremental_loader_by_time_partition_leaves_erased_lines_erased(partitions: Partitions) -> None:
    deliver(partitions, 10, gzip.compress(b"a person\n"), "part-1.json.gz")

    def forget(file: Path) -> None:
        if file.suffix == ".gz":
            file.write_bytes(gzip.compress(b"\x7f" * 8 + b"\n"))

    partitions.load(partitions.new(), prepare=forget)
    assert gzip.decompress(landed(partitions)["10/part-1.json.gz"]) == b"\x7f" * 8 + b"\n"
    assert partitions.new() == []
