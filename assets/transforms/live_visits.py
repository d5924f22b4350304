"""Publishes a micro-batch of visits as judged lines, deduplicated events, and events set aside (late or repeated).

Every part can be retried for the same batch, after a failure at any point: each table appends a batch once, and both
the figures and the time of ingestion come from the commits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import islice

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from assets.transforms import visit_events
from blogdata.errors.remedies import Remedy, RunStream
from blogdata.evidence.appended import appended
from blogdata.lake import arrow
from blogdata.lake.checksums import require_whole
from blogdata.lake.commit import Account, Commit
from blogdata.orchestration.landing import ERASED
from blogdata.orchestration.stream import MicroBatch, Stream
from blogdata.patterns.error_management import late_data_detector, windowed_deduplicator
from blogdata.patterns.error_management.checkpointer import next_turn
from blogdata.patterns.error_management.late_data_detector import StreamProgress
from blogdata.patterns.error_management.streamed_files import SCHEMA, by_hour, figures_by_hour, left_out_notes, without
from blogdata.patterns.error_management.windowed_deduplicator import Verdict
from blogdata.patterns.ingestion.landed_lines import is_replay
from blogdata.publish.changes import READ, AppendBatch
from blogdata.publish.partitions import Grain, key_of
from quality.contracts import streamed_by, streams
from quality.contracts.live import BRONZE, LATE, SET_ASIDE, TOLERANCE, VISITS, WRITTEN
from quality.contracts.visits import WATERMARK

IDENTITY = ("visit_id", "event_time", "page")
# A correction lies in the hour of the line it corrects, but arrived later: `_replay` sorts it last in its hour.
ARRIVAL_ORDER = ("arrival_hour", "_replay", "source_file", "source_offset")
DEAD_LETTERS = "dead_letters"
"""Name of the guard against too many dead letters."""
CORRECTIONS = "corrections"
"""Note in a batch's commit: the number of its files that are corrected dead letters."""
_SOURCE = "landing"
"""Source name for the watermark: the landing zone is one source; a topic would be one per partition."""


@dataclass(frozen=True, kw_only=True)
class _Batch:
    """The batch of a commit: that of the running query, or an earlier interrupted one."""

    writer: str
    number: int

    @property
    def label(self) -> str:
        return f"{self.writer}/{self.number}"

    def once(self, *, turn: int | None = None, **notes: object) -> AppendBatch:
        return AppendBatch(stream=self.writer, batch=self.number, turn=turn, notes=notes)

    @classmethod
    def of(cls, commit: Commit) -> _Batch:
        once = commit.info["appended"]
        return cls(writer=once["stream"], number=once["batch"])


def take_in(batch: MicroBatch) -> None:
    """Publish a micro-batch: its lines, then the events that are set aside, then the other events.

    Raises:
        TooManyDeadLetters: Too many of the newest lines are rejected; the batch is published all the same.
        PlatformError: As raised by `publish`.
    """
    this = _Batch(writer=batch.writer, number=batch.number)
    # Read first: lines are committed only if none were committed since, so each batch finds the previous one done.
    turn = next_turn(batch.place.lake, BRONZE.dataset)
    _finish_what_was_cut_off(batch, this)
    _refine(batch, this, _land(batch, this, turn))
    if DEAD_LETTERS in batch.place.accepted:
        return
    measured = (_figures(commit) for commit in appended(batch.place.lake, BRONZE.dataset))
    fault = TOLERANCE.error_for_stream(
        measured,
        dataset=BRONZE.dataset,
        part=f"(the newest {TOLERANCE.over_rows} lines)",
        rows_of=lambda count: _rejected_in(islice(appended(batch.place.lake, BRONZE.dataset), count)),
        then=Remedy("go on until newer lines have taken their place: ", RunStream(accept=DEAD_LETTERS)),
    )
    if fault is not None:
        raise fault


