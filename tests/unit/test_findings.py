"""Findings are collected from independent sources; a failing source hides no other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from blogdata.contract.publication import EXPIRED
from blogdata.errors import PlatformError
from blogdata.errors.finding import Finding, Severity
from blogdata.ledger import faults
from blogdata.ledger.events import Event
from blogdata.patterns.quality.offline_observer import Profile, event_of
from blogdata.planning.clock import now
from blogdata.planning.snapshot import Observed, Snapshot
from blogdata.table.faults import LogDamaged
from blogdata.watch import findings
from published import deployment, enriched, land, planner, publish
from quality.contracts import GRAPH


def test_a_source_that_fails_silences_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = deployment(tmp_path)
    land(home, "visits", "2026-01-05T10", {"visits.json": "{}\n"}, flag=False)

    def damaged(deployment: Observed) -> Iterator[Finding]:
        raise LogDamaged("silver.visits", "1.json")
        yield

    monkeypatch.setattr(findings, "SOURCES", (damaged, findings.overdue))
    look = Snapshot(home.landing_zone, home.events)
    found = findings.standing(Observed(graph=GRAPH, look=look, now=now()))
    assert [one.source for one in found] == ["findings", "overdue"]
    assert found[0].severity is Severity.CRITICAL
    assert "damaged could not be looked at: a file of the table's log is gone" in found[0].what


def test_hours_that_wait_for_one_reason_are_one_finding(tmp_path: Path) -> None:
    lake = deployment(tmp_path)
    hours = [f"2026-01-05T{hour:02d}" for hour in range(3)]
    for hour in hours:
        land(lake, "visits", hour, {"a.json": "{}\n"})
    stale = planner(lake.lake).stale(GRAPH.task_of("bronze.visits"))
    gone, torn = (PlatformError(what=what, where="here", next_step="mend it") for what in ("gone", "torn"))
    faults.record(lake.events, "bronze.visits", {**dict.fromkeys(hours, gone), hours[1]: torn}, stale)
    seen = Observed(graph=GRAPH, look=Snapshot(lake.landing_path, lake.events), now=now())
    assert [(one.partition, one.what) for one in findings.waiting(seen)] == [
        (hours[0], f"it and 1 more, up to {hours[2]}, wait for a person: gone, in here"),
        (hours[1], "waits for a person: torn, in here"),
    ]


def seen_orphans(day: str, version: int, rows: int) -> Event:
    """Build what an Offline Observer stores of a look at a day."""
    orphans = {"silver.users": rows} if rows else {}
    profile = Profile(period=day, version=version, rows=9, counts={}, orphans=orphans)
    return event_of("silver.visits_enriched", profile, f"run-{version}")


def test_broken_references_stand_while_their_rows_are_there(tmp_path: Path) -> None:
    lake = deployment(tmp_path)
    hours = [f"2026-01-{day:02}T10" for day in (5, 6, 7, 8)]
    version = enriched(lake.lake, hours, read=0)
    lake.events.append([seen_orphans(hour[:10], version, rows) for rows, hour in enumerate(hours, 1)])

    def found() -> list[str]:
        seen = Observed(graph=GRAPH, look=Snapshot(lake.landing_zone, lake.events), now=now())
        return [one.what for one in findings.profiled(seen)]

    days = ", ".join(hour[:10] for hour in hours)
    assert found() == [f"10 rows refer to nothing in silver.users, in {days}"]
    # The first day is computed again without a row, the second one expires, and the third one is mended.
    version = publish(lake.lake, "silver.visits_enriched", "event_hour", {hours[0]: 0})
    assert len(lake.events.publications("silver.visits_enriched")) == 4
    expired = Event(
        kind=EXPIRED,
        dataset="silver.visits_enriched",
        partition=hours[1],
        table_version=version,
        payload={"rows": 1},
    )
    lake.events.append([expired, seen_orphans(hours[2][:10], version, 0)])
    assert found() == ["4 rows refer to nothing in silver.users, in 2026-01-08"]
