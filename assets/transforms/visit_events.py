"""Visit events: judging every landed line, and reading the typed columns of those that are events.

`judge` gives each line its verdict (all reasons, first filter, event time) and keeps its bytes; `parse` reads the
typed columns from the bytes of the rows that passed.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from assets.transforms import visit_lines
from assets.transforms.visit_times import hour_of

JSON = "json"
COMBINED = "combined"
POSITION = ("source_file", "source_offset", "arrival_hour")
JUDGED = ("raw", *POSITION, "format", "event_time", "event_hour", "reasons", "filtered_by")

_EVENT = (
    "visit_id string, user_id string, keep_private boolean, page string, context struct<referral: string,"
    " ad_id: string, user: struct<ip: string, login: string, connected_since: string>, technical: struct<"
    "browser: string, browser_version: string, network_type: string, device_type: string, device_version: string>>"
)


def judge(lines: DataFrame) -> DataFrame:
    judged = visit_lines.judged(lines)
    valid = F.size("reasons") == 0
    time = F.when(valid, F.col("event_time"))
    return judged.select(
        "raw",
        *POSITION,
        "format",
        time.alias("event_time"),
        hour_of(time).alias("event_hour"),
        "reasons",
        F.lit(None).cast("string").alias("filtered_by"),
    )
