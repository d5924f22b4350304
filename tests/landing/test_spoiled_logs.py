"""Logs of names, progress and places that would lose or double lines: each line is taken once, or its log is named."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from blogdata.errors import PlatformError
from blogdata.landing.landed_links import LinkRefused, require_within
from blogdata.landing.log_formats import formats
from blogdata.landing.log_splitter import progress_file, split_all, unsplit_logs
from blogdata.landing.passthrough_replicator import land
from landing.growing_logs import NOW, line, put


def lines(first: int, end: int) -> bytes:
    """Write lines, one a minute."""
    return b"".join(line(60 * minute) for minute in range(first, end))


def split(landing: Path) -> list[PlatformError]:
    """Split all logs as a run does; return the problems of logs that wait."""
    done = split_all(landing, formats(), now=NOW + timedelta(days=2))
    return [report for _, report in done if isinstance(report, PlatformError)]


def taken(landing: Path) -> Counter[bytes]:
    """Count each line in the hours."""
    return once(b"".join(file.read_bytes() for file in landing.glob("visits/*/*/*.log")))


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
    file = put(tmp_path, lines(0, 90))
    assert split(tmp_path) == []
    file.rename(file.with_name("a.log.1"))
    put(tmp_path, lines(90, 100))
    assert {Path(fault.where).name: fault.what.partition(":")[0] for fault in split(tmp_path)} == {
        "a.log": "the log no longer begins with what was taken from it",
        "a.log.1": "the log begins with what was taken from a.log",
    }
    assert taken(tmp_path) == once(lines(0, 90))


def altered(**fields: object) -> Callable[[Path], None]:
    return lambda file: _replace(file, json.dumps({**json.loads(file.read_text()), **fields}))


def _replace(file: Path, text: str) -> None:
    file.write_text(text)


def piped(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


SPOILED: dict[str, Callable[[Path], None]] = {
    "lost": Path.unlink,
    "cut": lambda file: _replace(file, file.read_text()[:20]),
    "other fields": lambda file: _replace(file, '{"covered": 1}'),
    "a negative number": altered(covered=-1),
    "a pipe": piped,
    "an hour that is a path": altered(hour="2026-03-01T/../../../../../outside"),
    "an hour of no calendar": altered(hour="2026-13-01T99"),
}


@pytest.mark.parametrize("spoil", SPOILED.values(), ids=SPOILED)
@pytest.mark.parametrize("open_line", [b"", b"an incomplete line"], ids=["whole", "open"])
def test_progress_that_is_lost_or_damaged_doubles_nothing(
    tmp_path: Path, spoil: Callable[[Path], None], open_line: bytes
) -> None:
    landing = tmp_path / "landing"
    put(landing, lines(5, 6), "b.log")
    for end in (30, 50, 70):
        file = put(landing, lines(10, end) + open_line)
        assert split(landing) == []
    spoil(progress_file(file))
    assert [path.name for path in unsplit_logs(landing)] == ["a.log"]
    before = {*landing.glob("visits/*/*/*.log")}
    put(landing, lines(10, 75))
    assert split(landing) == []
    assert before <= {*landing.glob("visits/*/*/*.log")}, "a moved part would change visit ids"
    assert unsplit_logs(landing) == []
    assert taken(landing) == once(lines(5, 6) + lines(10, 75))
    assert [*tmp_path.iterdir()] == [landing]


def test_a_path_that_leads_out_without_a_link_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "landing" / ".." / "home", tmp_path / "home", Path("/etc/passwd")):
        with pytest.raises(LinkRefused, match="leads out of the landing zone"):
            require_within([path], tmp_path / "landing")


def test_a_log_that_cannot_be_split_stops_no_other(tmp_path: Path) -> None:
    in_the_way = tmp_path / "visits" / "date=2026-03-01" / "hour=10"
    in_the_way.parent.mkdir(parents=True)
    in_the_way.touch()
    put(tmp_path, lines(0, 1), "a.log")
    put(tmp_path, lines(60, 65), "b.log")
    (fault,) = split(tmp_path)
    assert "the log cannot be" in fault.what
    assert [path.name for path in unsplit_logs(tmp_path)] == ["a.log"]
    assert taken(tmp_path) == once(lines(60, 65))


@pytest.mark.parametrize("letter", ["a", "é"])
def test_logs_with_the_longest_names_are_split_each_as_its_own(tmp_path: Path, letter: str) -> None:
    stem = letter * (250 // len(letter.encode()))
    for number, name in enumerate((f"{stem}1.log", f"{stem}2.log", f"{stem}1.log")):
        (tmp_path / name).write_bytes(lines(70 * number, 70 * number + 70))
        land(tmp_path / name, tmp_path / "access_logs")
        assert split(tmp_path) == []
    assert taken(tmp_path) == once(lines(0, 210))
    assert unsplit_logs(tmp_path) == []
