"""silver.late_visits: visit events that arrived behind the watermark, captured and measured."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from blogdata.contract.publication import Account, Commit
from blogdata.patterns.error_management import late_data_detector
from blogdata.runs import accounts
from blogdata.runs.computation import computes
from blogdata.runs.step import Step, Upstream
from quality.contracts.visits import WATERMARK

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@computes("silver.late_visits")
def late_visits(step: Step) -> Mapping[str, Commit]:
    """Compare every event with the watermark that held when its hour of arrival began."""
    history = accounts.entries(step, "bronze.visits", until=step.partitions[-1] + "~")
    marks = WATERMARK.watermarks(history, step.partitions)
    events = step.read("bronze.visits", step.partitions).where("event_time IS NOT NULL AND filtered_by IS NULL")
    late = late_data_detector.late(events, marks, partition="arrival_hour", event_time="event_time")
    # Count the rows that are not late independently, so that the account does not prove itself.
    arrived = {row["arrival_hour"]: row["on_time"] for row in _on_time(events, marks).collect()}
    on_time = {key: int(arrived.get(key, 0)) for key in step.partitions}
    expected = {
        key: Account(
            rows_in=int(history[key].measures["visits"]) if key in history else 0, reasons={"on_time": on_time[key]}
        )
        for key in step.partitions
    }
    # Earlier hours determine the watermark: when it moves, the hour runs again.
    return step.publish(late, Upstream(accounts=expected, landed=WATERMARK.marks(history, step.partitions)))


def _on_time(events: DataFrame, marks: Mapping[str, datetime | None]) -> DataFrame:
    table = events.sparkSession.createDataFrame(list(marks.items()), "arrival_hour STRING, _mark TIMESTAMP")
    in_time = F.coalesce(F.col("event_time") >= F.col("_mark"), F.lit(True))
    joined = events.join(F.broadcast(table), "arrival_hour", "left")
    return joined.groupBy("arrival_hour").agg(F.count_if(in_time).alias("on_time"))
