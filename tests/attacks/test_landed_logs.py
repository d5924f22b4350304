"""Access logs that servers rotate, and a manipulated landing zone: each line is taken once, or named."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from blogdata.errors import PlatformError
from blogdata.landing.landed_links import LinkRefused, require_within
from blogdata.landing.log_formats import formats
from blogdata.landing.log_splitter import progress_file, refused_logs, split_by_hour, unsplit_logs
from blogdata.landing.passthrough_replicator import land

START = datetime(2026, 3, 1, 10, 0, tzinfo=timezone.utc)
NOW = START + timedelta(days=2)


def lines(first: int, end: int) -> bytes:
    """Write lines, one a minute."""
    return b"".join(
        f'203.0.113.9 - - [{START + timedelta(minutes=at):%d/%b/%Y:%H:%M:%S +0000}] "GET /{at} HTTP/1.1" 200 5 "-" '
        '"Firefox/145.0"\n'.encode()
        for at in range(first, end)
    )


def log(landing: Path, data: bytes, name: str = "a.log") -> Path:
    file = landing / "access_logs" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return file


def split_all(landing: Path) -> list[PlatformError]:
    """Split all logs as a run does; return the problems of logs that wait."""
    faults = []
    for file in unsplit_logs(landing):
        try:
            split_by_hour(file, landing, formats(), now=NOW)
        except PlatformError as error:
            faults.append(error)
    return faults


def taken(landing: Path) -> Counter[bytes]:
    """List every line in the hours, with its number."""
    found = landing.glob("visits/*/*/*.log")
    return Counter(line for file in found for line in file.read_bytes().splitlines(keepends=True))


def once(data: bytes) -> Counter[bytes]:
    return Counter(data.splitlines(keepends=True))


def test_a_log_keeps_its_copy_when_another_one_has_taken_its_name(tmp_path: Path) -> None:
    source, folder = tmp_path / "a.log", tmp_path / "access_logs"
    outcomes = []
    for data in (lines(0, 2), lines(5, 6), lines(5, 8), lines(0, 3), b"", lines(5, 7)):
        source.write_bytes(data)
        outcomes.append(land(source, folder).outcome)
    assert outcomes == ["new", "renamed", "grown", "grown", "empty", "beginning"]
    assert sorted(file.read_bytes() for file in folder.glob("a*")) == [lines(0, 3), lines(5, 8)]


def test_a_log_that_others_have_rotated_in_the_landing_zone_is_named(tmp_path: Path) -> None:
    file = log(tmp_path, lines(0, 90))
    assert split_all(tmp_path) == []
    file.rename(file.with_name("a.log.1"))
    log(tmp_path, lines(90, 100))
    assert {Path(fault.where).name: fault.what.partition(":")[0] for fault in split_all(tmp_path)} == {
        "a.log": "the log no longer begins with what was taken from it",
        "a.log.1": "the log begins with what was taken from a.log",
    }
    assert taken(tmp_path) == once(lines(0, 90))


def test_a_log_under_a_second_name_is_taken_once_and_a_folder_is_named(tmp_path: Path) -> None:
    file = log(tmp_path, lines(0, 3))
    file.with_name("current.log").symlink_to(file.name)
    os.link(file, file.with_name("z.log"))
    log(tmp_path, lines(7, 8), "2026/b.log")
    (fault,) = split_all(tmp_path)
    assert (Path(fault.where).name, "taken from" in fault.what) == ("z.log", True)
    assert taken(tmp_path) == once(lines(0, 3))
    assert [str(one) for one in refused_logs(tmp_path)] == [
        f"{file.parent / '2026'} is a folder, and logs lie side by side"
    ]


def lost(file: Path) -> None:
    file.unlink()


def piped(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def altered(**fields: object) -> Callable[[Path], None]:
    def alter(file: Path) -> None:
        file.write_text(json.dumps({**json.loads(file.read_text()), **fields}))

    return alter


@pytest.mark.parametrize(
    "spoil",
    {
        "lost": lost,
        "cut": lambda file: file.write_bytes(file.read_bytes()[:20]),
        "other fields": lambda file: file.write_text('{"covered": 1}'),
        "a negative number": altered(covered=-1),
        "a pipe": piped,
        "an hour that is a path": altered(hour="2026-03-01T/../../../../../outside"),
        "an hour of no calendar": altered(hour="2026-13-01T99"),
    }.items(),
    ids=lambda case: case[0],
)
@pytest.mark.parametrize("open_line", [b"", b"an incomplete line"], ids=["whole", "open"])
def test_progress_that_is_lost_or_damaged_doubles_nothing(
    tmp_path: Path, spoil: tuple[str, Callable[[Path], None]], open_line: bytes
) -> None:
    landing = tmp_path / "landing"
    log(landing, lines(5, 6), "b.log")
    for end in (30, 50, 70):
        file = log(landing, lines(10, end) + open_line)
        assert split_all(landing) == []
    spoil[1](progress_file(file))
    assert [path.name for path in unsplit_logs(landing)] == ["a.log"]
    before = {*landing.glob("visits/*/*/*.log")}
    log(landing, lines(10, 75))
    assert split_all(landing) == []
    assert before <= {*landing.glob("visits/*/*/*.log")}, "a moved part would change visit ids"
    assert unsplit_logs(landing) == []
    assert taken(landing) == once(lines(5, 6) + lines(10, 75))
    assert [*tmp_path.iterdir()] == [landing]


def test_a_path_that_leads_out_without_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "landing").mkdir()
    for path in (tmp_path / "landing" / ".." / "home", tmp_path / "home", Path("/etc/passwd")):
        with pytest.raises(LinkRefused, match="leads out of the landing zone"):
            require_within([path], tmp_path / "landing")


def in_the_way(landing: Path) -> str:
    (landing / "visits" / "date=2026-03-01").mkdir(parents=True)
    (landing / "visits" / "date=2026-03-01" / "hour=10").write_bytes(b"")
    log(landing, lines(0, 3), "a.log")
    return "a.log"


def test_a_log_that_cannot_be_split_stops_no_other(tmp_path: Path) -> None:
    name = in_the_way(tmp_path)
    log(tmp_path, lines(60, 65), "b.log")
    (fault,) = split_all(tmp_path)
    assert "the log cannot be" in fault.what
    assert [path.name for path in unsplit_logs(tmp_path)] == [name]
    assert taken(tmp_path) == once(lines(60, 65))


@pytest.mark.parametrize("letter", ["a", "é"])
def test_logs_with_the_longest_names_are_split_each_as_its_own(tmp_path: Path, letter: str) -> None:
    stem = letter * (250 // len(letter.encode()))
    source, landing = tmp_path / "source", tmp_path / "landing"
    written = b""
    for number, name in enumerate((f"{stem}1.log", f"{stem}2.log", f"{stem}1.log")):
        folder = source / str(number)
        folder.mkdir(parents=True)
        (folder / name).write_bytes(lines(70 * number, 70 * number + 70))
        land(folder / name, landing / "access_logs")
        assert split_all(landing) == []
        written += lines(70 * number, 70 * number + 70)
    assert taken(landing) == once(written)
    assert unsplit_logs(landing) == []
