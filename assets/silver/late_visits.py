"""silver.late_visits: visit events that arrived behind the watermark, captured and measured."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from assets import bronze
from assets.partitions import HOURS
from assets.policy import blog_dataset, newly_updated
from orchestration import accounts
from orchestration.step import Step
from patterns.core.commit import Account, Commit
from patterns.error_management import late_data_detector
from patterns.error_management.late_data_detector import PartitionReading

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ALLOWED_LATENESS = timedelta(minutes=15)


@blog_dataset("silver.late_visits", deps=[bronze.visits], partitions_def=HOURS, automation=newly_updated())
def late_visits(step: Step) -> Commit:
    """Compare every event with the watermark that held when its hour of arrival began."""
    history = accounts.entries(step, "bronze.visits", until=step.partitions[-1] + "~")
    readings = [
        PartitionReading(key=key, max_event_time=_instant(entry.measures["max_event_time"]))
        for key, entry in sorted(history.items())
    ]
    watermarks = late_data_detector.watermarks(readings, ALLOWED_LATENESS, keys=step.partitions)
    events = step.read("bronze.visits").where(
        F.col("arrival_hour").isin(*step.partitions)
        & F.col("event_time").isNotNull()
        & F.col("filtered_by").isNull()
    )
    late = late_data_detector.late(events, {key: watermarks[key] for key in step.partitions})
    # Counted the other way round, by the rows that are not late, so that the account is not its own proof.
    arrived = {row["arrival_hour"]: row["on_time"] for row in _on_time(events, late).collect()}
    on_time = {key: int(arrived.get(key, 0)) for key in step.partitions}
    return step.overwrite(
        late,
        accounts={
            key: Account(rows_in=int(history[key].measures["visits"]), reasons={"on_time": on_time[key]})
            for key in step.partitions
        },
    )


def _on_time(events: DataFrame, late: DataFrame) -> DataFrame:
    position = ["source_file", "source_offset"]
    rest = events.select("arrival_hour", *position).join(
        F.broadcast(late.select(*position)), position, "left_anti"
    )
    return rest.groupBy("arrival_hour").agg(F.count(F.lit(1)).alias("on_time"))


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text.replace("Z", "+00:00"))
