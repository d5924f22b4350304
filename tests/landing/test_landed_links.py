"""Readiness Marker, Passthrough Replicator and Dead-Letter: no link leads the platform out of the landing zone."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest

from blogdata.contract.partitions import Grain
from blogdata.landing.landed_links import LinkRefused
from blogdata.landing.log_formats import formats
from blogdata.landing.log_splitter import SplitReport, refused_logs, split_by_hour, unsplit_logs
from blogdata.landing.passthrough_replicator import land
from blogdata.landing.readiness_marker import FLAG, LandedPartition, mark, scan
from blogdata.landing.sizes import measure_all

HOURS = ("2026-01-05T03", "2026-01-05T04", "2026-01-06T03")
LINE = b'203.0.113.9 - - [05/Jan/2026:03:00:00 +0000] "GET / HTTP/1.1" 200 5 "-" "Firefox/145.0"\n'
NOW = datetime(2026, 1, 7, tzinfo=timezone.utc)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A readable folder of another owner."""
    folder = tmp_path / "outside"
    folder.mkdir()
    for name in ("passwd", "visits.json", FLAG):
        (folder / name).write_bytes(b"root:x:0:0\n")
    return folder


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    """A landing zone, itself behind a link, with three complete hours."""
    (tmp_path / "disk").mkdir()
    link = tmp_path / "landing"
    link.symlink_to(tmp_path / "disk")
    for key in HOURS:
        hour = link / "visits" / f"date={key[:10]}" / f"hour={key[11:]}"
        hour.mkdir(parents=True)
        (hour / "visits.json").write_text("{}\n")
        mark(hour)
    return link


def hours(landing: Path) -> dict[str, LandedPartition]:
    return {hour.key: hour for hour in scan(landing / "visits", Grain.HOUR)}


def replaced(landing: Path, place: str, target: Path | str) -> Path:
    path = landing / "visits" / place
    if path.exists():
        path.rename(landing.parent / "moved")
    path.symlink_to(target)
    return path


@pytest.mark.parametrize("name", ["more.json", "visits.json", FLAG])
def test_an_outward_file_link_keeps_its_hour_waiting(landing: Path, outside: Path, name: str) -> None:
    link = replaced(landing, f"date=2026-01-05/hour=03/{name}", outside / "passwd")
    found = hours(landing)
    assert {key for key, hour in found.items() if hour.ready} == set(HOURS[1:])
    assert name not in {file.name for file in found[HOURS[0]].files}
    (refused,) = found[HOURS[0]].links
    assert str(refused.refusal()).splitlines()[:2] == [
        f"a link leads out of the landing zone, to {outside / 'passwd'}",
        f"  where: {link}",
    ]


@pytest.mark.parametrize(
    ("place", "key", "left"),
    [("date=2026-01-05/hour=03", HOURS[0], HOURS[1:]), ("date=2026-01-05", "2026-01-05", HOURS[2:]), ("", "", ())],
)
def test_an_outward_folder_link_is_not_followed(
    landing: Path, outside: Path, place: str, key: str, left: tuple[str, ...]
) -> None:
    (outside / "hour=05").mkdir()
    replaced(landing, place, outside)
    found = hours(landing)
    assert [one for one, hour in found.items() if hour.ready] == list(left)
    (link,) = found[key].links
    assert (link.why, found[key].files) == (f"leads out of the landing zone, to {outside}", ())


def test_a_link_within_the_landing_zone_is_followed(landing: Path) -> None:
    replaced(landing, "date=2026-01-05/hour=03/more.json", "../hour=04/visits.json")
    replaced(landing, "date=2026-01-06/hour=04", landing / "visits" / "date=2026-01-05" / "hour=04")
    found = hours(landing)
    assert [file.name for file in found[HOURS[0]].files] == ["more.json", "visits.json"]
    assert found["2026-01-06T04"].ready


def test_a_link_added_after_the_scan_is_refused(landing: Path, outside: Path) -> None:
    link = replaced(landing, "date=2026-01-05/hour=03/visits.json", outside / "passwd")
    with pytest.raises(LinkRefused, match="passwd"):
        measure_all([link], landing)


def log(landing: Path, name: str = "a.log") -> Path:
    path = landing / "access_logs" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(LINE)
    return path


def split(file: Path, landing: Path) -> SplitReport:
    return split_by_hour(file, landing, formats(), now=NOW)


def test_an_outward_log_link_is_refused_alone(landing: Path, outside: Path) -> None:
    log(landing)
    link = landing / "access_logs" / "b.log"
    link.symlink_to(outside / "passwd")
    (landing / "c").mkdir()
    (landing / "c" / "c.log").write_bytes(LINE * 2)
    (landing / "access_logs" / "c.log").symlink_to("../c/c.log")
    # A server's link to its current log counts as that log.
    (landing / "access_logs" / "current.log").symlink_to("a.log")
    assert [one.name for one in unsplit_logs(landing)] == ["a.log", "c.log"]
    assert [str(one) for one in refused_logs(landing)] == [
        f"{link} leads out of the landing zone, to {outside / 'passwd'}"
    ]
    with pytest.raises(LinkRefused, match="passwd"):
        split(link, landing)
    assert not any(path.name.startswith("b-") for path in landing.rglob("*"))


def test_landing_a_log_follows_and_replaces_links(landing: Path, outside: Path, tmp_path: Path) -> None:
    (outside / "access.log").write_bytes(LINE)
    named = tmp_path / "access.log"
    named.symlink_to(outside / "access.log")
    (landing / "access_logs").mkdir()
    there = landing / "access_logs" / "access.log"
    there.symlink_to(outside / "access.log")
    assert land(named, landing / "access_logs").outcome == "new"
    assert (there.is_symlink(), there.read_bytes()) == (False, LINE)
    replacement = landing / "elsewhere"
    replacement.symlink_to(outside)
    with pytest.raises(LinkRefused):
        land(named, replacement)
