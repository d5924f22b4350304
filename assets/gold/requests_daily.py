"""gold.requests_daily: all requests of access logs by day."""

from collections.abc import Mapping

from pyspark.sql import functions as F

from assets.transforms import request_counts as rules
from blogdata.lake.commit import Account, Commit
from blogdata.orchestration import accounts
from blogdata.orchestration.computation import computes
from blogdata.orchestration.step import Step, Upstream
from blogdata.patterns.data_flow import aligned_fan_in
from blogdata.publish.partitions import Grain, coarser
from quality.contracts.requests import NO_REQUESTS

LINES = "bronze.visits"


@computes("gold.requests_daily")
def requests_daily(step: Step) -> Mapping[str, Commit]:
    """Count the requests of each day, whenever their lines arrived."""
    arrivals = accounts.entries(step, LINES)
    counted = dict.fromkeys(step.partitions, 0)
    read, arrived = set(), set()
    for arrival, entry in arrivals.items():
        for (hour, _, line_format), count in entry.breakdowns["event_hours"].items():
            if (
                hour is not None
                and line_format not in NO_REQUESTS
                and (day := coarser(hour, Grain.HOUR, Grain.DAY)) in counted
            ):
                counted[day] += count
                arrived.add(arrival)
                read.add(hour)
    present = aligned_fan_in.completeness(step.partitions, Grain.DAY, Grain.HOUR, set(arrivals))
    hours = F.create_map(*[F.lit(part) for day, found in present.items() for part in (day, found.present)])
    lines = step.read(LINES).where(
        F.col("arrival_hour").isin(*sorted(arrived))
        & F.col("event_hour").isin(*sorted(read))
        & ~F.col("format").isin(*sorted(NO_REQUESTS))
    )
    rows = rules.daily(lines, step.deployment.settings().logs.formats).withColumn(
        "hours_present", hours[F.col("event_date")]
    )
    return step.publish(rows, Upstream(accounts={day: Account(rows_in=rows_in) for day, rows_in in counted.items()}))
