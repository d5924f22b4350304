"""Joins the events of visits with the displays of the ads that they name (Dynamic Joiner)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from blogdata.patterns.data_value import dynamic_joiner
from blogdata.patterns.data_value.dynamic_joiner import Side, TimedJoin
from quality.contracts.ads import BELONGS, DISPLAY_SIDE, EVENT_SIDE, WITH_ADS

JOIN = TimedJoin(
    on=("visit_id", "ad_id"),
    left=Side(name=EVENT_SIDE, time="event_time"),
    right=Side(name=DISPLAY_SIDE, time="display_time"),
    bound=BELONGS,
    late=timedelta(hours=1),
)
"""Displays and events may each come up to an hour late."""
_COLUMNS = [column.name for column in WITH_ADS.columns]


def hour_of(time: Column) -> Column:
    """Build the hour key (`2026-01-31T05`) of a TIMESTAMP; Spark's time zone is UTC."""
    return F.date_format(time, "yyyy-MM-dd'T'HH")


def naming_an_ad(visits: DataFrame, more: Sequence[str] = ()) -> DataFrame:
    """Select the events that name an ad, with the columns that the joined rows have of them."""
    named = visits.where(F.col("ad_id").isNotNull())
    # The state of a stream, also of one that was begun by an earlier release, has it as never null.
    private = F.coalesce("keep_private", F.lit(True)).alias("keep_private")
    return named.select("visit_id", "ad_id", "event_time", "user_id", private, "page", *more)


def displays_of(ads: DataFrame, more: Sequence[str] = ()) -> DataFrame:
    return ads.select("visit_id", "ad_id", "display_time", "campaign", F.col("page").alias("display_page"), *more)


def with_ads(events: DataFrame, displays: DataFrame, more: Sequence[str] = ()) -> DataFrame:
    """Join events and displays of the functions above to rows of silver.visits_with_ads; a stream if both are."""
    seconds = F.unix_micros("event_time") - F.unix_micros("display_time")
    return (
        dynamic_joiner.join(events, displays, JOIN)
        .withColumns(
            {
                "event_hour": hour_of(F.coalesce("event_time", "display_time")),
                "seconds_between": seconds / F.lit(1_000_000.0),
            }
        )
        .select(*_COLUMNS, *more)
    )
