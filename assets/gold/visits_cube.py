"""gold.visits_cube_daily and _weekly: page views, visits and visitors by device, browser and origin."""

from assets import silver
from assets.gold.fan_in import gather
from assets.partitions import DAYS, WEEKS, within_period
from assets.policy import all_hours_there, blog_dataset
from assets.transforms import cubes
from orchestration.step import Step
from patterns.core.commit import Commit

HOURS_OF_VISITS = within_period(silver.visits_enriched)


@blog_dataset("gold.visits_cube_daily", deps=[HOURS_OF_VISITS], partitions_def=DAYS, automation=all_hours_there())
def visits_cube_daily(step: Step) -> Commit:
    """Aggregate a day from its 24 hours."""
    period = gather(step)
    return step.overwrite(cubes.visits_cube(period.visits, "event_date"), accounts=period.accounts)


@blog_dataset("gold.visits_cube_weekly", deps=[HOURS_OF_VISITS], partitions_def=WEEKS, automation=all_hours_there())
def visits_cube_weekly(step: Step) -> Commit:
    """Aggregate a week from its hours: distinct visitors of days do not add up to those of the week."""
    period = gather(step)
    return step.overwrite(cubes.visits_cube(period.visits, "event_week"), accounts=period.accounts)
