"""Lag Detector: files that no committed batch of a stream has read, since the landing of the oldest; without Spark."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path

from assets.streams.live_visits import STREAM
from blogdata.patterns.error_management.checkpointer import Checkpoint, open_checkpoint
from blogdata.runs.lake_resource import LakeResource
from blogdata.watch import detectors
from blogdata.watch.lag_detector import BEHIND
from blogdata.watch.reading import UNKNOWN, Reading
from blogdata.watch.timely_checks import deployment_of
from quality.contracts import EVERY


def land(lake: LakeResource, name: str) -> Path:
    folder = lake.landing_path / "visits" / "date=2026-01-05" / "hour=10"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).touch()
    return folder / name


def take(checkpoint: Checkpoint, *files: Path, planned: int, committed: int) -> None:
    """Add a batch for each file to the checkpoint, as Spark does; plan and commit the first ones."""
    root = Path(checkpoint.location)
    for folder in ("sources/0", "offsets", "commits"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for number, file in enumerate(files):
        entry = json.dumps({"path": f"file://{file}", "timestamp": 0, "batchId": number})
        (root / "sources" / "0" / str(number)).write_text(f"v1\n{entry}")
    for number in range(planned):
        (root / "offsets" / str(number)).write_text(f'v1\n{{"batchTimestampMs":0}}\n{{"logOffset":{number}}}')
    for number in range(committed):
        (root / "commits" / str(number)).write_text("v1\n{}")
    (root / "metadata").write_text('{"id":"0a1b2c3d-0000-0000-0000-000000000000"}')


def test_a_stream_that_is_not_run_lags(lake: LakeResource) -> None:
    now = datetime.now(timezone.utc)
    contract = EVERY["bronze.visits_live"]
    first, second, third = (land(lake, f"{name}.json") for name in "abc")
    for name in ("_SUCCESS", ".hidden.json", "access.log"):
        land(lake, name)

    def lag(moment: datetime) -> Reading:
        return detectors.lag(deployment_of(lake, moment), contract)

    # Without a checkpoint the stream is not in use.
    assert lag(now + timedelta(hours=1)).verdict == UNKNOWN
    checkpoint = open_checkpoint(lake.checkpoints_path, STREAM.spec(lake.landing_path))
    take(checkpoint, first, second, planned=2, committed=1)
    assert not lag(now + timedelta(minutes=4)).stands
    reading = lag(now + timedelta(minutes=6))
    assert (reading.verdict, reading.figures["behind"]) == (BEHIND, 2)
    assert "2 files of visits are not read (date=2026-01-05/hour=10)" in reading.what
    take(checkpoint, first, second, third, planned=3, committed=3)
    assert lag(now + timedelta(hours=1)).value == 0
