"""silver.ads: every display of an ad once, in the hour it was shown."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from assets.silver.arrivals import earliest_arrival, require_usable
from assets.transforms import ad_displays
from lake.commit import Account, Commit
from orchestration import accounts
from orchestration.computation import computes
from orchestration.step import Source, Step
from patterns.error_management import windowed_deduplicator
from quality.contracts import CONTRACTS

IDENTITY = CONTRACTS["silver.ads"].key


@computes("silver.ads")
def ads(step: Step) -> Mapping[str, Commit]:
    """Compute each hour of display from all of bronze, whenever its rows arrived, and replace it whole."""
    since = earliest_arrival(step)
    above = accounts.entries(step, "bronze.ads", since=since)
    require_usable(step)
    displays = ad_displays.parse(
        step.read("bronze.ads").where((F.col("arrival_hour") >= since) & F.col("display_hour").isin(*step.partitions))
    )
    rows = dict.fromkeys(step.partitions, 0)
    for entry in above.values():
        for (hour,), count in entry.breakdowns["display_hours"].items():
            if hour in rows:
                rows[hour] += count
    accounted = {hour: Account(rows_in=count) for hour, count in rows.items()}
    return step.publish(each_once(displays), Source(accounts=accounted))


def each_once(displays: DataFrame) -> DataFrame:
    """Keep the first line of each display to arrive, with the number of lines it stands for.

    Args:
        displays: Rows of :func:`assets.transforms.ad_displays.parse`.

    Returns:
        Rows of silver.ads.
    """
    return windowed_deduplicator.deduplicate(
        displays,
        key=("display_hour", *IDENTITY),
        order=("arrival_hour", "source_file", "source_offset"),
        payload=F.xxhash64("raw"),
    )
