"""The live datasets: data ingested within seconds of landing by a stream; each run is one tick of it."""

import dagster as dg

from assets.code_version import version
from assets.streams import STREAMS
from blogdata.orchestration.streamed_dataset import streamed
from quality.contracts import STREAMED


def assets(stream: str) -> dg.AssetsDefinition:
    """Build the assets of a stream."""
    return streamed(STREAMS[stream], STREAMED, version=version())
