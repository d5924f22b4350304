"""Late Data Detector: how far event time has come, and which rows arrive behind it.

Problem: a closed hour keeps receiving rows; a job must find them to correct what it has already published.
How it works: every source partition reports the greatest event time it has seen. The watermark of a partition is the
greatest event time of all partitions *before* it, minus the allowed lateness; it never goes back. With several sources,
MIN follows the slowest of them and MAX the fastest, as the contract declares. A row behind the watermark of the
partition it arrives in is late: it is reported (:func:`late`), never dropped here. In a stream the partitions are its
micro-batches, :class:`StreamProgress` is stored with each of them, and :func:`is_late` finds the rows that Structured
Streaming would drop silently.
The trap: one clock that runs a century ahead makes every later row late. A time that lies after the end of its own
partition plus the tolerance is therefore ignored and reported; a stream also ignores event times after the moment of
ingestion, as the time of a partition may be wrong itself. And MIN: one source that falls silent holds the watermark
back forever.
When not to use it: where rows are ordered by arrival alone, or where lateness changes nothing downstream.
Source: "Data Engineering Design Patterns", ch. 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from enum import Enum
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from blogdata.contract.partitions import Grain, start_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

CLOCK_TOLERANCE = timedelta(minutes=5)
"""How far after the end of its partition an event time may lie: the clocks of producers are not exact."""


class Strategy(str, Enum):
    MIN = "min"
    MAX = "max"


@dataclass(frozen=True, kw_only=True)
class PartitionReading:
    """Greatest event time seen in one partition of a source; None if it has no row."""

    key: str
    max_event_time: datetime | None
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Watermarks by partition (None: nothing is late there), and the implausible readings that were ignored."""

    watermarks: Mapping[str, datetime | None]
    ignored: tuple[PartitionReading, ...]


@dataclass(frozen=True, kw_only=True)
class StreamProgress:
    """Event-time progress of a stream, stored with each batch so that a restart resumes from the last one."""

    seen: Mapping[str, datetime | None] = field(default_factory=dict)
    """Greatest event time of each source; None for a known source without an event time yet."""
    watermark: datetime | None = None
    """Watermark that the next batch is judged by; None while nothing can be late."""

    def advance(
        self, readings: Iterable[tuple[str, datetime | None]], allowed: timedelta, strategy: Strategy = Strategy.MAX
    ) -> StreamProgress:
        """Compute the progress after a batch, from the greatest believable event times of its sources."""
        seen = dict(self.seen)
        for source, time in readings:
            seen[source] = _later(seen.get(source), time)
        reached = _combined(tuple(seen.values()), strategy)
        return StreamProgress(seen=seen, watermark=_later(self.watermark, reached and reached - allowed))

    def as_json(self) -> dict[str, Any]:
        kept: dict[str, Any] = _PROGRESS.dump_python(self, mode="json")
        return kept

    @classmethod
    def of_json(cls, kept: Mapping[str, Any]) -> StreamProgress:
        return _PROGRESS.validate_python(kept)


_PROGRESS = TypeAdapter(StreamProgress)


def progress(
    readings: Sequence[PartitionReading],
    allowed: timedelta,
    *,
    strategy: Strategy = Strategy.MAX,
    keys: Sequence[str] = (),
) -> Progress:
    """Compute the watermark of each partition (an hour) of the readings and of `keys` from the partitions before it."""
    ignored = tuple(one for one in readings if _implausible(one))
    by_key: dict[str, list[PartitionReading]] = {key: [] for key in keys}
    for one in readings:
        by_key.setdefault(one.key, []).append(one)
    watermarks: dict[str, datetime | None] = {}
    state = StreamProgress(seen={one.source: None for one in readings})
    for key in sorted(by_key):
        watermarks[key] = state.watermark
        believed = [(one.source, one.max_event_time) for one in by_key[key] if one not in ignored]
        state = state.advance(believed, allowed, strategy)
    return Progress(watermarks=watermarks, ignored=ignored)


def late(frame: DataFrame, marks: Mapping[str, datetime | None], *, partition: str, event_time: str) -> DataFrame:
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


def believable(time: Column, partition: Column, *, taken_in: datetime) -> Column:
    """Build the condition that a row's event time may move the watermark."""
    from pyspark.sql import functions as F

    start = F.unix_micros(F.concat(partition, F.lit(":00:00Z")).cast("timestamp"))
    latest = F.least(start + F.lit(_micros(Grain.HOUR.length)), F.unix_micros(F.lit(taken_in)))
    return F.unix_micros(time) <= latest + F.lit(_micros(CLOCK_TOLERANCE))


def readings_of(
    frame: DataFrame, *, source: Column, taken_in: datetime, partition: str, event_time: str
) -> list[tuple[str, datetime | None]]:
    """Compute the greatest believable event time (None: there is none) of each source of a batch (a Spark action)."""
    from pyspark.sql import functions as F

    time = F.col(event_time)
    greatest = F.max(F.when(believable(time, F.col(partition), taken_in=taken_in), F.unix_micros(time)))
    found = frame.groupBy(source.alias("source")).agg(greatest.alias("micros")).collect()
    return [(row["source"], None if row["micros"] is None else _instant(row["micros"])) for row in found]


def is_late(time: Column, watermark: datetime | None) -> Column:
    """Build the condition that a row is behind the watermark; without a watermark no row is."""
    from pyspark.sql import functions as F

    return F.lit(False) if watermark is None else F.coalesce(time < F.lit(watermark), F.lit(False))


def _implausible(one: PartitionReading) -> bool:
    end = start_of(one.key, Grain.HOUR) + Grain.HOUR.length
    return one.max_event_time is not None and one.max_event_time > end + CLOCK_TOLERANCE


def _micros(length: timedelta) -> int:
    return length // timedelta(microseconds=1)


def _instant(micros: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=micros)


def _combined(seen: Sequence[datetime | None], strategy: Strategy) -> datetime | None:
    times = [time for time in seen if time is not None]
    if not times or (strategy is Strategy.MIN and len(times) < len(seen)):
        return None
    return min(times) if strategy is Strategy.MIN else max(times)


def _later(one: datetime | None, other: datetime | None) -> datetime | None:
    if one is None or other is None:
        return one or other
    return max(one, other)
