"""Fixtures for tests of alerts: the record, a web server, and one round of sending at a chosen time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from alert_servers import Posted, web_server
from blogdata.alerts import sending
from blogdata.alerts.alert import Alert
from blogdata.alerts.record import AlertRecord
from blogdata.alerts.sending import Policy, Round, Route
from blogdata.errors.severity import Severity

Make = Callable[..., Alert]
Tick = Callable[..., Round]


@pytest.fixture
def record(tmp_path: Path) -> AlertRecord:
    """The empty alert record of a new deployment."""
    return AlertRecord(path=tmp_path / "alerts.sqlite")


@pytest.fixture
def hook() -> Iterator[Posted]:
    """A web server that receives messages."""
    with web_server() as posted:
        yield posted


@pytest.fixture
def alert() -> Make:
    """Build an alert with default values for all fields that are not named."""

    def make(identity: str = "waiting/silver.visits/2026-01-05T03", **given: Any) -> Alert:
        usual = {
            "severity": Severity.CRITICAL,
            "owner": "team:analytics",
            "title": identity,
            "text": "an hour waits",
            "next_step": "look at it",
        }
        return Alert(identity=identity, **{**usual, **given})

    return make


@pytest.fixture
def tick(record: AlertRecord) -> Tick:
    """Run one round of sending, the given number of seconds after the first."""

    def send(alerts: Sequence[Alert], routes: Sequence[Route], at: float = 0.0, **policy: Any) -> Round:
        now = 1_767_600_000.0 + at
        return sending.send(alerts, routes=routes, policy=Policy(**policy), record=record, now=now)

    return send
