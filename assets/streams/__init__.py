"""The streams of the blog, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assets.streams import live_ads, live_sessions, live_visits

if TYPE_CHECKING:
    import dagster as dg

STREAMS = {stream.name: stream for stream in (live_visits.STREAM, live_ads.STREAM, live_sessions.STREAM)}


def configured(version: str) -> list[dg.AssetsDefinition]:
    """Build the assets of all streams."""
    # Imported here: Spark's workers, which process batches, do without Dagster.
    from blogdata.stream.streamed_dataset import streamed

    return [streamed(stream, version=version) for stream in STREAMS.values()]
