"""gold.visits_cube_daily and _weekly: page views, visits and visitors by device, browser, origin and country."""

from collections.abc import Mapping

from assets.gold.fan_in import gather
from assets.transforms import cubes
from blogdata.lake.commit import Commit
from blogdata.orchestration.computation import computes
from blogdata.orchestration.step import Step, Upstream


@computes("gold.visits_cube_daily")
def visits_cube_daily(step: Step) -> Mapping[str, Commit]:
    """Aggregate a day from its 24 hours."""
    period = gather(step)
    return step.publish(
        period.with_hours(cubes.visits_cube(period.visits, "event_date")), Upstream(accounts=period.accounts)
    )


@computes("gold.visits_cube_weekly")
def visits_cube_weekly(step: Step) -> Mapping[str, Commit]:
    """Aggregate a week from its hours: distinct visitors of days do not add up to those of the week."""
    period = gather(step)
    return step.publish(
        period.with_hours(cubes.visits_cube(period.visits, "event_week")), Upstream(accounts=period.accounts)
    )
