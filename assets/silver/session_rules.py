"""What a session of visitors is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from blogdata.landing.lines import is_replay
from blogdata.patterns.data_value.incremental_sessionizer import SessionSpec
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
    columns = ("user_id", "event_time", "visit_id", "page", "referral", "keep_private")
    # A correction arrived later than the rows of its hour, as in silver.visits.
    return visits.select(*columns, "arrival_hour", is_replay().alias("replayed"), "source_file", "source_offset", *more)
