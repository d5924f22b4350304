from __future__ import annotations

import gzip
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blogdata.errors import LandedFileVanished, PlatformError
from blogdata.landing import lines as landed
from blogdata.landing.sizes import measure, measure_all
from blogdata.landing.streamed_files import arrival_hour
from blogdata.table.faults import typed_errors
from unit.unread import Unread

MARK = b"\xef\xbb\xbf"
NASTY = b'{"a":1}\r\n\xff\xfe not text\n\n  \n{"\xe2\x80\xa8"}\n\x00\x85\x0b\x0c\nlast without line feed'
"""Carriage return, bytes that are no text, an empty line, a line separator of Unicode, control characters."""

HOUR = "visits/date=2026-01-05/hour=10/a.json"
OUT, PIPE = (f"visits/date=2026-01-05/hour=10/{name}" for name in ("link.json", "pipe.json"))
MISNAMED = (
    "visits/date=2026-01-05/hour=24/a.json",
    "visits/date=2026-01-05/hour=99/a.json",
    "visits/date=2026-13-45/hour=10/a.json",
    "visits/date=2026-02-30/hour=10/a.json",
    "visits/date=2026-01-05/hour=1/a.json",
    "visits/date=2026-01-05/a.json",
)


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
        found.append((offset, part if offset else part.removeprefix(MARK)))
        offset += len(part) + 1
    return [] if content == MARK else found


@pytest.fixture
def read(spark: Any) -> Callable[..., Any]:
    def read(root: Path, files: Sequence[Path]) -> Any:
        return landed.read(spark, root, {"2026-01-05T03": files}, Unread())

    return read


def found(frame: Any) -> list[tuple[int, bytes]]:
    return sorted((row["source_offset"], bytes(row["raw"])) for row in frame.collect())


@given(
    st.lists(st.sampled_from([b"a", b"bcd", b"\n", b"\r", MARK]), max_size=30), st.lists(st.integers(1, 40), max_size=4)
)
def test_a_line_is_read_in_the_range_in_which_it_begins(pieces: list[bytes], cuts: list[int]) -> None:
    content = b"".join(pieces)
    starts = sorted({0, *(cut for cut in cuts if cut < len(content))})
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "a.json")
        file.write_bytes(content)
        ranges = zip(starts, [*starts[1:], None], strict=True)
        assert [line for start, end in ranges for line in landed.lines(file, 100, start, end)] == lines(content)


def test_a_line_that_is_too_long_is_an_error(tmp_path: Path) -> None:
    file = land(tmp_path, "a.json", b"123\n1234\n12345\n")
    found = landed.lines(file, 4)
    assert [next(found), next(found)] == [(0, b"123"), (4, b"1234")]
    with pytest.raises(OSError, match="longer than 4 bytes"):
        next(found)


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_every_line_is_read_exactly_with_its_offset(read: Callable[..., Any], landing: Path, name: str) -> None:
    root = landing.parents[2]
    frame = read(root, [land(landing, name, NASTY)])
    assert found(frame) == lines(NASTY)
    assert {row["source_file"] for row in frame.collect()} == {f"visits/date=2026-01-05/hour=03/{name}"}
    frame.createOrReplaceTempView("landed_lines")
    assert [tuple(row)[:2] for row in frame.sparkSession.sql("DESCRIBE landed_lines").collect()] == [
        ("raw", "binary"),
        ("source_offset", "bigint"),
        ("source_file", "string"),
        ("partition", "string"),
    ]


def test_names_are_no_patterns_and_are_recorded_unchanged(read: Callable[..., Any], tmp_path: Path) -> None:
    root = tmp_path / "my blog é+%20 [1]{2}*?"
    root.mkdir()
    names = ["part (1) é+%2B #.json", "a[b].json", "ab.json", "{p,q}.json", "p.json", "x*.json", "xy.json"]
    names += ["back\\[.json", "2026-01-05T04:00:00.json", "line\nfeed", "co:lon", "a;b&c=d"]
    files = [land(root, name, f"{name}\n".encode() if "\n" not in name else b"feed\n") for name in names]
    rows = read(root, files).collect()
    assert sorted((row["source_file"], bytes(row["raw"])) for row in rows) == sorted(
        (name, name.encode() if "\n" not in name else b"feed") for name in names
    )


def test_a_torn_gzip_file_is_an_error(read: Callable[..., Any], landing: Path) -> None:
    whole = gzip.compress(b"".join(b"line %d\n" % number for number in range(10_000)))
    torn = landing / "a.json.gz"
    torn.write_bytes(whole[: len(whole) // 2])
    for attempt in (lambda: measure(torn), lambda: read(landing.parents[2], [torn]).collect()):
        with pytest.raises(PlatformError, match="again") as told, typed_errors("bronze.visits"):
            attempt()
        assert (told.value.where, told.value.transient) == (str(torn), False)


def test_a_vanished_file_is_named_and_transient(spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "my é+%20. " / "visits" / "date=2026-01-05" / "hour=03"
    folder.mkdir(parents=True)
    root, file = folder.parents[2], land(folder, "a.json", b"1\n")
    frame = landed.read(spark, root, {"2026-01-05T03": [file]}, Unread())
    file.unlink()
    attempts: list[Callable[[], object]] = [
        frame.collect,
        lambda: landed.read(spark, root, {"2026-01-05T03": [file]}, Unread()),
        lambda: measure_all([file], folder),
    ]
    for attempt in attempts:
        with pytest.raises(LandedFileVanished) as told, typed_errors("bronze.visits"):
            attempt()
        assert (told.value.where, told.value.transient) == (str(file), True)


def test_a_stream_reads_the_files_that_spark_lists_if_they_lie_in_an_hour(tmp_path: Path) -> None:
    for name in (*MISNAMED, HOUR, f"{HOUR} 100%20+é"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    (tmp_path / OUT).symlink_to(__file__)
    os.mkfifo(tmp_path / PIPE)
    names = (*MISNAMED, HOUR, f"{HOUR} 100%20+é", OUT, PIPE)
    paths = [f"file:{tmp_path}/{name}" for name in names]
    work = landed.Work(root=tmp_path, reader=Unread(), longest=100)
    batches = landed._of_paths(work, arrival_hour, iter([pa.record_batch({"path": paths})]))
    found = [(row["source_file"], row["partition"], row["raw"]) for batch in batches for row in batch.to_pylist()]
    assert found == [(name, "2026-01-05T10", name.encode()) for name in names[len(MISNAMED) : -2]]
