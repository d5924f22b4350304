"""Dynamic Joiner: rows of two inputs that both still grow are joined, each with those of the other within a time bound.

Problem: a row comes before its partner or after it, late or never, and a row that is not kept until then is lost.
How it works: rows belong together if their keys are equal and the time of the left one is at most a bound after that of
the right one (:func:`join`). The join is full outer, so a row without a partner comes out once, too. Two streams have a
watermark each, and the later one waits for the other: with both and the bound Spark knows how long a row can still find
a partner, and keeps it no longer. So the state is as large as the rows of that time, and of the hours that one stream
is ahead of the other (figure 5-3). A batch is joined by the same condition, from its partitions and the neighbours
within the bound, and again when one of them changes.
The trap: a join without time bounds, or with a watermark on one side only: such a stream keeps every row for ever, or
loses those that come a little late. And a row that has several partners comes out once with each of them.
When not to use it: when one side is small and changes slowly (Static Joiner). Where one side falls silent the rows of
both wait, and the state grows. Spark keeps no side's own watermark over a restart: each run of a stream has to see rows
of both sides before it lets rows go.
Source: "Data Engineering Design Patterns", ch. 5.
"""

from dataclasses import dataclass
from datetime import timedelta
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


@dataclass(frozen=True, kw_only=True)
class Side:
    """One input of the join; no column of the other side has the name of its event time column."""

    name: str
    time: str


@dataclass(frozen=True, kw_only=True)
class TimedJoin:
    on: tuple[str, ...]
    left: Side
    right: Side
    bound: timedelta
    """Longest time from a right row to a left row that belongs to it; both ends are included."""
    late: timedelta
    """How late a row of a stream may come; a later one is dropped. A batch takes every row."""

    def belong(self, left: str, right: str) -> Column:
        """Build the condition that two rows belong together; both forms of the join use it."""
        equal = [F.col(f"{left}.{name}") == F.col(f"{right}.{name}") for name in self.on]
        after, before = F.col(f"{left}.{self.left.time}"), F.col(f"{right}.{self.right.time}")
        bound = F.expr(f"INTERVAL {int(self.bound.total_seconds())} SECONDS")
        return reduce(Column.__and__, equal) & (after >= before) & (after <= before + bound)


def join(left: DataFrame, right: DataFrame, spec: TimedJoin) -> DataFrame:
    """Join two inputs, both batches or both streams: a row for each pair, and one for each row without a partner.

    It has the `on` columns, the other columns of both sides (null of a side that is missing), and `side` STRING:
    `both`, or the side that has no partner.
    """
    waiting = [_waiting(frame, side, spec) for frame, side in ((left, spec.left), (right, spec.right))]
    joined = waiting[0].alias("left").join(waiting[1].alias("right"), spec.belong("left", "right"), "full_outer")
    side = (
        F.when(F.col(f"left.{spec.left.time}").isNull(), spec.right.name)
        .when(F.col(f"right.{spec.right.time}").isNull(), spec.left.name)
        .otherwise("both")
    )
    return joined.select(
        *(F.coalesce(F.col(f"left.{name}"), F.col(f"right.{name}")).alias(name) for name in spec.on),
        *(F.col(f"left.{name}") for name in left.columns if name not in spec.on),
        *(F.col(f"right.{name}") for name in right.columns if name not in spec.on),
        side.alias("side"),
    )


def with_partner(right: DataFrame, left: DataFrame, spec: TimedJoin) -> DataFrame:
    """Keep the right rows to which a left row belongs, each once, to count them beside the join."""
    return right.alias("right").join(left.alias("left"), spec.belong("left", "right"), "left_semi")


def _waiting(frame: DataFrame, side: Side, spec: TimedJoin) -> DataFrame:
    return frame.withWatermark(side.time, f"{int(spec.late.total_seconds())} seconds") if frame.isStreaming else frame
