"""silver.ads: every display of an ad once, in the hour it was shown."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import functions as F

from assets.silver.arrivals import earliest_arrival, require_usable
from assets.transforms import ad_displays
from lake.commit import Account, Commit
from orchestration import accounts
from orchestration.computation import computes
from orchestration.step import Source, Step
from patterns.error_management import windowed_deduplicator

ARRIVAL_ORDER = ("arrival_hour", "source_file", "source_offset")


@computes("silver.ads")
def ads(step: Step) -> Mapping[str, Commit]:
    """Compute each hour of display from all of bronze, whenever its rows arrived, and replace it whole."""
    since = earliest_arrival(step)
    above = accounts.entries(step, "bronze.ads", since=since)
    require_usable(step)
    displays = ad_displays.parse(
        step.read("bronze.ads").where((F.col("arrival_hour") >= since) & F.col("display_hour").isin(*step.partitions))
    )
    unique = windowed_deduplicator.deduplicate(
        displays,
        key=("display_hour", *step.contract.key),
        order=ARRIVAL_ORDER,
        payload=F.xxhash64("raw"),
    )
    rows = dict.fromkeys(step.partitions, 0)
    for entry in above.values():
        for (hour,), count in entry.breakdowns["display_hours"].items():
            if hour in rows:
                rows[hour] += count
    return step.publish(unique, Source(accounts={hour: Account(rows_in=count) for hour, count in rows.items()}))
