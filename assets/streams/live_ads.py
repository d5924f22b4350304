"""The stream that joins visit events with displayed ads (Dynamic Joiner), both from the landing zone.

Spark keeps the rows that wait for a partner in its state; a batch is what it lets go of: pairs, and rows whose time is
over. Rows of lines that were received twice come twice, and are held against what is published. After the beginning of
a new checkpoint all input is read again, and a partner that came too late the first time may come in time: what was
published alone is not published again in a pair. Which rows came too late is found by the watermark in the checkpoint:
Spark drops them without a word.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from assets.silver import ads
from assets.silver.arrival_hours import hour_of
from assets.stream_inputs import AD_FILES, VISIT_FILES
from assets.streams import live_lines
from blogdata.landing.streamed_files import SCHEMA
from blogdata.patterns.error_management import windowed_deduplicator
from blogdata.patterns.error_management.checkpointer import next_turn
from blogdata.patterns.error_management.windowed_deduplicator import Verdict
from blogdata.stream.stream import MicroBatch, Stream
from blogdata.table import kept_rows
from quality.contracts.live import WITH_ADS_LIVE

_EVENT_AT, _DISPLAY_AT = ("event_file", "event_offset"), ("display_file", "display_offset")
_EVENT = ("visit_id", "event_time", "page")
_DISPLAY = ("visit_id", "ad_id", "display_time")
_NOW = timedelta()
_PAYLOAD = ("user_id", "keep_private", "campaign", "display_page")


def joined(lines: Sequence[DataFrame]) -> DataFrame:
    """Join the lines of both sources to rows of silver.visits_with_ads, with the places of their lines."""
    return ads.with_ads(_events(lines[0]), _displays(lines[1]), (*_EVENT_AT, *_DISPLAY_AT))


def take_in(batch: MicroBatch) -> None:
    """Publish the rows that the join let go of, each once, and count those that came too late for it."""
    turn = next_turn(batch.place.lake, WITH_ADS_LIVE.dataset)
    # Computed exactly once: a batch that is not, or only in part, has no state for the next one.
    with (
        kept_rows.computed(batch.lines) as rows,
        kept_rows.computed(judged(rows, _published(batch, _hours(rows)))) as verdicts,
    ):
        by_verdict = verdicts.groupBy("event_hour", "verdict").count().collect()
        sides = (
            (live_lines.VISITS, _events, "event_time", _NOW),
            (live_lines.ADS, _displays, "display_time", _NOW),
        )
        late = live_lines.late(batch, sides)
        accounts = live_lines.accounts(by_verdict, late)
        live_lines.publish(batch, verdicts, WITH_ADS_LIVE, accounts, turn=turn)


def judged(rows: DataFrame, published: DataFrame) -> DataFrame:
    """Add the verdict to the rows of a batch: an event, a display alone, and each pair, comes once.

    Of the lines of one event that name different ads the first one counts. A line that names none is not among them.
    What was published alone is in no pair, and what was published in a pair is not alone: such a row is a conflict.
    """
    events, known = (frame.where(F.col("event_time").isNotNull()) for frame in (rows, published))
    first_ads = windowed_deduplicator.first_come(
        events.select(*_EVENT, "ad_id", *_EVENT_AT).distinct(),
        known.select(*_EVENT, "ad_id").distinct(),
        key=_EVENT,
        order=_EVENT_AT,
        payload=F.col("ad_id"),
    )
    other_ad = first_ads.where(F.col("verdict") == Verdict.CONFLICT.value).select(*_EVENT_AT)
    once = windowed_deduplicator.first_come(
        rows.join(other_ad, [*_EVENT_AT], "left_anti"),
        published,
        key=WITH_ADS_LIVE.key,
        order=(*_EVENT_AT, *_DISPLAY_AT),
        payload=F.xxhash64(*_PAYLOAD),
    )
    conflicts = rows.join(other_ad, [*_EVENT_AT], "left_semi").select(*rows.columns)
    held = _held_against(_held_against(once, published, _EVENT, "display_time"), published, _DISPLAY, "event_time")
    return held.select(*rows.columns, "verdict").unionByName(
        conflicts.withColumn("verdict", F.lit(Verdict.CONFLICT.value))
    )


def _held_against(rows: DataFrame, published: DataFrame, side: Sequence[str], partner: str) -> DataFrame:
    """Make the rows conflicts whose event (or display) was published alone and now has a partner, or reversely.

    `side` identifies the event (or the display); `partner` is the time of the other side, null if a row has none.
    """
    known = published.groupBy(*side).agg(F.min(F.col(partner).isNull()).alias("_alone"))
    # Without the side itself, or a published row of it, this is null: not true.
    other = F.col("_alone") != F.col(partner).isNull()
    verdict = F.when(other & (F.col("verdict") == Verdict.FIRST.value), Verdict.CONFLICT.value)
    return rows.join(known, [*side], "left").select(
        *rows.drop("verdict").columns, F.coalesce(verdict, F.col("verdict")).alias("verdict")
    )


def _hours(rows: DataFrame) -> list[str]:
    """List the event hours in which rows of the same events and displays may lie."""
    last = F.col("display_time") + F.expr(f"INTERVAL {int(ads.JOIN.bound.total_seconds())} SECONDS")
    times = F.array("event_time", "display_time", last)
    hours = rows.select(F.explode(F.transform(times, hour_of)).alias("hour")).distinct().collect()
    return [row["hour"] for row in hours if row["hour"] is not None]


def _events(lines: DataFrame) -> DataFrame:
    return ads.naming_an_ad(_placed(live_lines.events(lines), _EVENT_AT), _EVENT_AT)


def _displays(lines: DataFrame) -> DataFrame:
    return ads.displays_of(_placed(live_lines.displays(lines), _DISPLAY_AT), _DISPLAY_AT)


def _placed(rows: DataFrame, names: tuple[str, str]) -> DataFrame:
    return rows.withColumnsRenamed(dict(zip(("source_file", "source_offset"), names, strict=True)))


def _published(batch: MicroBatch, hours: Sequence[str]) -> DataFrame:
    return live_lines.published(batch, WITH_ADS_LIVE).where(F.col("event_hour").isin(*hours))


STREAM = Stream(
    name="ads",
    sources=(VISIT_FILES, AD_FILES),
    readers=(live_lines.VISITS, live_lines.ADS),
    schema=SCHEMA,
    key=WITH_ADS_LIVE.key,
    watermark=f"min of both sides less {ads.JOIN.late}, joined within {ads.JOIN.bound}",
    contracts=(WITH_ADS_LIVE,),
    process=take_in,
    query=joined,
)
