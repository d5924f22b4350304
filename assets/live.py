"""The live datasets: data ingested within seconds of landing by a stream; each run is one tick of it."""

import dagster as dg

from assets.code_version import version
from assets.streams import STREAMS
from orchestration.streamed_dataset import streamed
from quality.contracts import STREAMED


def visits_live() -> dg.AssetsDefinition:
    """Build the assets of the visits stream."""
    return streamed(STREAMS["visits"], STREAMED, version=version())


def visits_with_ads_live() -> dg.AssetsDefinition:
    """Build the asset of the stream that joins visits and ads."""
    return streamed(STREAMS["ads"], STREAMED, version=version())


def sessions_live() -> dg.AssetsDefinition:
    """Build the asset of the stream that finds the sessions of visitors."""
    return streamed(STREAMS["sessions"], STREAMED, version=version())
