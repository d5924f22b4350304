"""Unaligned Fan-In: at its deadline a period is computed from what is there, and every row says how much that was.

Problem: a report is due in the morning. If one source is behind, no report is worse than one without it, but a part
that is taken for the whole leads to wrong decisions.
How it works: the contract declares a deadline (`On.DEADLINE`). Until then the period waits for all parts; from then on
it is computed from those that are published. :func:`gather` compares them with the expected ones for each source, and
:func:`labelled` puts the share on every row: a figure whose source is missing is a row without a value, not a missing
row and not a zero. The share is a measure of the commit too. When a missing part comes, the period is stale and
replaced.
The trap: the arrows of a graph do not show which inputs may be missing, so a reader sees a failed input and a computed
report. And a source that has never delivered is no missing part: otherwise no report would ever be complete.
When not to use it: when a part must not be taken for the whole at all (Aligned Fan-In).
Source: Data Engineering Design Patterns, ch. 6.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from blogdata.contract.partitions import Grain, coarser
from blogdata.patterns.data_flow.aligned_fan_in import Completeness, completeness

LABELS = (
    "period STRING, source STRING, metric STRING, parts_present INT, completeness DOUBLE, whole DOUBLE, empty BIGINT"
)


@dataclass(frozen=True, kw_only=True)
class PeriodSource:
    published: Collection[str]
    delivered: Collection[str]
    held: Collection[str] = ()
    """Keys of delivered parts whose own delivery was not taken in yet; other rows may have published them."""


@dataclass(frozen=True, kw_only=True)
class Gathered:
    parts: Mapping[str, Completeness]
    read: frozenset[str]

    @property
    def completeness(self) -> float:
        expected = sum(len(part.needed) for part in self.parts.values())
        return sum(part.present for part in self.parts.values()) / expected


def gather(periods: Sequence[str], grain: Grain, of: Grain, sources: Mapping[str, PeriodSource]) -> dict[str, Gathered]:
    """Compare the parts of each source with the expected ones.

    A source is expected from the period of its first delivery on. Before, it belongs to a period only by late rows.
    """
    expected: dict[str, dict[str, Completeness]] = {period: {} for period in periods}
    read: dict[str, set[str]] = {period: set() for period in periods}
    for name, source in sources.items():
        present = (set(source.published) & set(source.delivered)) - set(source.held)
        first = min((coarser(key, of, grain) for key in source.delivered), default=None)
        for period, parts in completeness(periods, grain, of, present).items():
            if not set(source.published).isdisjoint(parts.needed):
                read[period].add(name)
            if name in read[period] or (first is not None and first <= period):
                expected[period][name] = parts
    return {period: Gathered(parts=expected[period], read=frozenset(read[period])) for period in periods}


def labelled(
    rows: DataFrame, gathered: Mapping[str, Gathered], metrics: Mapping[str, Mapping[str, int | None]]
) -> DataFrame:
    """Return a row for each expected figure of a period; its value is null if no part of its source is there.

    The figures have `period` STRING, `metric` STRING, `value` BIGINT, `detail` STRING; at most one row a metric.
    """
    labels = rows.sparkSession.createDataFrame(list(_labels(gathered, metrics)), LABELS)
    value = "coalesce(value, empty) AS value"
    columns = ("period", "metric", value, "detail", "source", "parts_present", "completeness", "whole")
    return labels.join(rows, ["period", "metric"], "left").selectExpr(*columns)


def _labels(
    gathered: Mapping[str, Gathered], metrics: Mapping[str, Mapping[str, int | None]]
) -> Iterator[tuple[str, str, str, int, float, float, int | None]]:
    for period, of in gathered.items():
        for source, parts in of.parts.items():
            for metric, empty in metrics[source].items():
                share = parts.present / len(parts.needed)
                known = empty if source in of.read else None
                yield period, source, metric, parts.present, share, of.completeness, known
