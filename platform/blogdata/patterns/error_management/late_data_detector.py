"""Late Data Detector: how far event time has come, and which rows arrive behind it.

Problem: a closed hour keeps receiving rows; a job must find them to correct what it has already published.
How it works: every source partition reports the greatest event time it has seen. The watermark of a partition is the
greatest event time of all partitions *before* it, minus the allowed lateness (:func:`progress`); it never goes back.
With several sources, MIN follows the slowest of them and MAX the fastest, as the contract declares. A row behind the
watermark of the partition it arrives in is late: it is reported (:func:`late`), never dropped here. The partitions of a
stream are its micro-batches, :class:`StreamProgress` is stored with each of them, and :func:`is_late` finds the rows
that Structured Streaming would drop silently.
The trap: one clock that runs a century ahead makes every later row late. A time that lies after the end of its own
partition plus the tolerance is therefore ignored; a stream also ignores event times after the moment of ingestion, as
the time of a partition may be wrong itself. And MIN: one source that falls silent holds the watermark back forever.
When not to use it: where rows are ordered by arrival alone, or where lateness changes nothing downstream.
Source: "Data Engineering Design Patterns", ch. 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from enum import Enum
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from blogdata.contract.partitions import Grain, start_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

CLOCK_TOLERANCE = timedelta(minutes=5)
"""How far after the end of its partition an event time may lie: the clocks of producers are not exact."""
Reading = tuple[str, datetime | None]
"""A source, and its greatest event time in a partition; None if it has none there."""


class Strategy(str, Enum):
    MIN = "min"
    MAX = "max"


@dataclass(frozen=True, kw_only=True)
class StreamProgress:
    """Event-time progress of a stream, stored with each batch so that a restart resumes from the last one."""

    seen: Mapping[str, datetime | None] = field(default_factory=dict)
    """Greatest event time of each source; None for a known source without an event time yet."""
    watermark: datetime | None = None
    """Watermark that the next batch is judged by; None while nothing can be late."""

    def advance(
        self, readings: Iterable[Reading], allowed: timedelta, strategy: Strategy = Strategy.MAX
    ) -> StreamProgress:
        """Compute the progress after a batch, from the greatest believable event times of its sources."""
        seen = dict(self.seen)
        for source, time in readings:
            seen[source] = _later(seen.get(source), time)
        times = [time for time in seen.values() if time is not None]
        mark = self.watermark
        if times and not (strategy is Strategy.MIN and len(times) < len(seen)):
            mark = _later(mark, (min(times) if strategy is Strategy.MIN else max(times)) - allowed)
        return StreamProgress(seen=seen, watermark=mark)


PROGRESS = TypeAdapter(StreamProgress)
"""Its form in JSON, which is stored with each batch."""


def progress(
    readings: Mapping[str, Sequence[Reading]],
    allowed: timedelta,
    *,
    strategy: Strategy = Strategy.MAX,
    keys: Sequence[str] = (),
) -> dict[str, datetime | None]:
    """Compute the watermark of each partition (an hour) of the readings and of `keys`; None: nothing is late there."""
    marks: dict[str, datetime | None] = {}
    state = StreamProgress(seen={source: None for of_key in readings.values() for source, _ in of_key})
    for key in sorted({*readings, *keys}):
        marks[key] = state.watermark
        latest = start_of(key, Grain.HOUR) + Grain.HOUR.length + CLOCK_TOLERANCE
        believable = [(source, time) for source, time in readings.get(key, ()) if time is None or time <= latest]
        state = state.advance(believable, allowed, strategy)
    return marks


def late(frame: DataFrame, marks: Mapping[str, datetime | None], *, partition: str, event_time: str) -> DataFrame:
    """Find the rows behind the watermark of their partition, with `watermark` TIMESTAMP, `lateness_seconds` DOUBLE."""
    from pyspark.sql import functions as F

    known = sorted((key, mark) for key, mark in marks.items() if mark is not None)
    table = frame.sparkSession.createDataFrame(known, "_partition string, watermark timestamp")
    time, mark = F.col(event_time), F.col("watermark")
    behind = (F.col(partition) == F.col("_partition")) & (time < mark)
    lateness = (F.unix_micros(mark) - F.unix_micros(time)) / F.lit(1_000_000.0)
    joined = frame.join(F.broadcast(table), on=behind, how="inner").drop("_partition")
    return joined.withColumn("lateness_seconds", lateness)


def readings_of(
    frame: DataFrame, *, source: Column, taken_in: datetime, partition: str, event_time: str
) -> list[Reading]:
    """Compute the greatest believable event time of each source of a batch (a Spark action)."""
    from pyspark.sql import functions as F

    hour = F.concat(F.col(partition), F.lit(":00:00Z")).cast("timestamp")
    latest = F.least(hour + F.lit(Grain.HOUR.length), F.lit(taken_in)) + F.lit(CLOCK_TOLERANCE)
    greatest = F.unix_micros(F.max(F.when(F.col(event_time) <= latest, F.col(event_time))))
    rows = frame.groupBy(source.alias("source")).agg(greatest.alias("micros")).collect()
    return [(row["source"], None if row["micros"] is None else _instant(row["micros"])) for row in rows]


def is_late(time: Column, watermark: datetime | None) -> Column:
    """Build the condition that a row is behind the watermark; without a watermark no row is."""
    from pyspark.sql import functions as F

    return F.lit(False) if watermark is None else F.coalesce(time < F.lit(watermark), F.lit(False))


def _instant(micros: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=micros)


def _later(time: datetime | None, other: datetime | None) -> datetime | None:
    return max(time, other) if time and other else time or other
