"""gold.page_stats and gold.referral_stats: daily counts by page and by referring host."""

from collections.abc import Mapping

from assets.gold.fan_in import gather
from assets.transforms import cubes
from blogdata.lake.commit import Commit
from blogdata.orchestration.computation import computes
from blogdata.orchestration.step import Step, Upstream


@computes("gold.page_stats")
def page_stats(step: Step) -> Mapping[str, Commit]:
    """Count each page's views, visits and visitors."""
    period = gather(step)
    return step.publish(period.with_hours(cubes.page_stats(period.visits)), Upstream(accounts=period.accounts))


@computes("gold.referral_stats")
def referral_stats(step: Step) -> Mapping[str, Commit]:
    """Count the views, visits and visitors each referring host brought."""
    period = gather(step)
    return step.publish(period.with_hours(cubes.referral_stats(period.visits)), Upstream(accounts=period.accounts))
