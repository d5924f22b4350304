"""Checkpointer: a tick is requested when files have landed that no batch of the checkpoint has; without Spark."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import dagster as dg
import pytest

from assets.checks import deployment_of
from assets.streams.live_visits import STREAM
from blogdata.evidence.claims import Claims
from blogdata.orchestration import turns
from blogdata.orchestration.lake_resource import LakeResource
from blogdata.patterns.error_management.checkpointer import Checkpoint, open_checkpoint
from blogdata.patterns.observability.lag_detector import BEHIND
from blogdata.patterns.observability.reading import UNKNOWN, Reading
from blogdata.planning import detectors
from quality.contracts import EVERY
from sensors.stream_ticks import visits_landed
from spark_checkpoints import take


@pytest.fixture
def lake(tmp_path: Path) -> LakeResource:
    """A deployment in which nothing has landed."""
    return LakeResource(root=str(tmp_path / "lake"), landing=str(tmp_path / "landing"))


Asked = Callable[[], list[dg.RunRequest]]


@pytest.fixture
def asked(lake: LakeResource, instance: dg.DagsterInstance) -> Asked:
    """Return the runs that a tick of the sensor requests."""

    def evaluate() -> list[dg.RunRequest]:
        found = visits_landed(dg.build_sensor_context(instance=instance, resources={"lake": lake}))
        assert isinstance(found, dg.SensorResult)
        return list(found.run_requests or [])

    return evaluate


def keys(asked: Asked) -> list[str | None]:
    return [request.run_key for request in asked()]


def ran(instance: dg.DagsterInstance, request: dg.RunRequest, status: dg.DagsterRunStatus) -> None:
    """Register a requested run in Dagster's storage."""
    instance.add_run(dg.DagsterRun(job_name="live", tags=dict(request.tags), status=status))


def land(lake: LakeResource, name: str) -> Path:
    folder = lake.landing_path / "visits" / "date=2026-01-05" / "hour=10"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).touch()
    return folder / name


def checkpoint_of(lake: LakeResource) -> Checkpoint:
    return open_checkpoint(lake.checkpoints_path, STREAM.spec(lake.landing_path))


def test_new_event_files_are_requested_under_one_key(lake: LakeResource, asked: Asked) -> None:
    assert asked() == []
    for name in ("_SUCCESS", ".hidden.json", "access.log"):
        land(lake, name)
    assert asked() == []
    land(lake, "a.json")
    first = keys(asked)
    assert len(first) == 1
    assert keys(asked) == first, "the same key is the same run"
    land(lake, "b.json.gz")
    assert len({*first, *keys(asked)}) == 2


def test_files_of_committed_batches_are_not_requested(lake: LakeResource, asked: Asked) -> None:
    take(checkpoint_of(lake), land(lake, "a.json"), land(lake, "b.json"), planned=2, committed=2)
    assert asked() == []
    land(lake, "c.json")
    assert len(asked()) == 1


@pytest.mark.parametrize("planned", [1, 2], ids=["its source has noted it", "it is planned"])
def test_an_interrupted_batch_is_requested_without_new_files(lake: LakeResource, asked: Asked, planned: int) -> None:
    take(checkpoint_of(lake), land(lake, "a.json"), land(lake, "b.json"), planned=planned, committed=1)
    (request,) = asked()
    assert request.run_key is not None
    assert request.run_key.startswith("1 files")


def test_a_batch_is_requested_when_its_file_returns(
    lake: LakeResource, asked: Asked, instance: dg.DagsterInstance
) -> None:
    file = land(lake, "a.json")
    take(checkpoint_of(lake), file, planned=1)
    file.unlink()
    (request,) = asked()
    ran(instance, request, dg.DagsterRunStatus.FAILURE)
    assert asked() == []
    land(lake, "b.json")
    assert asked() == [], "later files have to wait for it"
    land(lake, "a.json")
    assert len({request.run_key, *keys(asked)}) == 2


def test_live_sensor_rests_while_the_stream_runs(lake: LakeResource, asked: Asked) -> None:
    land(lake, "a.json")
    claims = Claims(lake.lake, f"stream {STREAM.name}", alive=turns.alive)
    owner = turns.this_run()
    assert claims.take([STREAM.name], owner) == [STREAM.name]
    assert asked() == []
    claims.release([STREAM.name], owner)
    assert len(asked()) == 1


def test_a_stream_that_is_not_run_lags(lake: LakeResource) -> None:
    """Lag Detector: files that no committed batch has read, since the landing of the oldest."""
    now = datetime.now(timezone.utc)
    contract = EVERY["bronze.visits_live"]
    first, second, third = (land(lake, f"{name}.json") for name in "abc")

    def lag(moment: datetime) -> Reading:
        return detectors.lag(deployment_of(lake, moment), contract)

    # Without a checkpoint the stream is not in use.
    assert lag(now + timedelta(hours=1)).verdict == UNKNOWN
    checkpoint = checkpoint_of(lake)
    take(checkpoint, first, second, planned=2, committed=1)
    assert not lag(now + timedelta(minutes=4)).stands
    reading = lag(now + timedelta(minutes=6))
    assert (reading.verdict, reading.figures["behind"]) == (BEHIND, 2)
    assert "2 files of visits are not read (date=2026-01-05/hour=10)" in reading.what
    take(checkpoint, first, second, third, planned=3, committed=3)
    assert lag(now + timedelta(hours=1)).value == 0
