"""Stateful Sessionizer: a stream keeps open sessions in its state, and lets one go when nothing more can belong to it.

Problem: an Incremental Sessionizer is as late as its partitions are long. A stream sees rows within seconds, but in any
order, and a session lies in many of its batches.
How it works: the engine groups the rows of a visitor by session windows (:func:`windows`). A late row extends a
session, joins two, or begins one. When the watermark has passed a session's last row plus the inactivity, its rows come
out once, and leave the state, which is as large as the rows of the inactivity and the allowed lateness. The Incremental
Sessionizer computes the session from its rows (:func:`sessions`), and its id from the first appended row alone (Keyed
Idempotency), so the stream, a retried batch and the hourly batch agree.
The trap: an expiration that counts from the watermark instead of the newest row: it cuts a session to which rows may
still belong. Rows behind the watermark are dropped by the engine without a word; count them from the batch's input
(:func:`gap`).
When not to use it: when an hour is soon enough (Incremental Sessionizer): it takes late rows, too, and needs no state.
While nothing lands, the last sessions wait, as only *newer* rows move the watermark. The state belongs to the number of
shuffle partitions with which its checkpoint began.
Source: "Data Engineering Design Patterns", ch. 5.
"""

from collections.abc import Sequence
from datetime import timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from blogdata.patterns.data_value import incremental_sessionizer
from blogdata.patterns.data_value.incremental_sessionizer import COMPLETED, ENDED, STARTED, SessionSpec
from blogdata.patterns.error_management import windowed_deduplicator

LINES, CONFLICTS = "lines", "conflicts"
"""Numbers of rows that a session stands for, repeated ones included, and of those that another payload had."""
_ROWS = "rows"


def gap(spec: SessionSpec) -> timedelta:
    """Return how long after a row its session is open: the engine ends a window at its end, the batch behind it."""
    return spec.inactivity + timedelta(microseconds=1)


def windows(rows: DataFrame, spec: SessionSpec, *, late: timedelta) -> DataFrame:
    """Group the rows of a stream by session, each once when it is over: visitor, `started_at`, `rows` ARRAY<STRUCT>."""
    timed = rows.withWatermark(spec.time, f"{late // timedelta(microseconds=1)} microseconds")
    open_for = f"{gap(spec) // timedelta(microseconds=1)} microseconds"
    columns = F.struct(*(name for name in rows.columns if name != spec.visitor))
    grouped = timed.groupBy(spec.visitor, F.session_window(spec.time, open_for))
    return grouped.agg(F.collect_list(columns).alias(_ROWS)).select(
        spec.visitor, F.col("session_window.start").alias(STARTED), _ROWS
    )


def sessions(over: DataFrame, spec: SessionSpec, *, payload: str, partitions: Sequence[str]) -> DataFrame:
    """Compute the completed sessions of a batch of :func:`windows`, with `lines` and `conflicts`.

    Equal rows of a visitor (same time and ties) are in conflict if their `payload` differs. The `partitions` are all
    hours from the first session's begin to the last one's end.
    """
    rows = over.select(spec.visitor, F.explode(_ROWS).alias("_row"))
    unique = windowed_deduplicator.deduplicate(
        rows.select(spec.visitor, "_row.*"),
        key=(spec.visitor, spec.time, *spec.ties),
        order=spec.position,
        payload=F.col(payload),
    )
    completed = incremental_sessionizer.sessionize(unique, None, spec, partitions=partitions).where(COMPLETED)
    # By their times: a window of the engine may hold two sessions, whose silence is the inactivity to the microsecond.
    within = F.col(spec.time).between(F.col(STARTED), F.col(ENDED))
    received = unique.join(completed.select(spec.visitor, STARTED, ENDED), spec.visitor).where(within)
    counted = received.groupBy(spec.visitor, STARTED).agg(
        F.sum("occurrences").alias(LINES), F.sum(CONFLICTS).alias(CONFLICTS)
    )
    return completed.join(counted, [spec.visitor, STARTED])
