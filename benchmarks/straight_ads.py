"""The hand-written script's ads: judged, each once, joined with the page views that name them, and counted."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from benchmarks.straight_rules import (
    HOUR,
    STRICT,
    field_rules,
    impossible,
    is_object,
    is_text,
    iso_time,
    named,
    reasons_of,
    with_look,
)
from benchmarks.straight_sessions import LG_K

FIELDS = ("ad_id", "page", "visit_id", "display_time", "campaign")
IDENTIFIERS = ("ad_id", "visit_id")
LOOK = f"array<struct<{', '.join(f'{name}: variant' for name in FIELDS)}, _end: boolean>>"
DISPLAY = "ad_id string, page string, visit_id string, campaign string"
IDENTITY = ("display_hour", "visit_id", "ad_id", "display_time")


def judged(lines: DataFrame) -> DataFrame:
    """Judge each line: all reasons for rejection, and the time of displays."""
    looked = with_look(lines, LOOK)
    ad = F.get("look", F.lit(0))
    looked = looked.withColumn("is_object", is_object("look")).withColumn(
        "time", iso_time(F.try_variant_get(ad["display_time"], "$", "string"))
    )
    rules = [
        *field_rules(ad, FIELDS, IDENTIFIERS),
        ("invalid_time:display_time", is_text(ad["display_time"]) & F.col("time").isNull()),
        ("impossible_time", impossible(F.col("time"))),
    ]
    time = F.when(F.size("reasons") == 0, F.col("time"))
    return looked.withColumn("reasons", reasons_of(rules)).select(
        *("raw", "source_file", "source_offset", "arrival_hour"),
        time.alias("display_time"),
        F.date_format(time, HOUR).alias("display_hour"),
        "reasons",
    )


def parse(displays: DataFrame) -> DataFrame:
    """Parse the columns of displays."""
    ad = F.from_json(F.col("raw").cast("string"), DISPLAY, STRICT)
    return displays.drop("reasons").withColumn("ad", ad).select("*", "ad.*").drop("ad")


def with_visits(visits: DataFrame, ads: DataFrame) -> DataFrame:
    """Join page views that name an ad with its displays in the half hour before."""
    views = visits.where("ad_id IS NOT NULL").select(
        *("visit_id", "ad_id", "event_time", "user_id", "keep_private", "page")
    )
    shown = ads.select(
        F.col("visit_id").alias("_visit"),
        F.col("ad_id").alias("_ad"),
        *("display_time", "campaign"),
        F.col("page").alias("display_page"),
    )
    belongs = F.expr(
        "visit_id = _visit AND ad_id = _ad AND event_time BETWEEN display_time AND display_time + INTERVAL 30 MINUTES"
    )
    joined = views.join(shown, belongs, "full_outer")
    side = F.when(F.col("event_time").isNull(), "display").when(F.col("display_time").isNull(), "event")
    return joined.select(
        F.date_format(F.coalesce("event_time", "display_time"), HOUR).alias("event_hour"),
        side.otherwise("both").alias("side"),
        F.coalesce("visit_id", "_visit").alias("visit_id"),
        F.coalesce("ad_id", "_ad").alias("ad_id"),
        *("event_time", "user_id", "keep_private", "page", "display_time", "campaign", "display_page"),
        ((F.unix_micros("event_time") - F.unix_micros("display_time")) / 1_000_000.0).alias("seconds_between"),
    )


def by_campaign(joined: DataFrame, ads: DataFrame) -> DataFrame:
    """Count the displays of campaigns by day, and the page views, visits and visitors that belong to them."""
    shown = ads.select(F.substring("display_hour", 1, 10).alias("event_date"), "campaign", F.lit(1).alias("shown"))
    rows = joined.withColumn("event_date", F.substring("event_hour", 1, 10))
    both = F.col("side") == "both"
    return (
        rows.unionByName(shown, allowMissingColumns=True)
        .groupBy("event_date", named("campaign").alias("campaign"))
        .agg(
            F.count("shown").alias("displays"),
            *_counts(),
            F.count_distinct(F.when(both, F.col("visit_id"))).alias("visits"),
            F.count_distinct(F.when(both, F.col("user_id"))).alias("visitors"),
        )
    )


def audience(joined: DataFrame) -> DataFrame:
    """Count the page views of campaigns by hour, with sketches of their visitors."""
    visitor = F.when(F.col("side") == "both", F.col("user_id"))
    return joined.groupBy("event_hour", named("campaign").alias("campaign")).agg(
        *_counts(), F.hll_sketch_agg(visitor, LG_K).alias("visitors")
    )


def _counts() -> tuple[Column, ...]:
    side = F.col("side")
    event = F.struct("visit_id", "event_time", "page")
    return (
        F.count_if(side == "display").alias("displays_alone"),
        F.count_distinct(F.when(side == "both", event)).alias("events"),
        F.count_if(side == "event").alias("events_alone"),
        F.count_if(side == "both").alias("pairs"),
    )
