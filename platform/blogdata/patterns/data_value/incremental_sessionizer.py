"""Incremental Sessionizer: sessions of hourly batches, from an hour's rows and the sessions the hour before left open.

Problem: a session lies in several partitions. A batch that reads one partition cuts it; one that reads all partitions
it may lie in reads most rows many times.
How it works: each partition is computed from its own rows and the *pending* sessions at the end of the partition before
(:func:`sessionize`). Its sessions are completed, if no further row can belong to them, or pending, and flagged. A
partition without rows closes pending sessions, or carries them on. A gapless range of partitions is computed at once:
its rows are cut into fragments (one session in one partition), and only these few are joined across partitions.
The trap: the forward dependency. A late row changes what its partition leaves open, and thereby the next partition;
replaying all later ones costs a year for one row. The digest of the pending sessions is recorded with each partition,
and the next one is stale if it has read another (`blogdata.planning.reaches`): a replay stops where the pending
sessions come out as before. Another trap: consumers that take a pending session for the final one.
When not to use it: when an hour is too late (Stateful Sessionizer). With an inactivity of many partitions, each of them
keeps a copy of every open session.
Source: "Data Engineering Design Patterns", ch. 5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from blogdata.contract.partitions import Grain, contiguous, start_of
from blogdata.patterns.idempotency import keyed_idempotency

PATH_LENGTH = 5
STARTED, ENDED, APPENDED, COMPLETED = "started_at", "ended_at", "appended", "is_completed"


@dataclass(frozen=True, kw_only=True)
class SessionSpec:
    """What a session is, and what is kept of its rows."""

    visitor: str
    time: str
    ties: tuple[str, ...]
    position: tuple[str, ...]
    """Columns with the order in which rows were appended; the first appended row identifies the session."""
    partition: str
    inactivity: timedelta
    count: str
    first: Mapping[str, str] = field(default_factory=dict)
    last: Mapping[str, str] = field(default_factory=dict)
    ever: tuple[str, ...] = ()
    """Boolean columns that are true if they are for any row."""
    path: Mapping[str, str] = field(default_factory=dict)

    @property
    def new(self) -> str:
        """Column with the number of rows in the partition itself."""
        return f"new_{self.count}"

    @property
    def state(self) -> tuple[str, ...]:
        """Columns of a session that a later partition continues from."""
        kept = (*self.first, *self.last, *self.ever, *self.path)
        return (self.visitor, STARTED, ENDED, self.count, *kept, APPENDED)


def sessionize(
    rows: DataFrame, pending: DataFrame | None, spec: SessionSpec, *, partitions: Sequence[str]
) -> DataFrame:
    """Compute the sessions of some hours, from their rows and the pending sessions at the end of the hours before.

    They have the hour, `session_id` STRING, `is_completed` BOOLEAN, the number of their rows in the hour, and the
    columns `spec.state`, as `pending` has. A pending session is in each hour at whose end it is open.
    """
    parts = fragments(rows, spec)
    if pending is not None:
        carried = pending.select(
            *spec.state, F.lit(0).cast("bigint").alias(spec.new), F.to_timestamp(spec.partition, _HOUR).alias("_hour")
        )
        parts = parts.unionByName(carried)
    return _cut(_joined(_within_ranges(parts, partitions), spec), spec)


_HOUR = "yyyy-MM-dd'T'HH"


def fragments(rows: DataFrame, spec: SessionSpec) -> DataFrame:
    """Aggregate the rows of each session within each hour: `spec.state`, the number of rows, and `_hour` TIMESTAMP."""
    # By windows alone, which all have one order: a grouping would sort all rows a second time, in the same task.
    in_order = Window.partitionBy(spec.visitor).orderBy(spec.time, *spec.ties)
    so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    hour, before = F.date_trunc("hour", spec.time), F.lag(spec.time).over(in_order)
    begins = _apart(before, F.col(spec.time), spec) | (hour != F.date_trunc("hour", before))
    numbered = rows.withColumns({"_begins": begins, "_row": F.row_number().over(in_order)})
    of_first = {"row": "_row", STARTED: spec.time, **spec.first}
    begun = F.struct(*(F.col(of).alias(name) for name, of in of_first.items()))
    marked = numbered.withColumns(
        {
            "_first": F.last(F.when(F.col("_begins"), begun), ignorenulls=True).over(so_far),
            "_ends": F.coalesce(F.lead("_begins").over(in_order), F.lit(True)),
        }
    )
    first = F.col("_first.row")
    appended = F.struct((-first).alias("fragment"), F.struct(*spec.position).alias(APPENDED))

    def steps(of: str) -> list[Column]:
        # What stands at a step that the fragment lacks is an earlier one's, and is cut off below.
        at = [F.when(F.col("_row") - first == step, F.struct(of)) for step in range(PATH_LENGTH)]
        return [F.last(value, ignorenulls=True).over(so_far)[of] for value in at]

    running = marked.withColumns(
        {
            # The highest number of a first row, and the lowest of its negation, are those of the row's own fragment.
            **{f"_{name}": F.max(F.struct(first.alias("fragment"), name)).over(so_far) for name in spec.ever},
            "_appended": F.min(appended).over(so_far),
            **{f"_{name}": F.array(*steps(of)) for name, of in spec.path.items()},
        }
    )
    count = (F.col("_row") - first + 1).cast("bigint")
    state = {
        STARTED: F.col(f"_first.{STARTED}"),
        ENDED: F.col(spec.time),
        spec.count: count,
        **{name: F.col(f"_first.{name}") for name in spec.first},
        **{name: F.col(of) for name, of in spec.last.items()},
        **{name: F.col(f"_{name}.{name}") for name in spec.ever},
        **{
            name: F.slice(F.col(f"_{name}"), F.lit(1), F.least(count, F.lit(PATH_LENGTH)).cast("int"))
            for name in spec.path
        },
        APPENDED: F.col(f"_appended.{APPENDED}"),
    }
    return running.where("_ends").select(
        spec.visitor,
        *(column.alias(name) for name, column in state.items()),
        count.alias(spec.new),
        F.date_trunc("hour", f"_first.{STARTED}").alias("_hour"),
    )


def _within_ranges(parts: DataFrame, partitions: Sequence[str]) -> DataFrame:
    """Add the first and the last hour of the gapless range that a fragment, or what is pending before it, is for."""
    ranges = contiguous(partitions, Grain.HOUR)
    ends = [(start_of(first, Grain.HOUR), start_of(last, Grain.HOUR)) for first, last in ranges]
    if len(ends) == 1:
        first, last = ends[0]
        return parts.withColumn("_since", F.lit(first)).withColumn("_until", F.lit(last))
    known = parts.sparkSession.createDataFrame(ends, "_since TIMESTAMP, _until TIMESTAMP")
    # What was pending an hour before a range is for that range: ranges are at least an hour apart.
    inside = (F.col("_hour") >= F.col("_since") - F.expr("INTERVAL 1 HOUR")) & (F.col("_hour") <= F.col("_until"))
    return parts.join(F.broadcast(known), inside)


def _joined(parts: DataFrame, spec: SessionSpec) -> DataFrame:
    """Compute the state of each session after each of its fragments, and the hour of the next one."""
    whose = ("_since", spec.visitor)
    in_order = Window.partitionBy(*whose).orderBy(STARTED)
    up_to = Window.unboundedPreceding, Window.currentRow
    apart = _apart(F.lag(ENDED).over(in_order), F.col(STARTED), spec)
    begun = parts.withColumn("_begins", F.when(apart, F.col(STARTED)))
    numbered = begun.withColumn("_session", F.max("_begins").over(in_order.rowsBetween(*up_to)))
    session = Window.partitionBy(*whose, "_session").orderBy(STARTED)
    so_far = session.rowsBetween(*up_to)
    state: dict[str, Column] = {
        STARTED: F.min(STARTED).over(so_far),
        spec.count: F.sum(spec.count).over(so_far),
        **{name: F.first(name).over(so_far) for name in spec.first},
        **{name: F.max(name).over(so_far) for name in spec.ever},
        **{name: F.slice(F.flatten(F.collect_list(name).over(so_far)), 1, PATH_LENGTH) for name in spec.path},
        APPENDED: F.min(APPENDED).over(so_far),
    }
    return numbered.select(
        *(spec.visitor, ENDED, *spec.last, spec.new, "_hour", "_since", "_until"),
        *(column.alias(name) for name, column in state.items()),
        F.lead("_hour").over(session).alias("_next"),
    )


def _cut(states: DataFrame, spec: SessionSpec) -> DataFrame:
    """Repeat each state for the hours at whose end it holds, up to the hour in which the session is over."""
    hour = F.expr("INTERVAL 1 HOUR")
    over = F.date_trunc("hour", F.col(ENDED) + F.lit(spec.inactivity))
    until = F.least(F.col("_next") - hour, over, F.col("_until"))
    timed = states.withColumn("_over", over).withColumn("_from", F.greatest("_hour", "_since")).withColumn("_to", until)
    at_end = timed.where("_from <= _to").withColumn("_at", F.explode(F.sequence("_from", "_to", hour)))
    return at_end.select(
        F.date_format("_at", _HOUR).alias(spec.partition),
        # Without the visitor: the hash has no key, so a reader of the position could try all visitors.
        keyed_idempotency.key(*[F.col(f"{APPENDED}.{name}") for name in spec.position]).alias("session_id"),
        (F.col("_at") == F.col("_over")).alias(COMPLETED),
        F.when(F.col("_at") == F.col("_hour"), F.col(spec.new)).otherwise(F.lit(0)).alias(spec.new),
        *spec.state,
    )


def _apart(before: Column, time: Column, spec: SessionSpec) -> Column:
    silence = F.unix_micros(time) - F.unix_micros(before)
    return before.isNull() | (silence > spec.inactivity // timedelta(microseconds=1))
