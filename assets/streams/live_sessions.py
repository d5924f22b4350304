"""The stream that finds the sessions of visitors (Stateful Sessionizer), from the visit events of the landing zone.

Spark keeps the page views of open sessions in its state; a batch is the sessions it let go of. After the beginning of a
new checkpoint all input is read again: a session that has page views of a published one is not published beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from assets.silver import sessions
from assets.silver.arrival_hours import hour_of
from assets.stream_inputs import VISIT_FILES
from assets.streams import live_lines
from blogdata.contract.partitions import Grain, between
from blogdata.landing.streamed_files import SCHEMA
from blogdata.patterns.data_value import stateful_sessionizer
from blogdata.patterns.data_value.incremental_sessionizer import ENDED, STARTED
from blogdata.patterns.data_value.stateful_sessionizer import CONFLICTS, LINES
from blogdata.patterns.error_management.checkpointer import next_turn
from blogdata.patterns.error_management.windowed_deduplicator import Verdict
from blogdata.stream.stream import MicroBatch, Stream
from blogdata.table import kept_rows
from quality.contracts.live import SESSIONS_LIVE

SPEC = sessions.SPEC
ALLOWED = timedelta(hours=1)
"""Page views may come up to an hour late."""
_PAYLOAD = "payload"
_NO_HOUR = "9999-12-31T00"
"""Of a batch without sessions: nothing is published so late, so nothing is read."""
_CONTENT = ("session_id", STARTED, ENDED, "pages", "first_pages", "exit_page", "keep_private")


def windows(lines: Sequence[DataFrame]) -> DataFrame:
    views = sessions.page_views(live_lines.events(lines[0]), F.xxhash64("raw").alias(_PAYLOAD))
    return stateful_sessionizer.windows(views, SPEC, late=ALLOWED)


def take_in(batch: MicroBatch) -> None:
    """Publish the sessions that the state let go of, each once, and count the page views that came too late."""
    turn = next_turn(batch.place.lake, SESSIONS_LIVE.dataset)
    # Computed exactly once: a batch that is not, or only in part, has no state for the next one.
    with kept_rows.computed(batch.lines) as over:
        last = F.max(F.array_max(f"rows.{SPEC.time}")) + F.lit(SPEC.inactivity)
        (range_,) = over.agg(hour_of(F.min(STARTED)).alias("first"), hour_of(last).alias("last")).collect()
        since = range_["first"] or _NO_HOUR
        hours = between(since, range_["last"] or since, Grain.HOUR)
        ended = stateful_sessionizer.sessions(over, SPEC, payload=_PAYLOAD, partitions=hours)
        # Two sessions of a visitor never overlap: older ones are of no matter.
        published = live_lines.published(batch, SESSIONS_LIVE).where(F.col("event_hour") >= since)
        with kept_rows.computed(judged(ended, published)) as verdicts:
            counts = [F.sum(name).alias(name) for name in (LINES, "pages", CONFLICTS)]
            counted = verdicts.groupBy("event_hour", "verdict").agg(*counts).collect()
            late = live_lines.late(
                batch, ((live_lines.VISITS, live_lines.events, SPEC.time, stateful_sessionizer.gap(SPEC)),)
            )
            accounts = live_lines.accounts(_page_views(counted), late)
            live_lines.publish(batch, verdicts, SESSIONS_LIVE, accounts, turn=turn)


def judged(rows: DataFrame, published: DataFrame) -> DataFrame:
    """Add the verdict `duplicate` of a session with the same content, or `conflict`: two of a visitor never overlap."""
    sessions = rows.select("user_id", *_CONTENT, F.xxhash64(*_CONTENT).alias("_content"))
    known = published.select(
        "user_id", F.col(STARTED).alias("_since"), F.col(ENDED).alias("_until"), F.xxhash64(*_CONTENT).alias("_known")
    )
    overlapping = (
        sessions.join(known, "user_id")
        .where((F.col(STARTED) <= F.col("_until")) & (F.col(ENDED) >= F.col("_since")))
        .groupBy("session_id")
        .agg(F.max(F.col("_known") == F.col("_content")).alias("_same"))
    )
    verdict = (
        F.when(F.col("_same").isNull(), Verdict.FIRST.value)
        .when(F.col("_same"), Verdict.DUPLICATE.value)
        .otherwise(Verdict.CONFLICT.value)
    )
    return rows.join(overlapping, ["session_id"], "left").select(*rows.columns, verdict.alias("verdict"))


def _page_views(counted: Iterable[Sequence[Any]]) -> Iterator[tuple[str, str, int]]:
    """Yield hour, verdict and number of the page views of sessions."""
    for hour, verdict, lines, pages, conflicts in counted:
        if verdict == Verdict.FIRST.value:
            yield hour, verdict, pages
            yield hour, Verdict.DUPLICATE.value, lines - pages - conflicts
            yield hour, Verdict.CONFLICT.value, conflicts
        else:
            yield hour, verdict, lines


STREAM = Stream(
    name="sessions",
    sources=(VISIT_FILES,),
    readers=(live_lines.VISITS,),
    schema=SCHEMA,
    key=("user_id", SPEC.time, *SPEC.ties),
    watermark=f"max less {ALLOWED}, session windows over after {SPEC.inactivity}",
    contracts=(SESSIONS_LIVE,),
    process=take_in,
    query=windows,
)
