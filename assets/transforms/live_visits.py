"""Publishes a micro-batch of visits as judged lines, deduplicated events, and events set aside (late or repeated).

Every part can be retried for the same batch, after a failure at any point: each table appends a batch once, and both
the figures and the time of ingestion come from the commits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone

import pyarrow.dataset as ds
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from assets.transforms import visit_events
from assets.transforms.live_batches import CORRECTIONS, Batch, LinesFirst, lines_of, newest
from blogdata.lake.commit import Account, Commit
from blogdata.orchestration.stream import MicroBatch, Stream
from blogdata.patterns.error_management import late_data_detector, windowed_deduplicator
from blogdata.patterns.error_management.late_data_detector import StreamProgress
from blogdata.patterns.error_management.streamed_files import SCHEMA
from blogdata.patterns.error_management.windowed_deduplicator import Verdict
from blogdata.patterns.ingestion.landed_lines import is_replay
from blogdata.publish.partitions import Grain, key_of
from quality.contracts import streamed_by, streams
from quality.contracts.live import BRONZE, LATE, SET_ASIDE, VISITS, WRITTEN
from quality.contracts.visits import WATERMARK

IDENTITY = ("visit_id", "event_time", "page")
# A correction lies in the hour of the line it corrects, but arrived later: `_replay` sorts it last in its hour.
ARRIVAL_ORDER = ("arrival_hour", "_replay", "source_file", "source_offset")
_JSON = frozenset({visit_events.JSON})
_SOURCE = "landing"
"""Source name for the watermark: the landing zone is one source; a topic would be one per partition."""


def _judge(batch: MicroBatch, lines: DataFrame, names: Collection[str]) -> DataFrame:
    return visit_events.judge(lines.withColumn("format", F.lit(visit_events.JSON)), formats=_JSON).drop("crawler")


def _refine(batch: MicroBatch, this: Batch, landed: Commit) -> None:
    """Publish the events of a batch that are set aside, then those that are the first of their identity."""
    before = newest(batch, VISITS.dataset, not_of=this)
    progress = StreamProgress.of_json(before.info["appended"]["notes"]["progress"]) if before else StreamProgress()
    arrived = _usable(landed)
    events = visit_events.parse(lines_of(batch, this, landed), _JSON).withColumns(
        {"batch": F.lit(this.label), "_replay": is_replay()}
    )
    # A correction arrives whenever a person makes it: it is never late, and is compared with its hour, even if closed.
    late = late_data_detector.is_late(F.col("event_time"), progress.watermark) & ~F.col("_replay")
    corrected = arrived if landed.info["appended"]["notes"].get(CORRECTIONS, 0) else ()
    published, held_rows = _to_hold_against(batch, progress.watermark, corrected)
    held = windowed_deduplicator.first_come(
        events.where(~late), published, key=IDENTITY, order=ARRIVAL_ORDER, payload=F.xxhash64("raw")
    )
    judged = held.unionByName(events.where(late).withColumn("verdict", F.lit(LATE)))
    first = F.col("verdict") == Verdict.FIRST.value
    inputs = {BRONZE.dataset: landed.version}
    # Four actions read this small batch: compute it once.
    with _kept(judged):
        counted = {row["event_hour"]: int(row["count"]) for row in _by_hour(judged.where(first))}
        # The account uses the rows that stay, counted independently, so that it does not prove itself.
        aside_commit = batch.append(
            judged.where(~first).withColumns({"reason": F.col("verdict"), "watermark": _literal(progress.watermark)}),
            SET_ASIDE,
            this.once(),
            accounts={
                hour: Account(rows_in=rows, reasons={"first": counted.get(hour, 0)}) for hour, rows in arrived.items()
            },
            inputs=inputs,
        )
        readings = late_data_detector.readings_of(
            judged,
            source=F.lit(_SOURCE),
            taken_in=_taken_in(landed),
            partition="arrival_hour",
            event_time="event_time",
        )
        after = progress.advance(readings, WATERMARK.allowed, WATERMARK.combined)
        batch.append(
            judged.where(first),
            VISITS,
            this.once(progress=after.as_json(), state_rows=held_rows),
            accounts={
                hour: Account(rows_in=rows, reasons=_reasons(aside_commit, hour)) for hour, rows in arrived.items()
            },
            inputs={**inputs, SET_ASIDE.dataset: aside_commit.version},
        )


@contextmanager
def _kept(frame: DataFrame) -> Iterator[None]:
    frame.persist()
    try:
        yield
    finally:
        frame.unpersist()


def _by_hour(rows: DataFrame) -> Sequence[Row]:
    return rows.groupBy("event_hour").count().collect()


def _to_hold_against(
    batch: MicroBatch, watermark: datetime | None, corrected: Collection[str]
) -> tuple[DataFrame, int]:
    """Read the published events that may be repeated: those not behind the watermark, and those of corrected hours.

    The number counts only those not behind the watermark: they are the state that the stream has to keep.
    """
    table = batch.place.lake.caught_up(VISITS.dataset)
    if table is None:
        empty = ", ".join(f"`{column.name}` {column.type}" for column in VISITS.columns)
        return batch.spark.createDataFrame([], empty), 0
    rows = batch.place.lake.read(batch.spark, VISITS.dataset, table.version())
    held = table.to_pyarrow_dataset()
    if watermark is None:
        return rows, int(held.count_rows())
    hour = key_of(watermark, Grain.HOUR)
    still_open = (F.col("event_hour") >= hour) & (F.col("event_time") >= F.lit(watermark))
    wanted = rows.where(still_open | F.col("event_hour").isin(*corrected) if corrected else still_open)
    counted = (ds.field("event_hour") >= hour) & (ds.field("event_time") >= ds.scalar(watermark))
    return wanted, int(held.count_rows(filter=counted))


def _usable(landed: Commit) -> dict[str, int]:
    """Count the usable events of a batch by event hour, from the commit of its lines."""
    rows: dict[str, int] = {}
    for entry in landed.entries.values():
        for (hour, filtered_by, _), count in entry.breakdowns["event_hours"].items():
            if hour is not None and filtered_by is None:
                rows[hour] = rows.get(hour, 0) + count
    return rows


def _reasons(aside_commit: Commit, hour: str) -> Mapping[str, int]:
    return {str(reason): rows for (reason,), rows in aside_commit.entries[hour].breakdowns["reasons"].items()}


def _taken_in(landed: Commit) -> datetime:
    return datetime.fromtimestamp(landed.info["started_at"], tz=timezone.utc)


def _literal(time: datetime | None) -> Column:
    return F.lit(time).cast("timestamp")


STREAM = Stream(
    name=WRITTEN.stream,
    source=streams.VISITS,
    schema=SCHEMA,
    key=IDENTITY,
    watermark=f"{late_data_detector.described(WATERMARK.combined)} less {WATERMARK.allowed}",
    datasets=tuple(streamed_by(WRITTEN)),
    without_late=(VISITS.dataset,),
    process=LinesFirst(lines=BRONZE, refined=VISITS, judge=_judge, refine=_refine).take_in,
)
"""The stream of visits, from the landing zone; a broker would be another source of the same stream."""