def _land(batch: MicroBatch, this: _Batch, turn: int) -> Commit:
    """Publish the lines of the batch, except those of files already ingested under an earlier checkpoint."""
    earlier = _newest(batch, BRONZE.dataset, not_of=this)
    if earlier is None:
        # The first batch, or the first one after the table's history was cleaned up.
        renewed = batch.place.lake.caught_up(BRONZE.dataset) is not None
    else:
        renewed = _Batch.of(earlier).writer != this.writer or bool(earlier.info["appended"]["notes"]["renewed"])
    sizes = by_hour(batch.files)
    known = _taken_in_before(batch, this, sizes) if renewed else frozenset()
    old = by_hour([file for file in batch.files if file.name in known])
    left_out = {file.name for file in batch.files if file.hour is None}
    hour = F.concat_ws(
        "T",
        F.regexp_extract("source_file", r"date=(\d{4}-\d{2}-\d{2})/", 1),
        F.regexp_extract("source_file", r"hour=(\d{2})/", 1),
    )
    lines = without(batch.lines, known | left_out).withColumns(
        {"arrival_hour": hour, "format": F.lit(visit_events.JSON)}
    )
    judged = visit_events.judge(lines, formats=frozenset({visit_events.JSON}))
    accounts = {}
    new = [file for file in batch.files if file.name not in known]
    erased = {key: size.erased for key, size in by_hour(new).items() if size.erased}
    for key, size in sizes.items():
        before = {"taken_in_before": old[key].lines} if key in old else {}
        gone = {ERASED: erased[key]} if key in erased else {}
        accounts[key] = Account(rows_in=size.lines, reasons={**before, **gone})
    files = figures_by_hour(new)
    corrections = sum(file.is_replay for file in batch.files)
    notes = {
        READ: f"landing.{batch.source.table}",
        "renewed": renewed,
        "files": len(batch.files),
        CORRECTIONS: corrections,
        **left_out_notes(batch.files),
    }
    rows = judged.drop("crawler").withColumn("batch", F.lit(this.label))
    return batch.append(rows, BRONZE, this.once(turn=turn, **notes), accounts=accounts, files=files)


def _refine(batch: MicroBatch, this: _Batch, landed: Commit) -> None:
    """Publish the events of a batch that are set aside, then those that are the first of their identity."""
    before = _newest(batch, VISITS.dataset, not_of=this)
    progress = StreamProgress.of_json(before.info["appended"]["notes"]["progress"]) if before else StreamProgress()
    arrived = _usable(landed)
    # The newest version: that of the batch may be gone, if the stream was cut off and starts again a long time later.
    lines = batch.place.lake.read(batch.spark, BRONZE.dataset).where(
        F.col("arrival_hour").isin(*landed.entries) & (F.col("batch") == this.label)
    )
    events = visit_events.parse(lines, frozenset({visit_events.JSON})).withColumns(
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


def _finish_what_was_cut_off(batch: MicroBatch, this: _Batch) -> None:
    """Refine the lines of the last batch if it was interrupted before that, under a checkpoint no longer resumed."""
    landed = _newest(batch, BRONZE.dataset, not_of=this)
    if landed is None:
        return
    last = _Batch.of(landed)
    refined = _newest(batch, VISITS.dataset, not_of=this)
    if refined is None or _Batch.of(refined) != last:
        _refine(batch, last, landed)


def _newest(batch: MicroBatch, dataset: str, *, not_of: _Batch) -> Commit | None:
    commits: Iterable[Commit] = appended(batch.place.lake, dataset)
    return next((commit for commit in commits if _Batch.of(commit) != not_of), None)


def _taken_in_before(batch: MicroBatch, this: _Batch, hours: Iterable[str]) -> frozenset[str]:
    """Find the files of the batch that another batch has published, from the table: a checkpoint may be lost."""
    table = batch.place.lake.caught_up(BRONZE.dataset)
    if table is None:
        return frozenset()
    require_whole(table, BRONZE.dataset, f"arrival_hour IN ({', '.join(map(arrow.text, sorted(hours)))})")
    of_others = ds.field("arrival_hour").isin(pa.array(sorted(hours), pa.string())) & (ds.field("batch") != this.label)
    rows = table.to_pyarrow_dataset().to_table(columns=["source_file"], filter=of_others)
    return frozenset(rows["source_file"].unique().to_pylist()) & {file.name for file in batch.files}


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


def _figures(landed: Commit) -> tuple[int, int]:
    entries = landed.entries.values()
    return sum(int(entry.measures["dead"]) for entry in entries), sum(entry.rows_out for entry in entries)


def _rejected_in(commits: Iterable[Commit]) -> str:
    """Build the SQL condition on bronze.visits_live that selects the dead letters of some consecutive batches."""
    numbers: dict[str, list[int]] = {}
    for commit in commits:
        this = _Batch.of(commit)
        numbers.setdefault(this.writer, []).append(this.number)
    batches = " OR ".join(
        f"split_part(batch, '/', 1) = '{writer}' AND cast(split_part(batch, '/', 2) AS INT)"
        f" BETWEEN {min(found)} AND {max(found)}"
        for writer, found in numbers.items()
    )
    return f"size(reasons) > 0 AND ({batches})"


def _literal(time: datetime | None) -> Column:
    return F.lit(time).cast("timestamp")


STREAM = Stream(
    name=WRITTEN.stream,
    source=streams.VISITS,
    schema=SCHEMA,
    key=IDENTITY,
    watermark=f"{WATERMARK.combined.sources.value} of sources less {WATERMARK.allowed}",
    datasets=tuple(streamed_by(WRITTEN)),
    without_late=(VISITS.dataset,),
    process=take_in,
)
"""The stream of visits, from the landing zone; a broker would be another source of the same stream."""
