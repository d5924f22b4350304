"""silver.ads: every display of an ad once, in the hour it was shown."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import functions as F

from assets.silver.arrival_hours import ARRIVAL_ORDER, earliest_arrival, require_usable
from blogdata.lake.commit import Account, Commit
from blogdata.landing.lines import is_replay
from blogdata.orchestration import accounts
from blogdata.orchestration.computation import computes
from blogdata.orchestration.step import Step, Upstream
from blogdata.patterns.error_management import windowed_deduplicator
from blogdata.publish.target import Companion
from quality.contracts import CONTRACTS

IDENTITY = CONTRACTS["silver.ads"].key


@computes("silver.ads")
def ads(step: Step) -> Mapping[str, Commit]:
    """Compute each hour of display from all of bronze, whenever its rows arrived, and replace it whole.

    Duplicates with another payload than the kept display are published with it, in the companion table.
    """
    since = earliest_arrival(step.partitions)
    above = accounts.entries(step, "bronze.ads", since=since)
    require_usable(step)
    displays = step.read("bronze.ads").where(
        (F.col("arrival_hour") >= since) & F.col("display_hour").isin(*step.partitions) & (F.size("reasons") == 0)
    )
    rows = dict.fromkeys(step.partitions, 0)
    for entry in above.values():
        for (hour,), count in entry.breakdowns["display_hours"].items():
            if hour in rows:
                rows[hour] += count
    accounted = {hour: Account(rows_in=count) for hour, count in rows.items()}
    in_order = displays.withColumn("_replay", is_replay())
    identity = {"key": ("display_hour", *IDENTITY), "order": ARRIVAL_ORDER}
    payload = F.xxhash64("raw")
    conflicts = Companion(
        contract=CONTRACTS["silver.ad_conflicts"],
        frame=windowed_deduplicator.conflicting(in_order, payload=payload, **identity),
        counted_measure="reason.duplicates",
        kept_measure="conflicts",
        dropped_reason="identical",
    )
    unique = windowed_deduplicator.deduplicate(in_order, payload=payload, **identity)
    return step.publish(unique, Upstream(accounts=accounted), companions=[conflicts])
