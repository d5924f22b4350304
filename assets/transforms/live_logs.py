"""The stream of access logs: their lines, judged and filtered as in the batch, and the page views among them.

A line is judged together with all lines of its hour that have landed, as clients may be crawlers by what they do in an
hour (:mod:`assets.transforms.access_logs`). What a client does later in the hour changes no published row: the batch
filters its page views as `crawler`, and here they stay. All other counts are those of the batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from datetime import datetime, timezone
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from assets.transforms import access_logs, live_lines, visit_events
from assets.transforms.live_batches import Batch, LinesFirst, lines_of, newest
from blogdata.errors import PlatformError
from blogdata.lake.commit import Account, Commit
from blogdata.orchestration.pending_logs import split_pending
from blogdata.orchestration.stream import MicroBatch, Place, Stream
from blogdata.patterns.error_management import late_data_detector
from blogdata.patterns.error_management.filter_interceptor import REASON
from blogdata.patterns.error_management.late_data_detector import Combined, StreamProgress
from blogdata.patterns.error_management.streamed_files import SCHEMA, by_hour
from blogdata.patterns.ingestion import landed_lines
from blogdata.patterns.ingestion.erased_lines import is_kept
from blogdata.patterns.ingestion.landed_lines import is_replay
from blogdata.patterns.ingestion.log_splitter import PART
from blogdata.publish import kept_rows
from blogdata.services.config import LogSettings
from quality.contracts import streamed_by, streams
from quality.contracts.live_logs import LINES, SOURCE, VIEWS, WRITTEN
from quality.contracts.visits import WATERMARK


def split(place: Place) -> PlatformError | None:
    """Split the logs that have landed into the hours that the stream reads.

    Returns:
        Why a log could not be split: it waits, and the others are split.
    """
    settings = place.settings()
    if settings is None:
        return None
    try:
        faults = [one.fault for one in split_pending(settings, place.landing) if one.fault is not None]
    except PlatformError as error:
        return error
    return faults[0] if faults else None


def stream(combined: Combined = WATERMARK.combined) -> Stream:
    """Build the stream.

    Args:
        combined: How the progress of the logs is combined. They are told apart only if their combination is declared.
    """
    refine = partial(_refine, combined=combined)
    return Stream(
        name=WRITTEN.stream,
        source=streams.LOGS,
        schema=SCHEMA,
        key=VIEWS.key,
        watermark=f"{late_data_detector.described(combined)} less {WATERMARK.allowed}",
        datasets=tuple(streamed_by(WRITTEN)),
        prepare=split,
        process=LinesFirst(lines=LINES, refined=VIEWS, judge=_judge, refine=refine).take_in,
    )


def _judge(batch: MicroBatch, lines: DataFrame, names: Collection[str]) -> DataFrame:
    """Judge all lines of the batch's hours, read once more, and keep those of the named files."""
    place = batch.place
    there = batch.source.in_hours(place.landing, by_hour(batch.files))
    hours = landed_lines.read(batch.spark, place.landing, there, place.bounds).where(is_kept())
    known = live_lines.with_hour(hours).withColumn("format", F.lit(visit_events.LOG))
    judged = visit_events.judge(known, visit_events.LOGS, _logs(batch))
    return judged.where(F.col("source_file").isin(*sorted(names)))


def _refine(batch: MicroBatch, this: Batch, landed: Commit, *, combined: Combined) -> None:
    """Publish the page views of a batch, those behind the watermark marked, and count the other lines by filter."""
    before = newest(batch, VIEWS.dataset, not_of=this)
    progress = StreamProgress.of_json(before.info["appended"]["notes"]["progress"]) if before else StreamProgress()
    usable = lines_of(batch, this, landed).where((F.size("reasons") == 0) & F.col("filtered_by").isNull())
    late = late_data_detector.is_late(F.col("event_time"), progress.watermark) & ~is_replay()
    views = access_logs.parsed(usable, None, _logs(batch)).withColumns(
        {"late": late, "watermark": F.lit(progress.watermark).cast("timestamp")}
    )
    with kept_rows.computed(views.select(*(column.name for column in VIEWS.columns))) as rows:
        # A correction is of one line: as a partition of its own it would hold the watermark of all for ever.
        readings = late_data_detector.readings_of(
            rows.where(~is_replay()),
            source=_source(combined),
            taken_in=datetime.fromtimestamp(landed.info["started_at"], tz=timezone.utc),
            partition="arrival_hour",
            event_time="event_time",
        )
        after = progress.advance(readings, WATERMARK.allowed, combined)
        batch.append(
            rows,
            VIEWS,
            this.once(progress=after.as_json()),
            accounts=_accounts(landed),
            inputs={LINES.dataset: landed.version},
        )


def _source(combined: Combined) -> Column:
    if SOURCE not in combined.partitions:
        return F.lit(SOURCE)
    log, file = F.regexp_extract("source_file", PART, 1), F.element_at(F.split("source_file", "/"), -1)
    return F.concat(F.lit(f"{SOURCE}/"), F.when(log != "", log).otherwise(file))


def _accounts(landed: Commit) -> dict[str, Account]:
    """Account for the lines of a batch that are not rejected, by the hour of their time."""
    found: dict[str, Counter[str | None]] = {}
    for entry in landed.entries.values():
        for (hour, filtered_by, _), rows in entry.breakdowns["event_hours"].items():
            if hour is not None:
                found.setdefault(hour, Counter())[filtered_by] += rows
    return {
        hour: Account(
            rows_in=rows.total(), reasons={f"{REASON}{name}": count for name, count in rows.items() if name is not None}
        )
        for hour, rows in sorted(found.items())
    }


def _logs(batch: MicroBatch) -> LogSettings:
    settings = batch.place.settings()
    return LogSettings() if settings is None else settings.logs


STREAM = stream()
"""The stream of access logs, from the hours into which they are split."""
