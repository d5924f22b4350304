"""Visits of access logs span hours: late and removed lines rerun only hours whose visits change."""

from __future__ import annotations

from pathlib import Path

import pytest

import oracle
from lineage import worker
from lineage.conftest import Deploy
from lineage.phases import Hold

VISITOR = '192.0.2.{n} - - [05/Jan/2026:{time}:00 +0000] "GET {page} HTTP/1.1" 200 1 "-" "Mozilla/5.0 Firefox/120.0"'


def view(time: str, page: str, n: int = 1) -> bytes:
    """Format a page view of a visitor as a web server's log line."""
    return VISITOR.format(time=time, page=page, n=n).encode()


@pytest.mark.campaign
def test_visits_span_hours_until_thirty_minutes_of_silence(deploy: Deploy) -> None:
    # One visit from 10:50 to 11:40, and one after 31 minutes.
    hours = {
        "2026-01-05T10": [view("10:50", "/a"), view("10:55", "/a", n=2)],
        "2026-01-05T11": [view("11:15", "/b"), view("11:40", "/c"), b"not a log line"],
        "2026-01-05T12": [view("12:11", "/d"), view("12:30", "/e")],
    }
    deployment = deploy("crossing")
    for hour, lines in hours.items():
        deployment.land(hour, lines, name="access.log")
    assert deployment.run().problems == []
    pages: dict[str, set[str]] = {}
    for visit, page, user in deployment.rows("silver.visits", "visit_id", "page", "user_id"):
        pages.setdefault(visit, set()).add(page)
        assert visit != user
    assert sorted(map(sorted, pages.values())) == [["/a"], ["/a", "/b", "/c"], ["/d", "/e"]]
    assert oracle.count(deployment.landing).log_visits == len(pages)
    assert deployment.rows("bronze.dead_letters", "reasons") == [["not_combined_log:time"]]
    before = deployment.contents()
    assert deployment.run(hours=("2026-01-05T11", "2026-01-05T11"), select=["silver.visits"]).problems == []
    assert deployment.contents() == before
    assert deployment.problems() == []


@pytest.mark.campaign
def test_late_lines_rerun_only_hours_whose_visits_change(deploy: Deploy) -> None:
    def ids() -> dict[str, str]:
        return dict(deployment.rows("silver.visits", "page", "visit_id"))

    def ran(begun: dict[str, int]) -> set[str]:
        entries = deployment.published("silver.visits").values()
        return {entry.partition for entry in entries if entry.version > begun["silver.visits"]}

    deployment = deploy("joined")
    for hour, lines in {
        "2026-01-05T09": [view("09:10", "/early", n=2)],
        "2026-01-05T10": [view("10:20", "/a")],
        "2026-01-05T11": [view("11:05", "/b"), view("11:30", "/c")],
        "2026-01-05T12": [view("12:00", "/d"), view("12:40", "/e", n=2)],
    }.items():
        deployment.land(hour, lines, name="access.log")
    assert deployment.run().problems == []
    before, versions = ids(), deployment.versions()
    assert before["/a"] != before["/b"] == before["/d"]
    late = deployment.land("2026-01-05T10", [view("10:45", "/late")], name="other.log")
    assert deployment.run().problems == []
    assert {ids()[page] for page in ("/a", "/late", "/b", "/c", "/d")} == {before["/a"]}
    assert {page: ids()[page] for page in ("/early", "/e")} == {page: before[page] for page in ("/early", "/e")}
    assert ran(versions) == {"2026-01-05T10", "2026-01-05T11", "2026-01-05T12"}
    assert oracle.count(deployment.landing).log_visits == len(set(ids().values())) == 3
    versions = deployment.versions()
    late.unlink()
    assert deployment.run(accept="size").problems == []
    assert ids() == before
    assert ran(versions) == {"2026-01-05T10", "2026-01-05T11", "2026-01-05T12"}
    versions = deployment.versions()
    deployment.land("2026-01-05T13", [view("12:59", "/f", n=2), view("13:20", "/g", n=2)], name="access.log")
    assert deployment.run().problems == []
    assert ran(versions) == {"2026-01-05T12", "2026-01-05T13"}
    assert ids()["/g"] == before["/e"]
    assert deployment.problems() == []


@pytest.mark.campaign
def test_hours_published_after_an_unseen_late_line_rerun(deploy: Deploy, tmp_path: Path) -> None:
    deployment = deploy("overtaken")
    deployment.land("2026-01-05T10", [view("10:20", "/a")], name="access.log")
    deployment.land("2026-01-05T11", [view("11:05", "/b")], name="access.log")
    assert deployment.run().problems == []
    hold = Hold(tmp_path / "hold", "silver.visits", "written").prepare()
    slow = worker.start(deployment, tmp_path / "hold", "silver.visits", "written", "2026-01-05T11")
    try:
        hold.reached("written", lambda: slow.working)
        deployment.land("2026-01-05T10", [view("10:45", "/late")], name="other.log")
        late = ("bronze.visits", "silver.visits")
        assert deployment.run(hours=("2026-01-05T10", "2026-01-05T10"), select=late).problems == []
    finally:
        hold.release()
    assert slow.problems() == []
    assert len(set(deployment.rows("silver.visits", "visit_id"))) == 2
    assert deployment.run().problems == []
    assert len(set(deployment.rows("silver.visits", "visit_id"))) == 1
    assert deployment.run().runs == 0
