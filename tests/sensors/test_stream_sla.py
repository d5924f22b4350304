"""SLA Misses Detector: a slow stream is told from a late file, by the checkpoint and real commits; without Spark."""

from __future__ import annotations

import os
import shutil
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from assets.detector_checks import deployment_of, evaluation_of
from assets.streams import STREAMS
from blogdata.errors.remedies import RunStream
from blogdata.orchestration.lake_resource import LakeResource
from blogdata.patterns.error_management.checkpointer import open_checkpoint
from blogdata.patterns.observability.reading import QUIET, SLA, UNKNOWN, Reading
from blogdata.patterns.observability.sla_misses_detector import EVENT_TIME, INPUT_LATE, JOB_LATE, PROCESSING_TIME
from blogdata.planning import detectors
from blogdata.publish.changes import AppendBatch
from blogdata.publish.partitions import Grain, key_of
from published import land, publish
from quality.contracts import EVERY
from spark_checkpoints import take

ENDED = datetime.now(timezone.utc).replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)
"""End of the hour whose file is judged."""
HOUR = key_of(ENDED - timedelta(hours=1), Grain.HOUR)
BEGUN = -180
"""When the stream was started, in minutes since the end of the hour."""
VISITS, ENRICHED = "silver.visits_live", "silver.visits_enriched_live"
STREAM_OF = {VISITS: "visits", ENRICHED: "enriched"}


def at(minutes: int) -> datetime:
    """Return a time, in minutes since the end of the hour."""
    return ENDED + timedelta(minutes=minutes)


def landed(lake: LakeResource, name: str, minutes: int) -> Path:
    """Land a file of the hour."""
    file = land(lake, "visits", HOUR, {name: "{}\n"}) / name
    os.utime(file, (at(minutes).timestamp(),) * 2)
    return file


def streamed(lake: LakeResource, dataset: str, file: Path, published: int | None, *, committed: bool = True) -> None:
    """Stream a file as the second batch, the first one when the stream began; None: nothing of it was published."""
    checkpoint = open_checkpoint(lake.checkpoints_path, STREAMS[STREAM_OF[dataset]].spec(lake.landing_path))
    os.utime(checkpoint.folder / "stream.json", (at(BEGUN).timestamp(),) * 2)
    take(checkpoint, landed(lake, "first.json", BEGUN - 60), file, planned=2, committed=2 if committed else 1)
    for batch, minutes in enumerate((BEGUN, published)):
        if minutes is not None:
            once = AppendBatch(stream=checkpoint.writer, batch=batch)
            publish(lake.lake, dataset, "event_hour", {HOUR: 1}, appended=vars(once), at=at(minutes))


def read(lake: LakeResource, dataset: str = VISITS) -> Reading:
    return detectors.sla(deployment_of(lake, at(100)), EVERY[dataset])


@pytest.mark.parametrize(
    ("came", "published", "verdict", "processing", "event"),
    [
        (3, 5, QUIET, 2, 5),
        (3, 20, JOB_LATE, 17, 20),
        (70, 72, INPUT_LATE, 2, 72),
        (70, 80, JOB_LATE, 10, 80),
        # Within its hour, a file is due by its landing alone.
        (-30, -28, QUIET, 2, 2),
        (-30, -10, JOB_LATE, 20, 20),
    ],
)
def test_a_slow_stream_is_told_from_a_late_file(
    lake: LakeResource, came: int, published: int, verdict: str, processing: int, event: int
) -> None:
    streamed(lake, VISITS, landed(lake, "a.json", came), published)
    found = read(lake)
    assert (found.verdict, list(found.partitions)) == (verdict, [] if verdict == QUIET else [f"{HOUR} (batch 1)"])
    assert (found.figures[PROCESSING_TIME], found.figures[EVENT_TIME]) == (processing * 60, event * 60)
    assert evaluation_of(found).passed == (verdict == QUIET)
    expected = {QUIET: (event, 60), JOB_LATE: (processing, 5), INPUT_LATE: (event, 60)}[verdict]
    assert (found.value, found.bound) == (expected[0] * 60, expected[1] * 60)


def test_a_batch_that_is_not_published_is_late_from_its_landing_on(lake: LakeResource) -> None:
    streamed(lake, VISITS, landed(lake, "a.json", 3), None, committed=False)
    found = read(lake)
    assert (found.verdict, found.value) == (JOB_LATE, 97 * 60)
    assert found.remedy is not None
    assert found.remedy.parts[1:] == (RunStream(name="visits"),), "no run computes it"
    assert (
        found.what == f"{HOUR} (batch 1) is not published 92 min after the promise; its input was there 97 min before"
    )


def test_what_was_there_before_the_stream_or_is_nothing_for_a_table_is_not_judged(lake: LakeResource) -> None:
    assert read(lake).verdict == UNKNOWN, "the stream was never started"
    streamed(lake, VISITS, landed(lake, "a.json", BEGUN - 60), 20)
    assert (read(lake).verdict, read(lake).figures[EVENT_TIME]) == (QUIET, 0)
    streamed(lake, ENRICHED, landed(lake, "b.json", 3), None)
    assert (read(lake, ENRICHED).verdict, read(lake, ENRICHED).figures[EVENT_TIME]) == (QUIET, 0)


def test_files_of_the_home_that_a_checkpoint_was_copied_from_are_not_judged(lake: LakeResource, tmp_path: Path) -> None:
    streamed(lake, VISITS, landed(lake, "a.json", 3), 20)
    assert read(lake).verdict == JOB_LATE
    shutil.copytree(lake.landing_path.parent, tmp_path / "moved")
    moved = LakeResource(root=str(tmp_path / "moved" / "lake"), landing=str(tmp_path / "moved" / "landing"))
    assert read(moved).verdict == QUIET


def test_streams_that_are_late_alike_are_one_finding(lake: LakeResource) -> None:
    file = landed(lake, "a.json", 70)
    for dataset in (VISITS, ENRICHED):
        streamed(lake, dataset, file, 72)
    (found,) = [one for one in detectors.findings(deployment_of(lake, at(100))) if one.source == SLA]
    assert found.dataset == VISITS
    assert found.what == (
        f"{HOUR} (batch 1) was published 12 min after the promise; landing.visits came at {at(70):%Y-%m-%d %H:%M} UTC"
        f"; the same of {ENRICHED}"
    )
