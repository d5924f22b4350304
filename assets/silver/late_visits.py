"""silver.late_visits: visit events that arrived behind the watermark, captured and measured."""

from __future__ import annotations

from datetime import datetime, timedelta

from pyspark.sql import functions as F

from assets import bronze
from assets.partitions import HOURS
from assets.policy import blog_dataset, newly_updated
from orchestration import accounts
from orchestration.step import Step
from patterns.core.commit import Account, Commit
from patterns.error_management import late_data_detector
from patterns.error_management.late_data_detector import PartitionReading

ALLOWED_LATENESS = timedelta(minutes=15)


@blog_dataset("silver.late_visits", deps=[bronze.visits], partitions_def=HOURS, automation=newly_updated())
def late_visits(step: Step) -> Commit:
    """Compare every event with the watermark that held when its hour of arrival began."""
    history = accounts.entries(step, "bronze.visits", until=step.partitions[-1] + "~")
    readings = [
        PartitionReading(key=key, max_event_time=_instant(entry.measures["max_event_time"]))
        for key, entry in sorted(history.items())
    ]
    watermarks = late_data_detector.watermarks(readings, ALLOWED_LATENESS)
    events = step.read("bronze.visits").where(
        F.col("arrival_hour").isin(*step.partitions) & F.col("event_time").isNotNull() & F.col("filtered_by").isNull()
    )
    wanted = {key: watermarks[key] for key in step.partitions}
    late = late_data_detector.late(events, wanted, partition="arrival_hour", event_time="event_time")
    on_time = {
        key: int(history[key].measures["visits"]) - rows
        for key, rows in late_data_detector.counts(late, "arrival_hour", step.partitions).items()
    }
    return step.overwrite(
        late,
        accounts={
            key: Account(rows_in=int(history[key].measures["visits"]), reasons={"on_time": on_time[key]})
            for key in step.partitions
        },
    )


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text.replace("Z", "+00:00"))
