"""Checkpointer: a tick is asked for when something has landed that no batch of the checkpoint has; without Spark."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from assets.transforms.live_visits import STREAM
from orchestration import owners
from patterns.core.claims import Claims
from patterns.error_management.checkpointer import Checkpoint, open_checkpoint
from resources.lake import LakeResource
from sensors.live import visits_landed


@pytest.fixture
def lake(tmp_path: Path) -> LakeResource:
    """A deployment in which nothing has landed."""
    return LakeResource(root=str(tmp_path / "lake"), landing=str(tmp_path / "landing"))


def land(lake: LakeResource, name: str) -> Path:
    folder = lake.landing_path / "visits" / "date=2026-01-05" / "hour=10"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).touch()
    return folder / name


def take(checkpoint: Checkpoint, *files: Path) -> None:
    """Have the checkpoint take files into a batch."""
    log = Path(checkpoint.location) / "sources" / "0"
    log.mkdir(parents=True)
    lines = [f'{{"path":"file://{file}","timestamp":0,"batchId":0}}' for file in files]
    (log / "0").write_text("\n".join(["v1", *lines]))
    (Path(checkpoint.location) / "metadata").write_text('{"id":"0a1b2c3d-0000-0000-0000-000000000000"}')


def asked(lake: LakeResource) -> list[str | None]:
    """The keys of the runs a tick of the sensor asks for."""
    found = visits_landed(dg.build_sensor_context(resources={"lake": lake}))
    if isinstance(found, dg.SkipReason):
        return []
    assert isinstance(found, dg.SensorResult)
    return [request.run_key for request in found.run_requests or []]


def test_a_set_of_new_files_is_asked_for_once_and_what_is_no_event_never(lake: LakeResource) -> None:
    assert asked(lake) == []
    for name in ("_SUCCESS", ".hidden.json", "access.log"):
        land(lake, name)
    assert asked(lake) == []
    land(lake, "a.json")
    first = asked(lake)
    assert len(first) == 1
    assert asked(lake) == first, "the same key is the same run"
    land(lake, "b.json.gz")
    assert len({*first, *asked(lake)}) == 2


def test_what_is_in_a_batch_is_not_asked_for_again(lake: LakeResource) -> None:
    files = [land(lake, "a.json"), land(lake, "b.json")]
    take(open_checkpoint(lake.checkpoints_path, STREAM.spec(lake.landing_path)), *files)
    assert asked(lake) == []
    land(lake, "c.json")
    assert len(asked(lake)) == 1


def test_it_rests_while_the_stream_is_being_run(lake: LakeResource) -> None:
    land(lake, "a.json")
    claims = Claims(lake.lake, f"stream {STREAM.name}", alive=owners.alive)
    owner = owners.this_run()
    assert claims.take([STREAM.name], owner) == [STREAM.name]
    assert asked(lake) == []
    claims.release([STREAM.name], owner)
    assert len(asked(lake)) == 1
