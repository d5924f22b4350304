"""gold.page_stats and gold.referral_stats: what was read, and where readers came from, per day."""

from assets.gold.fan_in import gather
from assets.gold.visits_cube import HOURS_OF_VISITS
from assets.partitions import DAYS
from assets.policy import all_hours_there, blog_dataset, once_all_hours_there
from assets.transforms import cubes
from orchestration.step import Step
from patterns.core.commit import Commit


@blog_dataset("gold.page_stats", deps=[HOURS_OF_VISITS], partitions_def=DAYS, automation=all_hours_there())
def page_stats(step: Step) -> Commit:
    """Count each page's views, visits and visitors."""
    period = gather(step)
    return step.overwrite(cubes.page_stats(period.visits), accounts=period.accounts)


@blog_dataset("gold.referral_stats", deps=[HOURS_OF_VISITS], partitions_def=DAYS, automation=once_all_hours_there())
def referral_stats(step: Step) -> Commit:
    """Count the views, visits and visitors each referring host brought."""
    period = gather(step)
    return step.overwrite(cubes.referral_stats(period.visits), accounts=period.accounts)
