"""The page views of a week for analysts: all rows, without the user ids of visitors who asked not to be shared."""

from __future__ import annotations

from pyspark.sql import DataFrame

from blogdata.publish.privacy import withheld


def for_analysts(visits: DataFrame) -> DataFrame:
    """Select the columns of enriched visits that an analyst needs.

    Args:
        visits: Rows of silver.visits_enriched with `event_week` STRING.

    Returns:
        Rows of gold.visits_weekly, one per input row, without `hours_present`; `user_id` is null where `keep_private`
        is true.
    """
    return visits.select(
        "event_week",
        "visit_id",
        "event_time",
        "keep_private",
        "page",
        "ad_id",
        withheld("user_id", where="keep_private"),
        "referral_host",
        "browser",
        "network_type",
        "device_type",
        "device_name",
        "user_known",
    )
