"""The live datasets: data ingested within seconds of landing by a stream; each run is one tick of it."""

import dagster as dg

from assets.code_version import version
from assets.transforms.live_visits import STREAM
from orchestration.streamed_dataset import streamed
from quality.contracts import STREAMED


def visits_live() -> dg.AssetsDefinition:
    """Build the assets of the visits stream."""
    return streamed(STREAM, STREAMED, version=version())
