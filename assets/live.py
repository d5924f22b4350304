"""The live datasets: what has landed within the last seconds, taken in by a stream that a run ticks on."""

from assets.policy import SOURCES
from assets.sources import LANDING_VISITS
from assets.transforms.live_visits import STREAM
from orchestration.dataset import key_of
from orchestration.streamed_dataset import streamed
from quality.contracts import STREAMED

visits_live = streamed(
    STREAM,
    STREAMED,
    sources=SOURCES,
    deps={
        "bronze.visits_live": [LANDING_VISITS.key],
        "silver.visits_live": [key_of("bronze.visits_live"), key_of("silver.visits_live_aside")],
        "silver.visits_live_aside": [key_of("bronze.visits_live")],
    },
)
ASSETS = (visits_live,)
