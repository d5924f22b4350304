"""The stream that finds the sessions of visitors (Stateful Sessionizer), from the visit events of the landing zone.

Spark keeps the page views of open sessions in its state; a batch is the sessions it let go of. After the beginning of a
new checkpoint all input is read again: a session that has page views of a published one is not published beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import timedelta

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from assets.transforms import live_lines, session_rules
from assets.transforms.visit_times import hour_of
from blogdata.lake.commit import Account
from blogdata.orchestration.stream import MicroBatch, Stream
from blogdata.patterns.data_value import stateful_sessionizer
from blogdata.patterns.data_value.incremental_sessionizer import ENDED, STARTED
from blogdata.patterns.data_value.stateful_sessionizer import CONFIGURATION, CONFLICTS, DUPLICATES, LiveSessions
from blogdata.patterns.error_management.checkpointer import next_turn
from blogdata.patterns.error_management.streamed_files import SCHEMA
from blogdata.patterns.error_management.windowed_deduplicator import Verdict
from blogdata.publish import kept_rows
from quality.contracts import streams
from quality.contracts.live import LATE
from quality.contracts.live_sessions import SESSIONS_LIVE, WRITTEN
from quality.contracts.sessions import SESSIONS

SPEC = LiveSessions(session=session_rules.SPEC, late=timedelta(hours=1), payload="payload")
"""Page views may come up to an hour late."""
_CONTENT = ("session_id", STARTED, ENDED, "pages", "first_pages", "exit_page", "keep_private")


def found(lines: Sequence[DataFrame]) -> DataFrame:
    """Find the sessions of the lines of visits.

    Returns:
        Rows of silver.sessions that are completed, with the numbers of lines that were received again.
    """
    views = session_rules.page_views(live_lines.events(lines[0]), F.xxhash64("raw").alias(SPEC.payload))
    columns = [column.name for column in SESSIONS.columns]
    return stateful_sessionizer.sessionize(views, SPEC).select(*columns, DUPLICATES, CONFLICTS)


def take_in(batch: MicroBatch) -> None:
    """Publish the sessions that the state let go of, each once, and count the page views that came too late.

    Raises:
        PlatformError: As raised by `publish`.
    """
    turn = next_turn(batch.place.lake, SESSIONS_LIVE.dataset)
    # Computed exactly once: a batch that is not, or only in part, has no state for the next one.
    with kept_rows.computed(batch.lines) as rows, kept_rows.computed(judged(rows, _published(batch, rows))) as verdicts:
        lines = F.sum(F.col("pages") + F.col(DUPLICATES) + F.col(CONFLICTS)).alias("lines")
        again = [F.sum(name).alias(name) for name in (DUPLICATES, CONFLICTS)]
        counted = verdicts.groupBy("event_hour", "verdict").agg(lines, *again).collect()
        accounts = _accounts(counted, live_lines.late(batch, ((live_lines.events, "event_time"),)))
        live_lines.publish(batch, verdicts, SESSIONS_LIVE, accounts, turn=turn)


def judged(rows: DataFrame, published: DataFrame) -> DataFrame:
    """Hold the sessions of a batch against those published: two sessions of a visitor never overlap.

    Args:
        rows: Rows of :func:`found`.

    Returns:
        The rows, with verdict STRING: `duplicate` of a session with the same content, `conflict` with another one.
    """
    mine = rows.select("user_id", *_CONTENT, F.xxhash64(*_CONTENT).alias("_content"))
    known = published.select(
        "user_id", F.col(STARTED).alias("_since"), F.col(ENDED).alias("_until"), F.xxhash64(*_CONTENT).alias("_known")
    )
    overlapping = (
        mine.join(known, "user_id")
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


def _published(batch: MicroBatch, rows: DataFrame) -> DataFrame:
    """Read the published sessions that were not over before the first one of the batch began."""
    since = rows.agg(hour_of(F.min(STARTED)).alias("hour")).collect()[0]["hour"]
    # Without a session in the batch no hour is late enough: null is not true.
    return live_lines.published(batch, SESSIONS_LIVE).where(F.col("event_hour") >= F.lit(since))


def _accounts(counted: Iterable[Row], late: Counter[str]) -> dict[str, Account]:
    lines, reasons = Counter(late), {hour: Counter({LATE: rows}) for hour, rows in late.items()}
    for row in counted:
        mine = reasons.setdefault(row["event_hour"], Counter())
        lines[row["event_hour"]] += row["lines"]
        if row["verdict"] == Verdict.FIRST.value:
            mine.update({Verdict.DUPLICATE.value: row[DUPLICATES], Verdict.CONFLICT.value: row[CONFLICTS]})
        else:
            mine[row["verdict"]] += row["lines"]
    names = (Verdict.DUPLICATE.value, Verdict.CONFLICT.value, LATE)
    return {
        hour: Account(rows_in=lines[hour], reasons={name: mine[name] for name in names})
        for hour, mine in sorted(reasons.items())
    }


STREAM = Stream(
    name=WRITTEN.stream,
    sources=(streams.VISITS,),
    schema=SCHEMA,
    key=("user_id", SPEC.session.time, *SPEC.session.ties),
    watermark=f"max less {SPEC.late}, sessions over after {SPEC.session.inactivity}",
    contracts=(SESSIONS_LIVE,),
    process=take_in,
    query=found,
    configuration=CONFIGURATION,
)
