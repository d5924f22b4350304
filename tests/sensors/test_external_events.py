"""External Trigger: an event waits until its run exists, and starts exactly one run; without Spark."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from blogdata.landing import external_trigger
from blogdata.landing.external_trigger import FOLDER, REFUSED, TriggerEvent
from blogdata.patterns.data_flow.concurrent_runner import AGAIN
from blogdata.runs.computation import run_context
from blogdata.runs.lake_resource import DeploymentResource
from blogdata.runs.refresh_request import JOB
from sensors import external_events as module
from sensors.external_events import NAME, start_runs

Ticked = Callable[[], list[dg.RunRequest]]
TIME = "2026-01-05T10:00:00Z"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "home" / "landing" / FOLDER
    made.mkdir(parents=True)
    return made


@pytest.fixture
def ticked(folder: Path, instance: dg.DagsterInstance) -> Ticked:
    """Run one tick of the sensor."""

    def evaluate() -> list[dg.RunRequest]:
        resources = {"deployment": DeploymentResource(home=str(folder.parents[1]))}
        found = start_runs(dg.build_sensor_context(instance=instance, resources=resources))
        assert isinstance(found, dg.SensorResult)
        return list(found.run_requests or ())

    return evaluate


def send(folder: Path, name: str = "a.json", **changes: Any) -> Path:
    fields = {"id": "release-42", "source": "shop", "time": TIME, "datasets": ["bronze.devices"], **changes}
    file = folder / name
    file.write_text(json.dumps(fields), encoding="utf-8")
    return file


def run(
    instance: dg.DagsterInstance, request: dg.RunRequest, status: dg.DagsterRunStatus = dg.DagsterRunStatus.STARTED
) -> None:
    """Register a requested run in Dagster's storage, as the daemon does."""
    tags = {**request.tags, "dagster/run_key": str(request.run_key), "dagster/sensor_name": NAME}
    instance.add_run(dg.DagsterRun(job_name=JOB, tags=tags, status=status))


def left(folder: Path) -> list[str]:
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


def test_an_event_starts_one_run_with_its_context(
    ticked: Ticked, folder: Path, instance: dg.DagsterInstance, defs: dg.Definitions
) -> None:
    assert ticked() == []
    send(folder, payload="s3://shop/42")
    (request,) = ticked()
    assert (request.run_key, request.job_name) == ("shop/release-42", JOB)
    assert {name: value for name, value in request.tags.items() if name.startswith("blogdata/event_")} == {
        "blogdata/event_id": "release-42",
        "blogdata/event_source": "shop",
        "blogdata/event_time": "2026-01-05T10:00:00+00:00",
        "blogdata/event_payload": "s3://shop/42",
    }
    config = request.run_config["resources"]["request"]["config"]
    assert (config["datasets"], config["span"], config["only_again"]) == (["bronze.devices"], "", False)
    assert request.tags.items() >= AGAIN.items(), "it ranks behind landed data"
    assert dg.validate_run_config(defs.resolve_job_def(JOB), request.run_config)
    run(instance, request)
    assert (ticked(), left(folder)) == ([], [])
    send(folder, "repeated.json", payload="s3://shop/42")
    assert (ticked(), left(folder)) == ([], []), "it has had its run"


def test_an_event_waits_until_its_run_was_launched(ticked: Ticked, folder: Path, instance: dg.DagsterInstance) -> None:
    send(folder)
    (request,) = ticked()
    assert [again.run_key for again in ticked()] == [request.run_key], "the daemon died before there was a run"
    run(instance, request, dg.DagsterRunStatus.NOT_STARTED)
    assert [again.run_key for again in ticked()] == [request.run_key], "the daemon died before it launched the run"
    assert left(folder) == ["a.json"]


def test_what_starts_no_run_is_moved_aside_with_its_reason(ticked: Ticked, folder: Path) -> None:
    send(folder, "command.json", id="1", command="rm -rf /")
    send(folder, "misnamed.json", id="2", datasets=["bronze.device"])
    assert ticked() == []
    reasons = {"command": "command: Extra inputs are not permitted", "misnamed": "did you mean bronze.devices?"}
    kept = [f"{REFUSED}/{name}.json{ending}" for name in reasons for ending in ("", ".reason")]
    assert left(folder) == sorted(kept)
    for name, reason in reasons.items():
        assert reason in (folder / REFUSED / f"{name}.json.reason").read_text(encoding="utf-8")


def test_a_file_that_cannot_be_read_keeps_no_other_event_waiting(
    ticked: Ticked, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(file: Path, datasets: Collection[str]) -> TriggerEvent:
        if file.name == "broken.json":
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(file))
        return external_trigger.read(file, datasets)

    send(folder, "broken.json", id="1")
    send(folder, "whole.json", id="2")
    monkeypatch.setattr(module, "read", read)
    assert [request.run_key for request in ticked()] == ["shop/2"]
    assert left(folder) == ["broken.json", "whole.json"]
    monkeypatch.undo()
    assert {request.run_key for request in ticked()} == {"shop/1", "shop/2"}, "tried again at each tick"


def test_commits_name_the_event_of_their_run() -> None:
    found = []

    @dg.op
    def publish(context) -> None:  # type: ignore[no-untyped-def]
        found.append(run_context(context, "version"))

    @dg.job
    def job() -> None:
        publish()

    tags = {"blogdata/event_id": "release-42", "blogdata/event_source": "shop", "blogdata/event_payload": "s3://x"}
    job.execute_in_process(tags={**tags, "dagster/sensor_name": NAME})
    (context,) = found
    assert context.trigger == "event:shop/release-42"
    assert context.event == {"id": "release-42", "source": "shop", "payload": "s3://x"}
