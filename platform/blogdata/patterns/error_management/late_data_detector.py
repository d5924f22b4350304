"""Late Data Detector: how far event time has come, and which rows arrive behind it.

Problem: a closed hour keeps receiving rows; a job must find them to correct what it has already published.
How it works: every source partition reports the greatest event time it has seen. The watermark of a partition
is the greatest event time of all partitions *before* it, minus the allowed lateness (:func:`watermarks`); it never goes
back. Of several sources the fastest one moves it (MAX). A row behind the watermark of the partition it arrives in is
late: it is reported (:func:`late`), never dropped here.
In a stream the partitions are its micro-batches, and the watermark is stored with each of them. Structured Streaming
would drop late rows silently; :func:`is_late` finds them first.
The trap: one clock that runs a century ahead makes every later row late. A reading that lies after the end of
its own partition plus the tolerance is therefore ignored. The time of a partition may be wrong itself: a
stream, which ingests partitions as they come, also ignores event times after the moment of ingestion. The opposite
trap is MIN, which follows the slowest source: one that falls silent holds the watermark back forever.
When not to use it: where rows are ordered by arrival alone, or where lateness changes nothing downstream.
Source: "Data Engineering Design Patterns", ch. 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from blogdata.publish.partitions import Grain, start_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

CLOCK_TOLERANCE = timedelta(minutes=5)
"""How far after the end of its partition an event time may lie: the clocks of producers are not exact."""


def advanced(watermark: datetime | None, newest: datetime | None, allowed: timedelta) -> datetime | None:
    """Return the watermark after a partition, or batch, with this greatest event time; None: nothing is late yet."""
    candidates = (watermark, None if newest is None else newest - allowed)
    return max((time for time in candidates if time is not None), default=None)


def watermarks(
    readings: Iterable[tuple[str, datetime | None]], allowed: timedelta, *, keys: Sequence[str] = ()
) -> dict[str, datetime | None]:
    """Compute the watermark of each partition (an hour) from the partitions before it; None if nothing is late there.

    Args:
        readings: The greatest event time seen in a partition, None if it has no row, in any order; one for each source.
            One that is more than :data:`CLOCK_TOLERANCE` after the end of its partition is ignored.

    Returns:
        A watermark for every key of the readings and of `keys`, never going back from one key to the next.
    """
    seen: dict[str, list[datetime]] = {key: [] for key in keys}
    for key, time in readings:
        latest = start_of(key, Grain.HOUR) + Grain.HOUR.length + CLOCK_TOLERANCE
        seen.setdefault(key, []).extend([time] if time is not None and time <= latest else [])
    marks: dict[str, datetime | None] = {}
    watermark = None
    for key in sorted(seen):
        marks[key] = watermark
        watermark = advanced(watermark, max(seen[key], default=None), allowed)
    return marks


def late(
    frame: DataFrame,
    marks: Mapping[str, datetime | None],
    *,
    partition: str,
    event_time: str,
) -> DataFrame:
    """Find the rows behind the watermark of the partition they arrived in.

    With `watermark` TIMESTAMP and `lateness_seconds` DOUBLE.
    """
    from pyspark.sql import functions as F

    known = sorted((key, mark) for key, mark in marks.items() if mark is not None)
    table = frame.sparkSession.createDataFrame(known, "_partition string, watermark timestamp")
    time, mark = F.col(event_time), F.col("watermark")
    behind = (F.col(partition) == F.col("_partition")) & (time < mark)
    lateness = (F.unix_micros(mark) - F.unix_micros(time)) / F.lit(1_000_000.0)
    joined = frame.join(F.broadcast(table), on=behind, how="inner").drop("_partition")
    return joined.withColumn("lateness_seconds", lateness)


def newest_of(frame: DataFrame, *, taken_in: datetime, partition: str, event_time: str) -> datetime | None:
    """Compute the greatest believable event time of a batch; None if there is none (a Spark action).

    An event time is not believed if it lies more than :data:`CLOCK_TOLERANCE` after the end of the row's arrival hour,
    or more than that after the moment of ingestion.
    """
    from pyspark.sql import functions as F

    time, start = F.unix_micros(event_time), F.unix_micros(F.concat(partition, F.lit(":00:00Z")).cast("timestamp"))
    latest = F.least(start + F.lit(_micros(Grain.HOUR.length)), F.unix_micros(F.lit(taken_in)))
    greatest = F.max(F.when(time <= latest + F.lit(_micros(CLOCK_TOLERANCE)), time))
    (found,) = frame.agg(greatest).collect()
    return None if found[0] is None else datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=found[0])


def is_late(time: Column, watermark: datetime | None) -> Column:
    """Build the condition that a row is behind the watermark; without a watermark no row is."""
    from pyspark.sql import functions as F

    return F.lit(False) if watermark is None else F.coalesce(time < F.lit(watermark), F.lit(False))


def _micros(length: timedelta) -> int:
    return length // timedelta(microseconds=1)
