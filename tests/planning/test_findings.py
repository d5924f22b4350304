"""What stands is found by sources that do not silence each other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from evidence.finding import Finding, Severity
from lake.store_faults import LogDamaged
from planning import findings
from planning.deployment import Deployment
from planning.look import Snapshot, now
from published import deployment, land
from quality.contracts import GRAPH


def test_a_source_that_fails_silences_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = deployment(tmp_path)
    land(home, "visits", "2026-01-05T10", {"visits.json": "{}\n"}, flag=False)

    def damaged(deployment: Deployment) -> Iterator[Finding]:
        raise LogDamaged(what="a file of the log is cut off", where="silver.visits", next_step="repair it")
        yield

    monkeypatch.setattr(findings, "SOURCES", (damaged, findings.overdue))
    look = Snapshot(home.landing_zone, home.events)
    found = findings.standing(Deployment(graph=GRAPH, look=look, now=now()))
    assert [one.source for one in found] == ["findings", "overdue"]
    assert found[0].severity is Severity.CRITICAL
    assert "damaged could not be looked at: a file of the log is cut off" in found[0].what
