"""silver.late_visits: visit events that arrived behind the watermark, captured and measured."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from assets import bronze
from assets.partitions import HOURS
from assets.policy import blog_dataset, newly_updated
from assets.watermarks import mark, watermarks
from orchestration import accounts
from orchestration.step import Step
from patterns.core.commit import Account, Commit
from patterns.error_management import late_data_detector

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@blog_dataset("silver.late_visits", deps=[bronze.visits], partitions_def=HOURS, automation=newly_updated())
def late_visits(step: Step) -> Commit:
    """Compare every event with the watermark that held when its hour of arrival began."""
    history = accounts.entries(step, "bronze.visits", until=step.partitions[-1] + "~")
    marks = watermarks(history, step.partitions)
    events = step.read("bronze.visits").where(
        F.col("arrival_hour").isin(*step.partitions) & F.col("event_time").isNotNull() & F.col("filtered_by").isNull()
    )
    late = late_data_detector.late(events, marks)
    # Counted the other way round, by the rows that are not late, so that the account is not its own proof.
    arrived = {row["arrival_hour"]: row["on_time"] for row in _on_time(events, marks).collect()}
    on_time = {key: int(arrived.get(key, 0)) for key in step.partitions}
    return step.overwrite(
        late,
        accounts={
            key: Account(
                rows_in=int(history[key].measures["visits"]) if key in history else 0,
                reasons={"on_time": on_time[key]},
            )
            for key in step.partitions
        },
        # Hours before this one decide it as well: when the watermark moves, the hour runs again.
        landed={key: mark(watermark) for key, watermark in marks.items()},
    )


def _on_time(events: DataFrame, marks: Mapping[str, datetime | None]) -> DataFrame:
    table = events.sparkSession.createDataFrame(list(marks.items()), "arrival_hour STRING, _mark TIMESTAMP")
    in_time = F.coalesce(F.col("event_time") >= F.col("_mark"), F.lit(True))
    joined = events.join(F.broadcast(table), "arrival_hour", "left")
    return joined.groupBy("arrival_hour").agg(F.count_if(in_time).alias("on_time"))
