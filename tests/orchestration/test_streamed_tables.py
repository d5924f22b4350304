"""A checkpoint is gone on with only beside the tables that it has published to; without Spark."""

from __future__ import annotations

import shutil
from pathlib import Path

from blogdata.evidence.events import EventLog
from blogdata.lake.lake import Lake
from blogdata.orchestration import streamed_tables
from blogdata.orchestration.streamed_tables import LakeBehind
from blogdata.patterns.error_management.checkpointer import StreamSpec, open_checkpoint
from published import publish

SPEC = StreamSpec(name="visits")
LINES, EVENTS = "bronze.visits_live", "silver.visits_live"
BOTH = (LINES, EVENTS)


def batch(lake: Lake, number: int) -> None:
    """Publish a batch to both tables."""
    for name, column in ((LINES, "arrival_hour"), (EVENTS, "event_hour")):
        publish(lake, name, column, {f"2026-01-05T{number:02d}": 1}, appended={"stream": "visits-1", "batch": number})
        EventLog(lake).publications(name)


def test_a_checkpoint_stops_beside_older_other_and_empty_lakes(tmp_path: Path) -> None:
    lake, root = Lake(root=str(tmp_path / "lake")), tmp_path / "checkpoints"

    def refused(*, renew: bool = False) -> str | None:
        try:
            streamed_tables.require(root, "visits", lake, BOTH, renew=renew)
        except LakeBehind as error:
            return str(error.remedy)
        return None

    assert refused() is None, "nothing is published yet"
    checkpoint = open_checkpoint(root, SPEC)
    batch(lake, 0)
    assert refused() is None, "a batch was cut off before it was noted"
    shutil.copytree(lake.root, tmp_path / "older")
    batch(lake, 1)
    streamed_tables.note(checkpoint, lake, BOTH)
    batch(lake, 2)
    assert refused() is None
    shutil.copytree(lake.root, tmp_path / "newer")

    # As a whole: a new checkpoint goes on from there.
    for put_back in (tmp_path / "older", None):
        shutil.rmtree(lake.root)
        if put_back is not None:
            shutil.copytree(put_back, lake.root)
        assert "away" not in str(refused())
        assert refused(renew=True) is None

    # One of the tables, gone or older: the other one has files that would be passed over.
    for put_back in (None, tmp_path / "older" / "silver" / "visits_live"):
        shutil.rmtree(lake.root, ignore_errors=True)
        shutil.copytree(tmp_path / "newer", lake.root)
        shutil.rmtree(lake.path(EVENTS))
        if put_back is not None:
            shutil.copytree(put_back, lake.path(EVENTS))
        for renew in (False, True):
            assert f"move {lake.path(LINES)}" in str(refused(renew=renew))
        for name in BOTH:
            shutil.rmtree(lake.path(name), ignore_errors=True)
        assert refused(renew=True) is None

    # Both of them older, the event log as it was: their next versions would be taken for known ones.
    shutil.rmtree(lake.root)
    shutil.copytree(tmp_path / "newer", lake.root)
    for name in BOTH:
        shutil.rmtree(lake.path(name))
        shutil.copytree(Path(str(lake.path(name)).replace("/lake/", "/older/")), lake.path(name))
    assert f"move {lake.path(LINES)} and {lake.path(EVENTS)} away" in str(refused(renew=True))

    # Tables of the same name in another lake.
    shutil.rmtree(lake.root)
    for number in range(4):
        batch(lake, number)
    assert refused() is not None
