"""`blogdata events`: what a person at a terminal sees of the External Trigger, and a retry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from blogdata.cli.main import app
from blogdata.errors import ConfigurationError
from blogdata.orchestration import external_events
from blogdata.patterns.ingestion.trigger_event import Forged
from blogdata.services.config import Settings
from blogdata.services.event_receiver import Post
from events_from_outside import TOKEN, deployed, event
from quality.contracts import CONTRACTS


@pytest.fixture
def settings_of_senders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A deployment with senders, used by the commands under test."""
    settings = deployed(tmp_path / "home")
    monkeypatch.setenv("BLOGDATA_HOME", str(settings.home))
    return settings


def send(settings: Settings, *, token: str | None = TOKEN, **changes: Any) -> int:
    body = json.dumps(event(**changes)).encode()
    entrance = external_events.trigger(settings, CONTRACTS)
    post = Post(read=lambda: body, size=len(body), token=token, origin="192.0.2.1")
    return external_events.answer(entrance)(post).status


def typed(*arguments: str) -> Any:
    return CliRunner().invoke(app, arguments)


def test_an_empty_inbox_says_what_to_configure(settings_of_senders: Settings) -> None:
    assert typed("events").stdout == "no event has arrived\n"
    (settings_of_senders.home / "blogdata.toml").unlink()
    assert typed("events").stdout.startswith("no sender is configured: write [[events.senders]]")


def test_events_and_refusals_are_listed(settings_of_senders: Settings) -> None:
    assert send(settings_of_senders, payload="[bold]s3://shop[/bold]") == 202
    assert send(settings_of_senders, id="old", time="2026-01-01T00:00:00Z") == 400
    assert send(settings_of_senders, id="forged", token=None) == 401
    inbox = external_events.inbox(settings_of_senders)
    inbox.started(inbox.waiting()[0], "run-1")
    shown = typed("events").stdout
    assert "started  shop/release-42  bronze.devices  run-1" in shown
    assert "forged: the event has no token (from 192.0.2.1)" in shown
    assert shown.splitlines()[-1] == "have one start a run:  blogdata events --retry refused-1"
    found = json.loads(typed("events", "--json").stdout)
    (kept,) = found["events"]
    assert (kept["name"], kept["state"], kept["payload"]) == ("shop/release-42", "started", "[bold]s3://shop[/bold]")
    assert [(one["name"], one["kind"], one["can_be_retried"]) for one in found["refused"]] == [
        ("refused-1", "wrong time", True),
        ("refused-2", "forged", False),
    ]


def test_a_person_retries_by_name(settings_of_senders: Settings) -> None:
    send(settings_of_senders)
    send(settings_of_senders, id="old", time="2026-01-01T00:00:00Z")
    send(settings_of_senders, id="forged", token=None)
    inbox = external_events.inbox(settings_of_senders)
    inbox.failed(inbox.waiting()[0], "there is no run")
    assert "no run, or" not in typed("events").stdout
    assert "there is no run" in typed("events").stdout
    assert typed("events", "--retry", "release-42").stdout.startswith("shop/release-42 waits")
    assert json.loads(typed("events", "--retry", "refused-1", "--json").stdout)["name"] == "shop/old"
    assert [entry.event.id for entry in inbox.waiting()] == ["release-42", "old"]
    assert isinstance(typed("events", "--retry", "refused-2").exception, Forged)
    assert isinstance(typed("events", "--retry", "nothing").exception, ConfigurationError)


def test_a_sender_of_undeclared_datasets_is_refused(settings_of_senders: Settings) -> None:
    file = settings_of_senders.home / "blogdata.toml"
    file.write_text(file.read_text(encoding="utf-8").replace("bronze.users", "bronze.nobody"), encoding="utf-8")
    error = typed("events", "--serve").exception
    assert isinstance(error, ConfigurationError)
    assert "bronze.nobody, which is not declared" in error.what
