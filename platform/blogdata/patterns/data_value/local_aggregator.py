"""Local Aggregator: rows that lie together are aggregated where they are read, and nothing is shuffled.

Problem: every group of an aggregation belongs to one partition of the table, and the engine shuffles the rows all the
same.
How it works: :func:`aggregate` deals whole partitions to a few tasks, by the rows that the table's log counts for each.
A task aggregates its partitions alone, and the plan has no Exchange. Rows are sorted within their task, so equal rows
give equal results to the byte, also of sketches.
The trap: trust. If a group is spread over two tasks, the result has it twice, and no error says so. So the partitioning
is read from the table's log, at the version that is read: another partitioning, or an aggregation by other columns, is
refused.
When not to use it: for groups across partitions (Distributed Aggregator); and with few partitions, or one that has most
of the rows: a partition is never split, so one task works alone.
Source: "Data Engineering Design Patterns", ch. 5.
"""

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from blogdata.errors import PlatformError
from blogdata.patterns.data_value import distributed_aggregator
from blogdata.patterns.data_value.distributed_aggregator import Measure
from blogdata.table.lake import Stored


def aggregate(
    spark: SparkSession, stored: Stored, by: Sequence[str], measures: Sequence[Measure], computed: Sequence[Column] = ()
) -> DataFrame:
    """Aggregate partitions of a table by columns that include its partition column, without a shuffle.

    It has as many tasks as a shuffle, at most one per partition. Of the `computed` columns, one may make several rows
    of a row (`explode`, `inline`).
    """
    column = _partition_column(stored, by)
    rows = stored.lake.row_counts(stored.dataset, column, stored.version, partitions=stored.partitions)
    shuffled = int(str(spark.conf.get("spark.sql.shuffle.partitions")))
    # One read for all parts: the parts share its analysis.
    table = stored.lake.read(spark, stored.dataset, stored.version)
    parts = []
    # By their sizes, in turn: the largest ones are in different tasks.
    by_size = sorted(rows.keys() & set(stored.partitions), key=lambda key: (-rows[key], key))
    number = max(1, min(shuffled, len(by_size)))
    for keys in (by_size[at::number] for at in range(number)):
        part = table.where(F.col(column).isin(*keys)).coalesce(1).select("*", *computed)
        # The engine leaves the sort out if no measure depends on the order.
        in_order = part.sortWithinPartitions(*by, *[measure.column for measure in measures if measure.column])
        parts.append(distributed_aggregator.aggregate(in_order, by, measures))
    return reduce(DataFrame.union, parts)


def _partition_column(stored: Stored, by: Sequence[str]) -> str:
    """Return the partition column, by the log of the version that is read."""
    columns = stored.lake.at(stored.dataset, stored.version).metadata().partition_columns
    if len(columns) != 1 or columns[0] not in by:
        partitioned = ", ".join(columns) or "nothing"
        raise PlatformError(
            what=f"the table is partitioned by {partitioned}, and the groups are by {', '.join(by)}",
            where=f"{stored.dataset}, version {stored.version}",
            next_step="group by the partition column as well, or use the Distributed Aggregator",
        )
    return columns[0]
