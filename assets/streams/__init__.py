"""The streams of the blog, by name: as assets, and run outside of Dagster."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from assets.streams import live_ads, live_sessions, live_visits
from blogdata.operate import spark_attached
from blogdata.operate.config import Settings
from blogdata.stream import stream as streams
from blogdata.stream.stream import Place, Stream
from blogdata.table.lake import Lake
from blogdata.table.target import RunContext

if TYPE_CHECKING:
    import dagster as dg

STREAMS = {stream.name: stream for stream in (live_visits.STREAM, live_ads.STREAM, live_sessions.STREAM)}


def configured(version: str) -> list[dg.AssetsDefinition]:
    """Build the assets of all streams."""
    # Imported here: Spark's workers import this package for its batches, and need no assets.
    from blogdata.stream.streamed_dataset import streamed

    return [streamed(stream, version=version) for stream in STREAMS.values()]


def run(settings: Settings, stream: Stream, *, trigger: str, **how: Any) -> Mapping[str, int]:
    """Run a stream as :func:`blogdata.stream.stream.run` does; return the rows that it published of each dataset."""
    from assets.code import code
    from blogdata.landing.lines import Bounds

    run = RunContext(run_id=f"stream-{uuid.uuid4()}", job="stream", code_version=code().version, trigger=trigger)
    lake, bounds = Lake(root=str(settings.lake)), Bounds.of(settings)
    place = Place(lake=lake, landing=settings.landing, run=run, bounds=bounds, home=settings.home)
    with spark_attached.guarded(settings) as spark:
        streams.run(spark, stream, place, checkpoints=settings.checkpoints, **how)
    return {name: sum(commit.rows_out for commit in place.commits(name)) for name in stream.datasets}
