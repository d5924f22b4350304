"""A landed hour does not wait behind recomputation: long event spans, replays, late rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin

import definitions
from blogdata.operate.config import Settings
from blogdata.patterns.data_flow.concurrent_runner import AGAIN, LANE
from blogdata.runs.lake_resource import DeploymentResource, LakeResource
from blogdata.runs.refresh_request import JOB
from published import bronze, deployment, land, silver
from sensors.run_requests import UNDER_WAY

NEXT = "2026-01-07T00"
PAST = [f"2026-01-0{day}T{hour:02d}" for day in (5, 6) for hour in range(24)]


@pytest.fixture
def lake(tmp_path: Path) -> LakeResource:
    return deployment(tmp_path)


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as ephemeral:
        yield ephemeral


@pytest.fixture(scope="module")
def defs() -> dg.Definitions:
    nowhere = Path("/nowhere")
    return definitions.build(Settings(home=nowhere, landing=nowhere, lake=nowhere, jars=nowhere))


class Asked:
    """The requests of one tick, and the runs in progress afterwards."""

    def __init__(self, lake: LakeResource, instance: dg.DagsterInstance, defs: dg.Definitions) -> None:
        self._lake, self._instance, self._defs = lake, instance, defs

    def tick(self) -> dict[str, dict[str, Any]]:
        """Run one tick; return its requests by lane."""
        resources = {"lake": self._lake, "deployment": DeploymentResource(home=str(self._lake.landing_path.parent))}
        context = dg.build_sensor_context(instance=self._instance, definitions=self._defs, resources=resources)
        sensor = self._defs.get_repository_def().get_sensor_def("whatever_is_stale")
        found = sensor.evaluate_tick(context).run_requests or ()
        for request in found:
            self.begin(request.tags, dg.DagsterRunStatus.STARTED)
        return {request.tags[LANE]: request.run_config["resources"]["request"]["config"] for request in found}

    def begin(self, tags: Any, status: dg.DagsterRunStatus) -> None:
        """Start a run of the job and leave it in progress."""
        place = RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("blogdata"), "blogdata")
        origin = RemoteJobOrigin(place, JOB)
        self._instance.add_run(dg.DagsterRun(job_name=JOB, status=status, tags=dict(tags), remote_job_origin=origin))


@pytest.fixture
def asked(lake: LakeResource, instance: dg.DagsterInstance, defs: dg.Definitions) -> Asked:
    return Asked(lake, instance, defs)


@pytest.mark.parametrize("status", UNDER_WAY, ids=lambda status: status.value)
def test_a_landed_hour_is_requested_beside_recomputation(
    lake: LakeResource, asked: Asked, status: dg.DagsterRunStatus
) -> None:
    asked.begin(AGAIN, status)
    land(lake, "visits", NEXT, {"a.json": "{}\n"})
    found = asked.tick()
    assert {lane: (one["scope"], one["again"]) for lane, one in found.items()} == {"landed": ("ready", {})}
    assert asked.tick() == {}, "one run for landed data at a time"


def test_hours_stale_from_a_replay_are_left_to_it(lake: LakeResource, asked: Asked) -> None:
    silver(lake.lake, dict.fromkeys(PAST, 1), read=bronze(lake.lake, {key: {key: 1} for key in PAST}))
    asked.begin(AGAIN, dg.DagsterRunStatus.STARTED)
    bronze(lake.lake, {key: {key: 1} for key in PAST})
    requests = asked.tick()
    assert (requests.get("landed", {}).get("max_republished", 0), "again" in requests) == (0, False)


def test_many_late_hours_are_a_run_of_their_own(lake: LakeResource, asked: Asked) -> None:
    """Late rows, not a request, have made more hours stale than the run of a new hour takes along."""
    read = bronze(lake.lake, {key: {key: 1} for key in PAST})
    silver(lake.lake, dict.fromkeys(PAST, 1), read=read)
    bronze(lake.lake, {NEXT: dict.fromkeys(PAST, 1)})
    found = asked.tick()
    assert (found["landed"]["max_republished"], found["landed"]["lane"]) == (6, "landed")
    assert (found["again"]["lane"], found["again"]["scope"], found["again"]["only_again"]) == ("again", "ready", False)
