from __future__ import annotations

import gzip
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from blogdata.lake.store_faults import DataFileDamaged, LandedFileUnreadable, LandedFileVanished, store_faults
from blogdata.patterns.ingestion.landed_formats import MARK, foreign
from blogdata.patterns.ingestion.landed_lines import LandedSize, judge_all, measure, measure_all, read
from blogdata.patterns.ingestion.landed_links import LinkRefused

NASTY = b'{"a":1}\r\n\xff\xfe not text\n\n  \n{"\xe2\x80\xa8"}\n\x00\x85\x0b\x0c\nlast without line feed'
"""Carriage return, bytes that are no text, an empty line, a line separator of Unicode, control characters."""


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    folder = tmp_path / "landing" / "visits" / "date=2026-01-05" / "hour=03"
    folder.mkdir(parents=True)
    return folder


def land(folder: Path, name: str, content: bytes) -> Path:
    file = folder / name
    file.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return file


def lines(content: bytes) -> list[tuple[int, bytes]]:
    """Compute the offset and the bytes of each line: the definition against which the reader is tested."""
    found, offset = [], 0
    parts = content.split(b"\n")
    for part in parts if parts[-1] else parts[:-1]:
        found.append((offset, part))
        offset += len(part) + 1
    return found


def found(frame: Any) -> list[tuple[int, bytes]]:
    return sorted((row["source_offset"], bytes(row["raw"])) for row in frame.collect())


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
@pytest.mark.parametrize("engine", [True, False])
def test_every_line_is_read_exactly_with_its_offset(spark: Any, landing: Path, name: str, engine: bool) -> None:
    root = landing.parents[2]
    frame = read(spark, root, [land(landing, name, NASTY)], engine=engine)
    assert found(frame) == lines(NASTY)
    assert {row["source_file"] for row in frame.collect()} == {f"visits/date=2026-01-05/hour=03/{name}"}
    assert [(field.name, field.dataType.simpleString()) for field in frame.schema] == [
        ("raw", "binary"),
        ("source_offset", "bigint"),
        ("source_file", "string"),
    ]


def test_a_text_source_breaks_lines_and_loses_bytes(spark: Any, landing: Path) -> None:
    plain = spark.read.text(str(land(landing, "a.json", NASTY))).selectExpr("hex(value) AS line").collect()
    assert sorted(row["line"] for row in plain) != sorted(line.hex().upper() for _, line in lines(NASTY))


def test_a_line_longer_than_a_block_is_whole(spark: Any, landing: Path) -> None:
    content = b"short\n" + b"x" * 5_000_000 + b"\nend\n"
    frame = read(spark, landing.parents[2], [land(landing, "a.json", content)])
    assert [(offset, len(raw)) for offset, raw in found(frame)] == [(0, 5), (6, 5_000_000), (5_000_007, 3)]


def test_a_large_split_file_gives_every_line_once(spark: Any, landing: Path) -> None:
    content = b"".join(b"%07d %s\n" % (number, b"x" * (number % 90)) for number in range(40_000))
    file = land(landing, "a.json", content)
    before = spark.conf.get("spark.sql.files.maxPartitionBytes")
    spark.conf.set("spark.sql.files.maxPartitionBytes", "100000")
    try:
        assert found(read(spark, landing.parents[2], [file])) == lines(content)
    finally:
        spark.conf.set("spark.sql.files.maxPartitionBytes", before)


@pytest.mark.parametrize("engine", [True, False])
def test_names_are_no_patterns_and_are_recorded_unchanged(spark: Any, tmp_path: Path, engine: bool) -> None:
    root = tmp_path / "my blog é+%20 [1]{2}*?"
    root.mkdir()
    names = [
        "part (1) é+%2B #.json",
        "a[b].json",
        "ab.json",
        "{p,q}.json",
        "p.json",
        "x*.json",
        "xy.json",
        "back\\[.json",
    ]
    names += ["2026-01-05T04:00:00.json", "line\nfeed", "co:lon", "a;b&c=d"]
    files = [land(root, name, f"{name}\n".encode() if "\n" not in name else b"feed\n") for name in names]
    if not engine:
        # Files that Spark's own sources cannot open are refused before.
        judged = judge_all(files, root, engine=False)
        names = [name for name, size in zip(names, judged, strict=True) if isinstance(size, LandedSize)]
        assert len(names) == len(files) - 2
        files = [root / name for name in names]
    rows = read(spark, root, files, engine=engine).collect()
    assert sorted((row["source_file"], bytes(row["raw"])) for row in rows) == sorted(
        (name, name.encode() if "\n" not in name else b"feed") for name in names
    )


@pytest.mark.parametrize("engine", [True, False])
def test_several_files_keep_their_own_offsets(spark: Any, landing: Path, engine: bool) -> None:
    files = [land(landing, "a.json", b"1\n22\n"), land(landing, "b.json.gz", b"333\n4")]
    rows = read(spark, landing.parents[2], files, engine=engine).collect()
    assert {(Path(row["source_file"]).name, row["source_offset"], bytes(row["raw"])) for row in rows} == {
        ("a.json", 0, b"1"),
        ("a.json", 2, b"22"),
        ("b.json.gz", 0, b"333"),
        ("b.json.gz", 4, b"4"),
    }


@pytest.mark.parametrize("engine", [True, False])
def test_empty_files_and_empty_lists_have_no_lines(spark: Any, landing: Path, engine: bool) -> None:
    empty = land(landing, "a.json", b"")
    assert read(spark, landing.parents[2], [empty], engine=engine).count() == 0
    assert read(spark, landing.parents[2], [], engine=engine).columns == [
        "raw",
        "source_offset",
        "source_file",
    ]


