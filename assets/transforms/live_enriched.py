"""The stream that joins visit events with the reference data (Static Joiner), a stream with tables.

A table cannot come late by itself, so the join needs no watermark and keeps no state: each batch reads the newest
version of users, devices and places, and joins as of the event. What a user is now, it reads from the table of current
users. The rows tell what was unknown, and stay as they are.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from assets.transforms import enrichment, live_lines
from blogdata.orchestration.stream import MicroBatch, Stream
from blogdata.patterns.data_value import static_joiner
from blogdata.patterns.error_management import windowed_deduplicator
from blogdata.patterns.error_management.streamed_files import SCHEMA
from blogdata.patterns.error_management.windowed_deduplicator import Verdict
from blogdata.patterns.ingestion.landed_lines import is_replay
from blogdata.publish import kept_rows
from quality.contracts import columns, streams
from quality.contracts.enriched import VISITS_ENRICHED
from quality.contracts.live_enriched import ENRICHED_LIVE, USER_NOW, WRITTEN

_REFERENCES = ("users", "devices", "places")
_NOW = "users_current"
_ORDER = ("arrival_hour", "replayed", "source_file", "source_offset")
_CONTENT = [column.name for column in (*columns.VISIT, *columns.CONTEXT) if column.name not in ENRICHED_LIVE.key]
_COLUMNS = [column.name for column in (*VISITS_ENRICHED.columns, USER_NOW)]


def take_in(batch: MicroBatch) -> None:
    """Publish the events of the batch that are the first of their identity, each joined with what is known of it.

    Raises:
        PlatformError: As raised by `publish`.
    """
    events = live_lines.events(batch.lines).withColumn("replayed", is_replay())
    with kept_rows.computed(events) as rows, kept_rows.computed(judged(batch, rows)) as verdicts:
        by_verdict = verdicts.groupBy("event_hour", "verdict").count().collect()
        found = {name: live_lines.newest(batch, f"silver.{name}") for name in (*_REFERENCES, _NOW)}
        first = verdicts.where(F.col("verdict") == Verdict.FIRST.value)
        known = {name: table and table[0] for name, table in found.items()}
        users_now = known.pop(_NOW)
        live_lines.publish(
            batch,
            with_user_of_now(enrichment.enrich(first, **known), users_now).select(*_COLUMNS, "verdict"),
            ENRICHED_LIVE,
            live_lines.accounts(by_verdict),
            inputs={f"silver.{name}": table[1] for name, table in found.items() if table},
        )


def with_user_of_now(events: DataFrame, users: DataFrame | None) -> DataFrame:
    """Add when the user of each event last changed.

    Args:
        users: silver.users_current, or None when no users were ever delivered.
    """
    if users is None:
        return events.withColumn(USER_NOW.name, F.lit(None).cast(USER_NOW.type))
    now = users.select("user_id", F.col("changed_on").alias(USER_NOW.name))
    return static_joiner.join_current(events, now, ("user_id",))


def judged(batch: MicroBatch, events: DataFrame) -> DataFrame:
    """Hold the events of a batch against those published: an event comes once.

    Args:
        events: Its visit events, with replayed BOOLEAN.

    Returns:
        The events, with verdict STRING.
    """
    hours = [row["event_hour"] for row in events.select("event_hour").distinct().collect()]
    published = live_lines.published(batch, ENRICHED_LIVE).where(F.col("event_hour").isin(*hours))
    return windowed_deduplicator.first_come(
        events, published, key=ENRICHED_LIVE.key, order=_ORDER, payload=F.xxhash64(*_CONTENT)
    )


STREAM = Stream(
    name=WRITTEN.stream,
    source=streams.VISITS,
    schema=SCHEMA,
    key=ENRICHED_LIVE.key,
    watermark="none: published events are compared by hour, whenever they come",
    datasets=(ENRICHED_LIVE.dataset,),
    process=take_in,
)
