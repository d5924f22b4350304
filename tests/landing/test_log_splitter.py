"""The hourly parts of a log join to the log, whatever interrupts the splitting."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from blogdata.landing import landed_formats, log_splitter, vanished_lines
from blogdata.landing.log_formats import formats
from blogdata.landing.log_splitter import SplitReport, split_all, split_by_hour, unsplit_logs
from blogdata.landing.readiness_marker import FLAG
from landing.growing_logs import NOW, Killed, line, put

HEADER = b"#Fields: date time c-ip cs-method cs-uri-stem sc-status\n"


def split(landing: Path, name: str = "a.log", now: datetime = NOW) -> SplitReport:
    return split_by_hour(landing / "access_logs" / name, landing, formats(), now=now)


def parts(landing: Path) -> list[Path]:
    return sorted(landing.glob("visits/*/*/*.log*"), key=lambda path: path.name.rpartition("-")[2])


def joined(landing: Path) -> bytes:
    return b"".join(path.read_bytes() for path in parts(landing))


def by_hour(landing: Path) -> dict[str, bytes]:
    found: dict[str, bytes] = defaultdict(bytes)
    for path in parts(landing):
        found[f"{path.parent.parent.name[5:]}T{path.parent.name[5:]}"] += path.read_bytes()
    return dict(found)


def test_a_log_is_split_into_flagged_hours(tmp_path: Path) -> None:
    lines = [line(0), line(1), line(2), line(3), line(3602)]
    put(tmp_path, b"".join(lines))
    report = split(tmp_path)
    assert by_hour(tmp_path) == {
        "2026-03-01T10": lines[0] + lines[1],
        "2026-03-01T11": lines[2] + lines[3],
        "2026-03-01T12": lines[4],
    }
    assert (report.lines, len(report.parts)) == (5, 3)
    assert all((path.parent / FLAG).exists() for path in parts(tmp_path))
    assert re.fullmatch(r"a-[0-9a-f]{8}-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-0{12}\.log", parts(tmp_path)[0].name)


def test_unordered_and_unreadable_lines_stay_with_their_neighbours(tmp_path: Path) -> None:
    future = line(10**9)
    lines = [b"garbage\n", b"\n", line(10), line(0), b"\xff\xfe [17/Foo/2026\n", future, line(3602), b"tail"]
    put(tmp_path, b"".join(lines))
    split(tmp_path)
    assert by_hour(tmp_path) == {"2026-03-01T11": b"".join(lines[:6]), "2026-03-01T12": b"".join(lines[6:])}
    assert joined(tmp_path) == b"".join(lines)


def test_only_hours_between_lines_are_flagged_empty(tmp_path: Path) -> None:
    put(tmp_path, line(0) + line(4 * 3600))
    report = split(tmp_path)
    assert report.empty_hours == ("2026-03-01T11", "2026-03-01T12", "2026-03-01T13")
    day = tmp_path / "visits" / "date=2026-03-01"
    assert sorted(path.name for path in day.iterdir()) == [f"hour={hour}" for hour in (10, 11, 12, 13, 14)]
    assert [path.name for path in (day / "hour=12").iterdir()] == [FLAG]
    put(tmp_path, line(-10 * 365 * 86400) + line(0), "years.log")
    assert split(tmp_path, "years.log").empty_hours == (), "a silence of years makes no folders"


def test_an_unfinished_delivery_is_not_flagged_empty(tmp_path: Path) -> None:
    other = tmp_path / "visits" / "date=2026-03-01" / "hour=12"
    other.mkdir(parents=True)
    (other / "visits.json").write_text("{}\n")
    put(tmp_path, line(0) + line(4 * 3600))
    assert "2026-03-01T12" not in split(tmp_path).empty_hours
    assert not (other / FLAG).exists()


def test_an_undated_log_goes_to_the_current_hour(tmp_path: Path) -> None:
    put(tmp_path, b"no time\nat all")
    split(tmp_path)
    assert by_hour(tmp_path) == {"2026-11-21T12": b"no time\nat all"}


def test_a_line_growth_cut_off_is_completed_once(tmp_path: Path) -> None:
    data, at = line(0) + line(2), len(line(0))
    for cut in (1, 2, 40, at - 2, at - 1, at, at + 1, at + 2, at + 30, at + 60, len(data) - 2, len(data) - 1):
        landing = tmp_path / str(cut)
        put(landing, data[:cut])
        split(landing)
        assert joined(landing) == data[:cut]
        ended = [path.read_bytes().endswith(b"\n") for path in parts(landing)]
        assert [path.suffix == ".log" for path in parts(landing)] == ended
        put(landing, data)
        split(landing)
        assert joined(landing) == data
        assert {path.suffix for path in parts(landing)} == {".log"}
        assert by_hour(landing) == {"2026-03-01T10": line(0), "2026-03-01T11": line(2)}


@pytest.mark.parametrize("data", [line(0) + line(2)[:-5], line(2)[:-5], line(0) + line(2), b"no time", HEADER + b"#Fi"])
def test_a_copied_log_lands_no_line_again(tmp_path: Path, data: bytes) -> None:
    put(tmp_path, data)
    assert split(tmp_path).lines == data.count(b"\n") + (not data.endswith(b"\n"))
    landed = joined(tmp_path)
    for at, progress in ((0, True), (315_532_800, True), (2**32, True), (1, False)):
        os.utime(tmp_path / "access_logs" / "a.log", (at, at))
        if not progress:
            log_splitter.progress_file(tmp_path / "access_logs" / "a.log").unlink()
        assert unsplit_logs(tmp_path)
        assert (split(tmp_path, now=NOW + timedelta(seconds=9)).lines, joined(tmp_path)) == (0, landed)


def test_a_line_longer_than_a_block_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (log_splitter, landed_formats):
        monkeypatch.setattr(module, "BLOCK", 128)
    data = line(0, "/" + "x" * 1000) + line(3, "/" + "[" * 300) + line(4)
    put(tmp_path, data)
    assert split(tmp_path).lines == 3
    assert joined(tmp_path) == data
    assert len(parts(tmp_path)) == 2


@pytest.mark.parametrize("grown", [False, True])
def test_a_killed_split_resumes_to_the_same_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, grown: bool) -> None:
    data = b"".join(line(second) for second in (0, 1, 2, 3, 3602, 3 * 3600))
    later = data + line(3 * 3600 + 1) + line(5 * 3600)
    final = later if grown else data
    put(tmp_path / "whole", data[:-30])
    split(tmp_path / "whole")
    put(tmp_path / "whole", final)
    split(tmp_path / "whole")
    replace = Path.replace
    for dies_at in range(1, 14):
        landing = tmp_path / f"killed-{dies_at}"
        put(landing, data[:-30])

        def dying(self: Path, target: Path, *, at: int = dies_at, steps: Iterator[int] = count(1)) -> Path:
            if next(steps) == at:
                raise Killed
            return replace(self, target)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "replace", dying)
            try:
                split(landing)
            except Killed:
                assert unsplit_logs(landing)
        put(landing, final)
        split(landing, now=NOW + timedelta(hours=1))
        assert joined(landing) == final
        assert list(landing.glob("visits/*/*/.*")) == [], "lines that it left in a hidden file are removed"
        if not grown:
            assert by_hour(landing) == by_hour(tmp_path / "whole")
        assert unsplit_logs(landing) == []


@given(
    lines=st.lists(
        st.one_of(
            st.integers(-5000, 20000).map(line), st.binary(max_size=30).map(lambda raw: raw.replace(b"\n", b"") + b"\n")
        ),
        max_size=12,
    ),
    cuts=st.lists(st.integers(0, 1500), max_size=3),
)
@settings(max_examples=60, deadline=None)
def test_the_parts_of_any_log_join_to_it(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], cuts: list[int]
) -> None:
    landing = tmp_path_factory.mktemp("grown")
    data = b"".join(lines)
    # A file with the magic bytes of a compressed file is treated as one.
    assume(landed_formats.compression(data[: landed_formats.HEAD]) is None)
    for cut in sorted({*cuts, len(data)}):
        put(landing, data[:cut])
        split(landing)
        assert joined(landing) == data[:cut]
        hours = [path.parent.parent.name + path.parent.name for path in parts(landing)]
        assert hours == sorted(hours)


OTHER = b"#Fields: time date c-ip cs-method cs-uri-stem sc-status\n"


def test_the_columns_of_a_log_are_told_in_each_of_its_parts(tmp_path: Path) -> None:
    first = b"#Version: 1.0\n" + HEADER + b"2015-05-17 10:05:03 203.0.113.9 GET /a 200\n"
    second = b"2015-05-17 11:05:03 203.0.113.9 GET /b 200\n" + OTHER
    third = b"12:05:03 2015-05-17 203.0.113.9 GET /c 200\n"
    put(tmp_path, first + second + third)
    split(tmp_path)
    whole = [first, HEADER + second, OTHER + third]
    assert [path.read_bytes() for path in parts(tmp_path)] == whole
    appended = b"13:05:03 2015-05-17 203.0.113.9 GET /d 200\n"
    put(tmp_path, first + second + third + appended + b"#Fields: da")
    split(tmp_path, now=NOW + timedelta(seconds=1))
    assert [path.read_bytes() for path in parts(tmp_path)] == [*whole, OTHER + appended, b"#Fields: da"]
    put(tmp_path, first + second + third + appended + HEADER)
    split(tmp_path, now=NOW + timedelta(seconds=2))
    assert [path.read_bytes() for path in parts(tmp_path)] == [*whole, OTHER + appended, HEADER]
    # Without its progress a log is compared with its parts.
    log_splitter.progress_file(tmp_path / "access_logs" / "a.log").unlink()
    split(tmp_path, now=NOW + timedelta(seconds=3))
    assert [path.read_bytes() for path in parts(tmp_path)] == [*whole, OTHER + appended, HEADER]


def test_the_begin_of_a_line_is_not_lost_when_the_line_has_ended(tmp_path: Path) -> None:
    data = line(0) + line(2) + line(4) + line(3604)
    for cut in range(len(line(0)) + 1, len(data), 11):
        landing = tmp_path / str(cut)
        put(landing, data[:cut])
        split(landing)
        published = [*vanished_lines.landed_lines(parts(landing), landing)]
        put(landing, data)
        split(landing, now=NOW + timedelta(seconds=1))
        landed = [*vanished_lines.landed_lines(parts(landing), landing)]
        for hour in {one.file.rpartition("/")[0] for one in published}:
            before, now = ([one for one in lines if one.file.startswith(hour)] for lines in (published, landed))
            sizes = [Counter(one.file for one in lines) for lines in (before, now)]
            assert vanished_lines.loss(hour, *sizes, published_lines=before.copy, landed_lines=now.copy) is None


def test_later_parts_sort_later_however_many_logs_are_split_with_theirs(tmp_path: Path) -> None:
    """Of many logs of one call, the first bear earlier times; a stream calls again after seconds."""
    put(tmp_path, line(0))
    ((_, report),) = split_all(tmp_path, formats(), now=NOW)
    assert isinstance(report, SplitReport)
    put(tmp_path, line(0) + line(1))
    for number in range(9):
        put(tmp_path, line(60 + number), f"{number}.log")
    (first, _), *_ = split_all(tmp_path, formats(), now=NOW + timedelta(seconds=5))
    assert first.name == "a.log"
    taken = [re.findall(log_splitter.PART, path.name)[0] for path in sorted(tmp_path.glob("visits/*/*/a-*.log"))]
    assert [int(offset) for _, _, offset in sorted(taken, key=lambda part: part[1:])] == [0, len(line(0))]
