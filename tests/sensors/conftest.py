"""A deployment without Spark, and the result of one sensor tick."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

import definitions
from blogdata.operate.config import Settings
from blogdata.runs.lake_resource import DeploymentResource, LakeResource
from published import deployment

Tick = Callable[..., Any]
Launched = Callable[..., list[str]]


@pytest.fixture
def lake(tmp_path: Path) -> LakeResource:
    return deployment(tmp_path / "home")


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as ephemeral:
        yield ephemeral


@pytest.fixture(scope="session")
def defs(settings: Settings) -> dg.Definitions:
    """The definitions of the whole platform; no service is started for them."""
    return definitions.build(settings)


@pytest.fixture
def tick(lake: LakeResource, tmp_path: Path, instance: dg.DagsterInstance, defs: dg.Definitions) -> Tick:
    """Evaluate one tick as the daemon does, with the requested partitions resolved against the job's."""

    def evaluate(sensor: dg.SensorDefinition, cursor: str | None = None) -> Any:
        resources = {"lake": lake, "deployment": DeploymentResource(home=str(tmp_path / "home"))}
        context = dg.build_sensor_context(instance=instance, cursor=cursor, definitions=defs, resources=resources)
        return sensor.evaluate_tick(context)

    return evaluate


@pytest.fixture
def launched(instance: dg.DagsterInstance) -> Launched:
    """Register the requested runs of a tick in Dagster's storage; return their keys."""

    def launch(asked: Any, status: dg.DagsterRunStatus = dg.DagsterRunStatus.STARTED) -> list[str]:
        requests = asked.run_requests or ()
        for request in requests:
            instance.add_run(dg.DagsterRun(job_name="asked for", tags=dict(request.tags), status=status))
        return [request.run_key for request in requests]

    return launch
