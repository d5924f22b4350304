"""serving.daily_stats: the page and referral statistics of a day, together, in the blog's PostgreSQL."""

from assets.partitions import DAYS
from assets.policy import newly_updated
from orchestration.replay_planner import Stage
from orchestration.sinks import served_together
from patterns.core.partitions import Grain
from quality.contracts import CONTRACTS

SCHEMA = "serving"
DATASET = "serving.daily_stats"
SERVED = ("gold.page_stats", "gold.referral_stats")
STAGE = Stage(name="serving", datasets=(DATASET,), grain=Grain.DAY)

daily_stats = served_together(
    DATASET,
    [CONTRACTS[name] for name in SERVED],
    description="The page and referral statistics of a day in PostgreSQL: of both datasets, or of neither",
    owner="team:analytics",
    partitions_def=DAYS,
    automation=newly_updated(),
)
