"""What a session of visitors is made of, and its rows for analysts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from blogdata.patterns.data_value.incremental_sessionizer import SessionSpec
from blogdata.patterns.ingestion.landed_lines import is_replay
from quality.contracts.sessions import INACTIVITY

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SPEC = SessionSpec(
    visitor="user_id",
    time="event_time",
    ties=("visit_id", "page"),
    position=("arrival_hour", "replayed", "source_file", "source_offset"),
    partition="event_hour",
    inactivity=INACTIVITY,
    count="pages",
    first={"entry_page": "page", "referral": "referral"},
    last={"exit_page": "page"},
    ever=("keep_private",),
    path={"first_pages": "page"},
)


def page_views(visits: DataFrame, *more: Column) -> DataFrame:
    """Select what sessions are computed from."""
    columns = ("user_id", "event_time", "visit_id", "page", "referral", "keep_private")
    # A correction arrived later than the rows of its hour, as in silver.visits.
    return visits.select(*columns, "arrival_hour", is_replay().alias("replayed"), "source_file", "source_offset", *more)


def daily(sessions: DataFrame) -> DataFrame:
    """Compute the columns of gold.sessions_daily from completed sessions."""
    micros = F.unix_micros("ended_at") - F.unix_micros("started_at")
    return sessions.select(
        *("event_date", "session_id", "started_at", "ended_at", "pages", "entry_page", "exit_page"),
        # Behind the path of an address, and before its host, may be anything about a person.
        F.regexp_replace(F.regexp_replace("referral", r"(?s)[?#].*", ""), "//[^/@]*@", "//").alias("referral"),
        (micros / 1_000_000).alias("seconds"),
        (F.col("pages") == 1).alias("bounced"),
        F.array_join("first_pages", " > ").alias("path"),
        "keep_private",
    )
