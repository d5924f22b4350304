"""External Trigger: an event waits until its run exists, and starts exactly one run; without Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from blogdata.orchestration import external_events as composed
from blogdata.orchestration.computation import run_context
from blogdata.orchestration.deployment_resource import DeploymentResource
from blogdata.orchestration.refresh_request import JOB
from blogdata.patterns.data_flow.concurrent_runner import AGAIN
from blogdata.patterns.ingestion.event_inbox import Inbox, InboxEntry
from blogdata.patterns.ingestion.external_trigger import MOST_TRIES, Notification
from blogdata.services.config import Settings
from events_from_outside import TOKEN, deployed, event
from quality.contracts import CONTRACTS
from sensors import external_events as module
from sensors.external_events import RUN_KEY, start_runs
from sensors.request_throttle import MOST_AT_ONCE

Ticked = Callable[[], dg.SensorResult]


@pytest.fixture
def settings_of_senders(tmp_path: Path) -> Settings:
    """A deployment with senders."""
    return deployed(tmp_path / "home")


@pytest.fixture
def inbox(settings_of_senders: Settings) -> Inbox:
    """The inbox of the deployment."""
    return composed.inbox(settings_of_senders)


@pytest.fixture
def ticked(settings_of_senders: Settings, instance: dg.DagsterInstance) -> Ticked:
    """Run one tick of the sensor."""

    def evaluate() -> dg.SensorResult:
        resources = {"deployment": DeploymentResource(home=str(settings_of_senders.home))}
        found = start_runs(dg.build_sensor_context(instance=instance, resources=resources))
        assert isinstance(found, dg.SensorResult)
        return found

    return evaluate


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets the clock of the sensor forward."""
    now = [module._now()]
    monkeypatch.setattr(module, "_now", lambda: now[0])

    def forward(seconds: float) -> None:
        now[0] += seconds

    return forward


def send(settings: Settings, **changes: Any) -> InboxEntry:
    raw = json.dumps(event(**changes)).encode()
    now = datetime.now(timezone.utc)
    notification = Notification(body=raw, size=len(raw), channel="http", origin="192.0.2.1", at=now, token=TOKEN)
    return composed.trigger(settings, CONTRACTS).take(notification)[0]


def run(instance: dg.DagsterInstance, request: dg.RunRequest, status: dg.DagsterRunStatus) -> str:
    """Register a requested run in Dagster's storage."""
    return instance.add_run(dg.DagsterRun(job_name=JOB, tags=dict(request.tags), status=status)).run_id


def states(inbox: Inbox) -> list[tuple[str, str | None]]:
    return [(entry.state, entry.run_id) for entry in inbox.newest(100)]


def test_without_senders_or_events_nothing_is_requested(
    ticked: Ticked, settings_of_senders: Settings, inbox: Inbox
) -> None:
    assert not ticked().run_requests
    (settings_of_senders.home / "blogdata.toml").unlink()
    assert not ticked().run_requests
    assert not inbox.path.exists()


def test_an_event_starts_one_run_with_its_context(
    ticked: Ticked, settings_of_senders: Settings, instance: dg.DagsterInstance, inbox: Inbox, defs: dg.Definitions
) -> None:
    entry = send(settings_of_senders, payload="s3://shop/42", span="2026-01-05T03..2026-01-06")
    (request,) = ticked().run_requests or ()
    assert (request.run_key, request.job_name) == ("shop/release-42", JOB)
    assert request.tags["blogdata/event_id"] == "release-42"
    assert request.tags["blogdata/event_source"] == "shop"
    assert request.tags["blogdata/event_time"] == entry.event.time.isoformat()
    assert request.tags["blogdata/event_payload"] == "s3://shop/42"
    assert request.run_config["resources"]["request"]["config"] == {
        "datasets": ["bronze.devices"],
        "span": "2026-01-05T03:00:00+00:00..2026-01-06T00:00:00+00:00",
        "only_again": True,
        "scope": "all",
        "again": {},
        "since": {},
        "retry_waiting": True,
        "lane": "all",
        "few_again": 0,
    }
    assert request.tags.items() >= AGAIN.items(), "it ranks behind landed data"
    assert dg.validate_run_config(defs.resolve_job_def(JOB), request.run_config)
    run_id = run(instance, request, dg.DagsterRunStatus.STARTED)
    send(settings_of_senders, time=entry.event.time.isoformat(), payload="s3://shop/42", span=entry.event.span)
    assert not ticked().run_requests
    assert states(inbox) == [("started", run_id)]


def test_an_event_without_a_span_requests_what_is_stale(ticked: Ticked, settings_of_senders: Settings) -> None:
    send(settings_of_senders)
    (request,) = ticked().run_requests or ()
    config = request.run_config["resources"]["request"]["config"]
    assert (config["datasets"], config["span"], config["only_again"]) == (["bronze.devices"], "", False)


