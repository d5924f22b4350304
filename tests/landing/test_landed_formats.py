"""A landed file's format follows from its bytes, each file is accounted for, and none is read whole into memory."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from blogdata.contract.partitions import Grain
from blogdata.errors import PlatformError
from blogdata.landing.lines import Piece, Work
from blogdata.landing.log_splitter import refused_logs, unsplit_logs
from blogdata.landing.readiness_marker import Lack, scan
from blogdata.landing.sizes import LandedSize, measure
from blogdata.planning import arrivals
from quality.contracts import LANDED
from unit.unread import Unread

MARK = b"\xef\xbb\xbf"
LINES = [b"", b"one", b'{"two": 2}\r', b"\xff\x00", b"", b"last"]
TEXT = b"\n".join(LINES)
PACK: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": lambda content: pa.Codec("zstd").compress(content, asbytes=True),
}
PACKED = {kind: pack(TEXT[:9]) + pack(TEXT[9:]) for kind, pack in PACK.items()}
HUGE_DICTIONARY = {"id": lzma.FILTER_LZMA2, "dict_size": 1 << 28, "mode": lzma.MODE_FAST, "mf": lzma.MF_HC3}
NAMES = ["a.json", "a.json.gz", "a.GZ", "a.json.bz2", "a.xz", "a.json.zst", "a.json.deflate", "a.snappy", "a._COPYING_"]


def offsets(mark: int = 0) -> list[tuple[int, bytes]]:
    found, offset = [], 0
    for line in LINES:
        found.append((offset, line))
        offset += len(line) + 1 + (0 if found[1:] else mark)
    return found


def test_files_are_read_by_their_bytes_under_any_name_and_with_a_byte_order_mark(tmp_path: Path) -> None:
    """The mark belongs to the place of the first line, and not to its text."""
    marked = {tmp_path / "a.json": MARK + TEXT, tmp_path / "b.json.gz": gzip.compress(MARK + TEXT)}
    plain = {tmp_path / kind / name: content for kind, content in PACKED.items() for name in NAMES}
    only_a_mark = tmp_path / "only a mark"
    for file, content in {**marked, **plain, only_a_mark: MARK}.items():
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(content)
    files = [*marked, *plain]
    assert set(map(measure, files)) == {LandedSize(lines=len(LINES), bytes=len(TEXT) + 1)}
    assert measure(only_a_mark) == LandedSize(lines=0, bytes=0)
    pieces = [Piece(str(file.relative_to(tmp_path)), "") for file in (*files, only_a_mark)]
    # Spark's workers read lines by the same function.
    batches = Work(root=tmp_path, reader=Unread(), longest=100).batches(pieces)
    rows = [row for batch in batches for row in batch.to_pylist()]
    found = sorted((row["source_file"], row["source_offset"], bytes(row["raw"])) for row in rows)
    expected = ((file, offsets(len(MARK) if file in marked else 0)) for file in files)
    assert found == sorted((str(file.relative_to(tmp_path)), *line) for file, lines in expected for line in lines)


DAMAGED = {
    **{f"{kind} cut off": content[:-6] for kind, content in PACKED.items() if kind != "plain"},
    **{f"{kind} and more": content + b"more" for kind, content in PACKED.items() if kind != "plain"},
    "xz of a huge dictionary": lzma.compress(TEXT, filters=[HUGE_DICTIONARY]),
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_damage_is_noticed_to_the_last_byte(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(PlatformError) as told:
        measure(tmp_path / "a.json")
    assert told.value.where == str(tmp_path / "a.json")


@pytest.fixture
def zone() -> Iterator[Path]:
    """A landing zone that other users may read; pytest's own folders are readable by their owner only."""
    folder = Path(tempfile.mkdtemp(dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")))
    folder.chmod(0o755)
    yield folder / "landing"
    shutil.rmtree(folder)


@contextmanager
def unprivileged() -> Iterator[None]:
    """Run the whole process as a user whom file permissions stop, if it is the superuser."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)


def test_unreadable_entries_hold_only_their_hour_and_folders_are_read(zone: Path) -> None:
    hours = {name: zone / "visits" / "date=2026-01-05" / f"hour={at:02}" for at, name in enumerate(WAYS)}
    for folder in hours.values():
        (folder / "part.json").mkdir(parents=True)
        (folder / "part.json" / "part-0000").write_bytes(b"1\n")
        (folder / "part.json" / "_SUCCESS").touch()
        (folder / "_SUCCESS").touch()
    os.mkfifo(hours["fifo"] / "fifo.json")
    (hours["name"] / os.fsdecode(b"caf\xe9.json")).touch()
    (hours["link"] / "again").symlink_to("part.json")
    (hours["deep"] / "/".join("abcdefghi")).mkdir(parents=True)
    (hours["folder"] / "part.json").chmod(0)
    hours["hour"].chmod(0)
    with unprivileged():
        found = dict(zip(WAYS, scan(zone / "visits", Grain.HOUR), strict=True))
        told = {error.where: error.what for error in arrivals.refusals(LANDED.values(), zone)}
    assert [name for name, hour in found.items() if hour.lacks is Lack.ENTRY] == [name for name in WAYS if WAYS[name]]
    for name, expected in WAYS.items():
        whats = [what for where, what in told.items() if where.startswith(str(hours[name]))]
        assert whats == ([f"an entry of the landing zone {expected}"] if expected else [])
    assert [file.name for file in found["read"].files] == ["part.json/part-0000"]
    hours["hour"].chmod(0o755)


WAYS = {
    "read": "",
    "fifo": "is neither a file nor a folder",
    "name": "has a name that is not UTF-8",
    "link": "is a link to a folder, which is not followed here",
    "deep": "lies more than 8 folders deep",
    "folder": "may not be read: Permission denied",
    "hour": "may not be read: Permission denied",
}


def test_a_log_that_cannot_be_read_is_named_and_no_other_waits_for_it(zone: Path) -> None:
    (zone / "access_logs" / "folder").mkdir(parents=True)
    for name in ("good.log", "secret.log", os.fsdecode(b"caf\xe9.log")):
        (zone / "access_logs" / name).write_bytes(os.fsencode(name) + b"\n")
    (zone / "access_logs" / "secret.log").chmod(0)
    os.mkfifo(zone / "access_logs" / "pipe.log")
    with unprivileged():
        assert [os.fsencode(log.name) for log in unsplit_logs(zone)] == [b"caf\xe9.log", b"good.log"]
        assert [str(log) for log in refused_logs(zone)] == [
            f"{zone}/access_logs/folder is a folder, and logs lie side by side",
            f"{zone}/access_logs/pipe.log is neither a file nor a folder",
            f"{zone}/access_logs/secret.log may not be read",
        ]
