"""The live datasets: what has landed within the last seconds, taken in by a stream that a run ticks on."""

import dagster as dg

from assets.code_version import version
from assets.transforms.live_visits import STREAM
from orchestration.streamed_dataset import streamed
from quality.contracts import STREAMED


def visits_live() -> dg.AssetsDefinition:
    """Make the assets of the stream of visits."""
    return streamed(STREAM, STREAMED, version=version())
