"""The hand-written script's sessions: their states by hour, those of a day, and sketches of visitors."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from benchmarks.straight_rules import HOUR, named

INACTIVITY_MICROS = 30 * 60 * 1_000_000
LG_K = 12
POSITION = ("arrival_hour", "replayed", "source_file", "source_offset")


def states(visits: DataFrame, last_hour: str) -> DataFrame:
    """Compute the state of each session in every hour at whose end it is open, and in that in which it is over."""
    of_user = Window.partitionBy("user_id").orderBy("event_time", "visit_id", "page")
    session = Window.partitionBy("user_id", "number").orderBy("event_time", "visit_id", "page")
    so_far = session.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    silence = F.unix_micros("event_time") - F.unix_micros(F.lag("event_time").over(of_user))
    ids = [f"appended.{name}" for name in POSITION]
    hour, one = F.to_timestamp("event_hour", HOUR), F.expr("INTERVAL 1 HOUR")
    over = F.date_trunc("hour", F.col("ended_at") + F.expr("INTERVAL 30 MINUTES"))
    ends = F.least(F.to_timestamp("next", HOUR) - one, over, F.to_timestamp(F.lit(last_hour), HOUR))
    return (
        visits.withColumn("replayed", F.element_at(F.split("source_file", "/"), -1).startswith("replay-"))
        .withColumn("number", F.count_if(F.coalesce(silence > INACTIVITY_MICROS, F.lit(True))).over(of_user))
        .withColumn("place", F.row_number().over(session))
        .select(
            *("user_id", "number", "event_hour", "event_time", "visit_id", "page"),
            F.first("event_time").over(so_far).alias("started_at"),
            F.col("event_time").alias("ended_at"),
            F.col("place").cast("bigint").alias("pages"),
            F.first("page").over(so_far).alias("entry_page"),
            F.first("referral").over(so_far).alias("referral"),
            F.col("page").alias("exit_page"),
            F.max("keep_private").over(so_far).alias("keep_private"),
            # A list of all pages so far would make a session of thousands, a crawler's, take time by its square.
            F.collect_list(F.when(F.col("place") <= 5, F.col("page"))).over(so_far).alias("first_pages"),
            F.min(F.struct(*POSITION)).over(so_far).alias("appended"),
            F.lead("event_hour").over(session).alias("next"),
        )
        .where("next IS NULL OR next <> event_hour")
        .withColumn("new", F.col("pages") - F.coalesce(F.lag("pages").over(session), F.lit(0)))
        .withColumns({"hour": hour, "over": over})
        .withColumn("at", F.explode(F.sequence("hour", ends, one)))
        .select(
            F.date_format("at", HOUR).alias("event_hour"),
            F.substring(F.sha2(F.concat_ws("\x1f", *(F.col(one).cast("string") for one in ids)), 256), 1, 32).alias(
                "session_id"
            ),
            *("user_id", "started_at", "ended_at", "pages", "entry_page", "referral", "exit_page", "keep_private"),
            *("first_pages", "appended", (F.col("at") == F.col("over")).alias("is_completed")),
            F.when(F.col("at") == F.col("hour"), F.col("new")).otherwise(0).alias("new_pages"),
        )
    )


def of_days(sessions: DataFrame) -> DataFrame:
    """Select the completed sessions of each day."""
    return sessions.where("is_completed").select(
        F.substring("event_hour", 1, 10).alias("event_date"),
        *("session_id", "started_at", "ended_at", "pages", "entry_page", "exit_page"),
        F.regexp_replace(F.regexp_replace("referral", r"(?s)[?#].*", ""), "//[^/@]*@", "//").alias("referral"),
        ((F.unix_micros("ended_at") - F.unix_micros("started_at")) / 1_000_000).alias("seconds"),
        (F.col("pages") == 1).alias("bounced"),
        F.array_join("first_pages", " > ").alias("path"),
        "keep_private",
    )


def audience(visits: DataFrame) -> DataFrame:
    """Count the page views of an hour by one dimension at a time, with sketches of their visitors."""
    all_of_them = [F.struct(F.lit("all").alias("dimension"), F.lit("all").alias("value"))]
    by_name = [
        F.struct(F.lit(name).alias("dimension"), named(name).alias("value"))
        for name in ("page", "referral_host", "device_type", "country")
    ]
    each = visits.select("event_hour", "user_id", F.inline(F.array(*all_of_them, *by_name)))
    return each.groupBy("event_hour", "dimension", "value").agg(
        F.count(F.lit(1)).alias("events"), F.hll_sketch_agg("user_id", LG_K).alias("visitors")
    )