def test_a_notification_file_starts_a_run(ticked: Ticked, settings_of_senders: Settings) -> None:
    folder = settings_of_senders.landing / "_events"
    folder.mkdir(parents=True)
    (folder / "a.json").write_text(json.dumps(event(source="partner", datasets=["bronze.users"])), encoding="utf-8")
    (folder / "b.json").write_text(json.dumps(event(source="partner")), encoding="utf-8")
    (request,) = ticked().run_requests or ()
    assert request.run_key == "partner/release-42"
    assert request.tags["blogdata/event_channel"] == "file"


def test_a_stray_folder_blocks_no_call(ticked: Ticked, settings_of_senders: Settings, tmp_path: Path) -> None:
    settings_of_senders.landing.mkdir()
    (tmp_path / "elsewhere").mkdir()
    (settings_of_senders.landing / "_events").symlink_to(tmp_path / "elsewhere")
    send(settings_of_senders)
    assert len(ticked().run_requests or ()) == 1


def test_a_run_that_never_appears_is_requested_again(
    ticked: Ticked, settings_of_senders: Settings, inbox: Inbox, later: Callable[[float], None]
) -> None:
    send(settings_of_senders)
    waited, keys = list[int](), set[str | None]()
    while (found := ticked()).run_requests or states(inbox) == [("waiting", None)]:
        if found.run_requests:
            keys.add(found.run_requests[0].run_key)
            waited.append(0)
        later(30)
        waited[-1] += 30
    assert waited[: MOST_TRIES - 1] == [30, 60, 120, 240, 480, 960, 1920]
    assert keys == {"shop/release-42"}, "Dagster starts one run for them all"
    assert states(inbox) == [("failed", None)]
    assert inbox.newest(1)[0].reason == "after 8 requests there is no run"


def test_a_failed_event_starts_when_retried(
    ticked: Ticked, settings_of_senders: Settings, instance: dg.DagsterInstance, inbox: Inbox
) -> None:
    inbox.failed(send(settings_of_senders), "no daemon")
    assert not ticked().run_requests
    assert inbox.retry("release-42") is not None
    (request,) = ticked().run_requests or ()
    run_id = run(instance, request, dg.DagsterRunStatus.STARTED)
    ticked()
    assert states(inbox) == [("started", run_id)]


def test_a_run_that_failed_unbegun_is_followed_by_another(
    ticked: Ticked,
    settings_of_senders: Settings,
    instance: dg.DagsterInstance,
    inbox: Inbox,
    later: Callable[[float], None],
) -> None:
    send(settings_of_senders)
    (first,) = ticked().run_requests or ()
    run(instance, first, dg.DagsterRunStatus.FAILURE)
    assert not ticked().run_requests, "not before the pause is over"
    later(30)
    (second,) = ticked().run_requests or ()
    assert (first.run_key, second.run_key) == ("shop/release-42", "shop/release-42, 2")
    run_id = run(instance, second, dg.DagsterRunStatus.SUCCESS)
    ticked()
    assert states(inbox) == [("started", run_id)]


def test_a_run_that_a_person_canceled_counts(
    ticked: Ticked, settings_of_senders: Settings, instance: dg.DagsterInstance, inbox: Inbox
) -> None:
    send(settings_of_senders)
    (request,) = ticked().run_requests or ()
    run_id = run(instance, request, dg.DagsterRunStatus.CANCELED)
    ticked()
    assert states(inbox) == [("started", run_id)]


def test_an_event_of_a_removed_dataset_is_kept(
    ticked: Ticked, settings_of_senders: Settings, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(settings_of_senders)
    left = {name: contract for name, contract in CONTRACTS.items() if name != "bronze.devices"}
    monkeypatch.setattr(module, "CONTRACTS", left)
    assert not ticked().run_requests
    assert [(entry.state, entry.reason) for entry in inbox.newest(1)] == [
        ("failed", "no dataset is called bronze.devices")
    ]


def test_a_flood_of_events_is_started_in_turn(
    ticked: Ticked, settings_of_senders: Settings, instance: dg.DagsterInstance, inbox: Inbox
) -> None:
    for number in range(MOST_AT_ONCE + 3):
        send(settings_of_senders, id=str(number))
    first = ticked().run_requests or ()
    assert [request.run_key for request in first] == [f"shop/{number}" for number in range(MOST_AT_ONCE)]
    for request in first:
        run(instance, request, dg.DagsterRunStatus.STARTED)
    assert len(ticked().run_requests or ()) == 3
    assert len(inbox.waiting()) == 3


def test_commits_name_the_event_of_their_run() -> None:
    found = []

    @dg.op
    def publish(context) -> None:  # type: ignore[no-untyped-def]
        found.append(run_context(context, "version"))

    @dg.job
    def job() -> None:
        publish()

    tags = {"blogdata/event_id": "release-42", "blogdata/event_source": "shop", "blogdata/event_payload": "s3://x"}
    job.execute_in_process(tags={**tags, "dagster/sensor_name": "external_events", RUN_KEY: "shop/release-42"})
    (context,) = found
    assert context.trigger == "event:shop/release-42"
    assert context.event == {"id": "release-42", "source": "shop", "payload": "s3://x"}
