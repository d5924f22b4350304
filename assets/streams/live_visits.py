"""Publishes a micro-batch of visits: its lines, judged, and the events among them, each once.

A new checkpoint reads all input again: lines of files that are published are passed over, and events are held against
those of their hours. Both tables are computed from the landed lines, so either one alone can be made again.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from assets.stream_inputs import VISIT_FILES
from assets.streams import live_lines
from blogdata.contract.publication import Account, Commit
from blogdata.landing.lines import is_replay
from blogdata.landing.streamed_files import SCHEMA, by_hour, figures_by_hour
from blogdata.patterns.error_management import late_data_detector, windowed_deduplicator
from blogdata.patterns.error_management.checkpointer import next_turn
from blogdata.patterns.error_management.late_data_detector import PROGRESS
from blogdata.patterns.error_management.windowed_deduplicator import Verdict
from blogdata.runs.landed_inputs import ERASED
from blogdata.stream.stream import MicroBatch, Stream
from blogdata.table import arrow, kept_rows
from blogdata.table.store import require_whole
from quality.contracts.live import BRONZE, LATE, VISITS
from quality.contracts.visits import WATERMARK

IDENTITY = ("visit_id", "event_time", "page")
# A correction lies in the hour of the line it corrects, but arrived later: `_replay` sorts it last in its hour.
ORDER = ("arrival_hour", "_replay", "source_file", "source_offset")
_SOURCE = "landing"
"""Source name for the watermark: the landing zone is one source; a topic would be one per partition."""


def take_in(batch: MicroBatch) -> None:
    """Publish the lines of a batch, then the events among them that are the first of their identity, and not late."""
    # Read before anything else: events are published only if no others were since.
    turn = next_turn(batch.place.lake, VISITS.dataset)
    with kept_rows.computed(live_lines.received(batch.lines)) as lines:
        landed = _land(batch, lines)
        before = batch.newest(VISITS.dataset)
        notes = before.info["appended"]["notes"] if before else {"progress": {}}
        progress = PROGRESS.validate_python(notes["progress"])
        # Counted before they are parsed and held against others: what gets lost on the way does not add up.
        usable = lines.where((F.size("reasons") == 0) & F.col("filtered_by").isNull())
        counted = {row["event_hour"]: row["count"] for row in usable.groupBy("event_hour").count().collect()}
        events = usable.withColumn("_replay", is_replay())
        published = live_lines.published(batch, VISITS).where(F.col("event_hour").isin(*counted))
        with kept_rows.computed(judged(events, published, progress.watermark)) as verdicts:
            by_verdict = verdicts.groupBy("event_hour", "verdict").count().collect()
            readings = late_data_detector.readings_of(
                verdicts,
                source=F.lit(_SOURCE),
                taken_in=datetime.fromtimestamp(landed.info["started_at"], tz=timezone.utc),
                partition="arrival_hour",
                event_time="event_time",
            )
            accounts = live_lines.accounts(by_verdict, {})
            after = progress.advance(readings, WATERMARK.allowed, WATERMARK.combined)
            batch.append(
                verdicts.where(F.col("verdict") == Verdict.FIRST.value),
                VISITS,
                accounts={
                    hour: replace(accounts.get(hour, Account(rows_in=0, reasons={})), rows_in=rows)
                    for hour, rows in counted.items()
                },
                turn=turn,
                progress=PROGRESS.dump_python(after, mode="json"),
            )


def judged(events: DataFrame, published: DataFrame, watermark: datetime | None) -> DataFrame:
    """Add the verdict: events are held against those published of their hours; new ones behind the watermark are late.

    A correction (`_replay`) arrives whenever a person makes it: it is never late.
    """
    late = late_data_detector.is_late(F.col("event_time"), watermark) & ~F.col("_replay")

    def held(rows: DataFrame) -> DataFrame:
        payload = F.xxhash64("raw")
        return windowed_deduplicator.first_come(rows, published, key=IDENTITY, order=ORDER, payload=payload)

    behind = held(events.where(late)).replace({Verdict.FIRST.value: LATE}, subset=["verdict"])
    return held(events.where(~late)).unionByName(behind)


def _land(batch: MicroBatch, lines: DataFrame) -> Commit:
    """Publish the lines of the batch, except those of files that were published under an earlier checkpoint."""
    turn, earlier = next_turn(batch.place.lake, BRONZE.dataset), batch.newest(BRONZE.dataset)
    if earlier is None:
        # The first batch, or the first one after the table's history was cleaned up.
        renewed = batch.place.lake.caught_up(BRONZE.dataset) is not None
    else:
        once = earlier.info["appended"]
        renewed = once["stream"] != batch.checkpoint.writer or bool(once["notes"]["renewed"])
    known = _taken_in_before(batch) if renewed else frozenset()
    new, old = ([file for file in batch.files if (file.name in known) is is_known] for is_known in (False, True))
    left_out = {
        "taken_in_before": {key: size.lines for key, size in by_hour(old).items()},
        ERASED: {key: size.erased for key, size in by_hour(new).items() if size.erased},
    }
    accounts = {
        key: Account(rows_in=size.lines, reasons={name: rows[key] for name, rows in left_out.items() if key in rows})
        for key, size in by_hour(batch.files).items()
    }
    return batch.append(
        lines.where(~F.col("source_file").isin(*sorted(known))) if known else lines,
        BRONZE,
        accounts=accounts,
        files=figures_by_hour(new),
        turn=turn,
        renewed=renewed,
    )


def _taken_in_before(batch: MicroBatch) -> frozenset[str]:
    """Find the files of the batch that another batch has published, from the table: a checkpoint may be lost."""
    table, hours = batch.place.lake.caught_up(BRONZE.dataset), sorted(by_hour(batch.files))
    if table is None or not hours:
        return frozenset()
    require_whole(table, BRONZE.dataset, f"arrival_hour IN ({', '.join(map(arrow.text, hours))})")
    of_others = ds.field("arrival_hour").isin(pa.array(hours, pa.string())) & (ds.field("batch") != batch.label)
    rows = table.to_pyarrow_dataset().to_table(columns=["source_file"], filter=of_others)
    return frozenset(rows["source_file"].unique().to_pylist()) & {file.name for file in batch.files}


STREAM = Stream(
    name="visits",
    sources=(VISIT_FILES,),
    readers=(live_lines.VISITS,),
    schema=SCHEMA,
    key=IDENTITY,
    watermark=f"{WATERMARK.combined.value} of sources less {WATERMARK.allowed}",
    contracts=(BRONZE, VISITS),
    process=take_in,
)
"""The stream of visits, from the landing zone."""
