"""Distributed Aggregator: a cube over more rows than one machine holds, computed where the rows are.

Problem: counts over days of events by several dimensions; the rows of a group are spread over many machines.
How it works: every measure is partially aggregated before the shuffle, so only partial results cross the network
(:func:`aggregate`). Exact distinct counts have no small partial result: the engine groups by the counted values first.
Approximate ones keep a sketch of fixed size per group (DataSketches HLL), with an error known in advance. Totals by
several sets of columns are one pass over the rows (:func:`aggregate_sets`, the book's GROUPING SETS), with distinct
counts of their own: the daily report's top page and top referrer share a scan.
The trap: salting where it is not needed. One large group leaves one task working alone only if its rows are moved;
partial results are few. A salt must be computed from the row: a random one changes when a task is retried, and rows are
lost or counted twice. Another trap: the distinct counts of days do not add up to that of the week, and a table with
totals among its rows counts twice when it is summed.
When not to use it: when the data is already partitioned by the group (Local Aggregator), or fits one process.
Source: "Data Engineering Design Patterns", ch. 5; error of the sketch: Flajolet et al., HyperLogLog, 2007.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

SET = "grouping_set"
"""Column with the name of the grouping set of a row: a null of a column that is not in the set is no value."""


class How(str, Enum):
    COUNT = "count"
    DISTINCT = "distinct"
    SKETCH = "sketch"


@dataclass(frozen=True, kw_only=True)
class Measure:
    """One aggregated column: a BIGINT, of SKETCH a BINARY (an empty sketch where there is no value)."""

    name: str
    how: How = How.COUNT
    column: str | None = None
    """None counts rows, and is allowed with COUNT only."""
    lg_k: int = 12


def aggregate(frame: DataFrame, by: Sequence[str], measures: Sequence[Measure]) -> DataFrame:
    """Aggregate by some columns: one row per group, with these and the measures; null values form a group."""
    return frame.groupBy(*by).agg(*[_whole(measure).alias(measure.name) for measure in measures])


def aggregate_sets(frame: DataFrame, sets: Mapping[str, Sequence[str]], measures: Sequence[Measure]) -> DataFrame:
    """Aggregate by several sets of columns in one pass: :data:`SET`, all columns (null if not of it), measures."""
    by = list(dict.fromkeys(column for columns in sets.values() for column in columns))
    # The engine's number of a set has a bit for each grouping column, the last one the lowest, set if it is left out.
    number = {
        name: sum(1 << place for place, column in enumerate(reversed(by)) if column not in columns)
        for name, columns in sets.items()
    }
    named = F.coalesce(*[F.when(F.grouping_id() == number[name], name) for name in sets])
    grouped = frame.groupingSets([list(columns) for columns in sets.values()], *by)
    return grouped.agg(named.alias(SET), *[_whole(measure).alias(measure.name) for measure in measures])


def _whole(measure: Measure) -> Column:
    column = F.lit(1) if measure.column is None else F.col(measure.column)
    if measure.how is How.DISTINCT:
        return F.count_distinct(column)
    if measure.how is How.SKETCH:
        return F.hll_sketch_agg(column, measure.lg_k)
    return F.count(column)