def test_a_torn_gzip_file_is_an_error(spark: Any, landing: Path) -> None:
    whole = gzip.compress(b"".join(b"line %d\n" % number for number in range(10_000)))
    torn = landing / "a.json.gz"
    torn.write_bytes(whole[: len(whole) // 2])
    for attempt in (lambda: measure(torn), read(spark, landing.parents[2], [torn]).collect):
        with pytest.raises(LandedFileUnreadable, match="landed again") as told, store_faults("bronze.visits"):
            attempt()
        assert (told.value.where, told.value.transient) == (str(torn), False)


def test_garbled_and_unopenable_files_are_named(landing: Path) -> None:
    packed = bytearray(gzip.compress(bytes(range(256)) * 99))
    packed[12:40] = b"\xff" * 28
    (landing / "a.json.gz").write_bytes(packed)
    (landing / "c.json").mkdir()
    for file in sorted(landing.iterdir()):
        with pytest.raises(LandedFileUnreadable) as told:
            measure_all([file], landing)
        assert told.value.where == str(file)


def test_a_file_without_read_permission_is_named(landing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = land(landing, "a.json", b"1\n")

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied", str(file))

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(LandedFileUnreadable, match="Permission denied") as told, store_faults("bronze.visits"):
        measure(file)
    assert told.value.where == str(file)
    assert "make it readable" in told.value.next_step


@pytest.mark.parametrize("engine", [True, False])
@pytest.mark.parametrize("planned", [True, False])
def test_a_vanished_file_is_named_and_transient(spark: Any, tmp_path: Path, engine: bool, planned: bool) -> None:
    folder = tmp_path / "my é+%20" / "visits" / "date=2026-01-05" / "hour=03"
    folder.mkdir(parents=True)
    file = land(folder, "a.json", b"1\n")
    frame = read(spark, folder.parents[2], [file], engine=engine)
    if planned:
        assert frame.columns
    file.unlink()
    with pytest.raises(LandedFileVanished) as measured:
        measure_all([file], folder)
    with pytest.raises(LandedFileVanished) as told, store_faults("bronze.visits"):
        frame.collect()
    assert {error.value.where for error in (measured, told)} == {str(file)}
    assert told.value.transient


def test_a_lost_table_file_is_reported_as_damage() -> None:
    said = "[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file file:///lake/date=1/part-0.parquet. "
    with pytest.raises(DataFileDamaged, match="blogdata doctor"), store_faults("gold.pages"):
        raise RuntimeError(said)


@pytest.mark.parametrize("engine", [True, False])
def test_a_link_within_the_root_keeps_its_name(spark: Any, tmp_path: Path, engine: bool) -> None:
    disk, root = tmp_path / "disk", tmp_path / "root"
    disk.mkdir()
    root.symlink_to(disk)
    land(disk, "a.json", b"1\n")
    (disk / "b.json").symlink_to("a.json")
    rows = read(spark, root, [root / "a.json", root / "b.json"], engine=engine).collect()
    assert {(row["source_file"], bytes(row["raw"])) for row in rows} == {("a.json", b"1"), ("b.json", b"1")}


def test_a_link_out_of_the_root_is_refused(spark: Any, tmp_path: Path) -> None:
    root, file = tmp_path / "root", tmp_path / "root" / "a.json"
    root.mkdir()
    land(root, "a.json", b"1\n")
    (tmp_path / "secret").write_bytes(b"secret\n")
    frame = read(spark, root, [file])
    file.unlink()
    file.symlink_to(tmp_path / "secret")
    for engine in (True, False):
        with pytest.raises(LinkRefused, match="secret"):
            read(spark, root, [file], engine=engine)
    assert frame.collect() == [], "also if it was put there after the scan of the files"


@settings(deadline=None)
@given(st.binary(max_size=300) | st.lists(st.sampled_from([b"\n", b"\r", b"a", b"\xff"]), max_size=40).map(b"".join))
def test_the_independent_count_gives_lines_and_bytes(content: bytes) -> None:
    # Files that look like another format are not counted, and lines of erased rows are counted apart.
    assume(foreign(content) is None and not content.startswith(MARK) and b"\x7f" not in content)
    with tempfile.TemporaryDirectory() as name:
        expected = lines(content)
        size = LandedSize(lines=len(expected), bytes=sum(len(line) + 1 for _, line in expected))
        for file in ("a.json", "a.json.gz"):
            assert measure(land(Path(name), file, content)) == size


def test_many_files_are_measured_in_their_order(landing: Path) -> None:
    files = [land(landing, f"{number}.json", b"x\n" * number) for number in range(12)]
    assert [size.lines for size in measure_all(files, landing)] == list(range(12))


def test_spark_reads_the_counted_lines_and_bytes(spark: Any, landing: Path) -> None:
    files = [
        land(landing, "a.json", NASTY),
        land(landing, "b.log.gz", NASTY * 3),
        land(landing, "c.json", b"\n"),
    ]
    counted = measure_all(files, landing)
    frame = read(spark, landing.parents[2], files)
    row = frame.selectExpr("count(1) AS lines", "sum(length(raw) + 1) AS bytes").first()
    assert row is not None
    assert (row["lines"], row["bytes"]) == (
        sum(size.lines for size in counted),
        sum(size.bytes for size in counted),
    )
