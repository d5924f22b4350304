"""Findings are collected from independent sources; a failing source hides no other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from blogdata.errors import PlatformError
from blogdata.evidence.finding import Finding, Severity
from blogdata.lake.store_faults import LogDamaged
from blogdata.orchestration.alerting import alert_of
from blogdata.patterns.ingestion.event_inbox import Inbox, InboxEntry
from blogdata.patterns.ingestion.trigger_event import parse
from blogdata.planning import faults, findings
from blogdata.planning.clock import now
from blogdata.planning.graph import Graph
from blogdata.planning.observed import Observed
from blogdata.planning.plan import Planner
from blogdata.planning.snapshot import Snapshot
from blogdata.publish.audit import HELD
from blogdata.publish.schema import Failed
from published import deployment, land, publish
from quality.contracts import GRAPH


def test_a_source_that_fails_silences_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = deployment(tmp_path)
    land(home, "visits", "2026-01-05T10", {"visits.json": "{}\n"}, flag=False)

    def damaged(deployment: Observed) -> Iterator[Finding]:
        raise LogDamaged(what="a file of the log is cut off", where="silver.visits", next_step="repair it")
        yield

    monkeypatch.setattr(findings, "SOURCES", (damaged, findings.overdue))
    look = Snapshot(home.landing_zone, home.events)
    found = findings.standing(Observed(graph=GRAPH, look=look, now=now()))
    assert [one.source for one in found] == ["findings", "overdue"]
    assert found[0].severity is Severity.CRITICAL
    assert "damaged could not be looked at: a file of the log is cut off" in found[0].what


def test_hours_that_wait_for_one_reason_are_one_finding(tmp_path: Path) -> None:
    lake = deployment(tmp_path)
    hours = [f"2026-01-05T{hour:02d}" for hour in range(3)]
    for hour in hours:
        land(lake, "visits", hour, {"a.json": "{}\n"})
    stale = Planner(graph=GRAPH, look=Snapshot(lake.landing_path, lake.events)).stale(GRAPH.task_of("bronze.visits"))
    gone, torn = (PlatformError(what=what, where="here", next_step="mend it") for what in ("gone", "torn"))
    faults.record(lake.events, "bronze.visits", {**dict.fromkeys(hours, gone), hours[1]: torn}, stale)
    seen = Observed(graph=GRAPH, look=Snapshot(lake.landing_path, lake.events), now=now())
    assert [(one.partition, one.what, one.figures["partitions"]) for one in findings.waiting(seen)] == [
        (hours[0], f"it and 1 more, up to {hours[2]}, wait for a person: gone, in here", 2),
        (hours[1], "waits for a person: torn, in here", 1),
    ]


def test_two_audits_of_a_dataset_are_two_findings(tmp_path: Path) -> None:
    """Alerts are known by the identity and named by the title: with one of both, the second would be the first."""
    lake, hour = deployment(tmp_path), "2026-01-05T10"
    (audit,) = [one for one in GRAPH.contracts["silver.visits"].audits if one.failed is Failed.WARNS]
    contract = replace(GRAPH.contracts["silver.visits"], audits=(audit, replace(audit, name="another")))
    failed = {f"{HELD}{audit.name}": 0, f"{HELD}another": 0}
    publish(lake.lake, contract.dataset, "event_hour", {hour: 1}, measures={hour: failed})
    graph = Graph(contracts={**GRAPH.contracts, contract.dataset: contract})
    seen = Observed(graph=graph, look=Snapshot(lake.landing_zone, lake.events), now=now())
    found = [alert_of(one) for one in findings.published_with_warning(seen)]
    assert [one.identity for one in found] == ["audits/silver.visits/few_conflicts", "audits/silver.visits/another"]
    assert [one.title for one in found] == ["silver.visits few_conflicts: audits", "silver.visits another: audits"]


def test_an_event_without_a_run_is_found(tmp_path: Path) -> None:
    home, inbox = deployment(tmp_path), Inbox(path=tmp_path / "events.sqlite")
    for number, hours in enumerate((0, 2, 2)):
        fields = {"id": str(number), "source": "shop", "time": "2026-01-05T10:00:00Z", "datasets": ["bronze.devices"]}
        received = (now() - timedelta(hours=hours)).timestamp()
        event = parse(json.dumps(fields).encode())
        entry = InboxEntry(event=event, channel="http", origin="192.0.2.1", version="1.0", received=received)
        inbox.put(entry)
        if number == 2:
            inbox.failed(entry, "after 8 requests there is no run")
    look = Snapshot(home.landing_zone, home.events)
    found = list(findings.unstarted(Observed(graph=GRAPH, look=look, now=now(), inbox=inbox)))
    assert [(one.identity, one.severity) for one in found] == [
        ("events/bronze.devices/shop/1", Severity.WARNING),
        ("events/bronze.devices/shop/2", Severity.CRITICAL),
    ]
    assert found[1].what.endswith("after 8 requests there is no run")
