"""Windowed Deduplicator: of all rows with one identity the first counts, and the others are accounted for.

Problem: producers retry, so a row arrives more than once, and the copies may even differ.
How it works: the caller passes one window as one frame (an event hour over all its arrivals). With one shuffle and one
sort, the first row of each key is kept (:func:`deduplicate`; the others: :func:`conflicting`) with the number of rows
it stands for (`occurrences`) and of those with another payload (`conflicts`): the sum of `occurrences` is the number of
input rows. In a stream :func:`first_come` compares a batch with the identities published in its hours, so there is no
second state that could disagree with the table or grow for ever.
The trap: `dropDuplicates` (in streams: `dropDuplicatesWithinWatermark`) keeps an arbitrary row, so a re-run may publish
another one; an order that does not end in a unique column has the same effect. Nulls in the key are equal to each other
here, as in GROUP BY.
When not to use it: across windows (a row that returns in another event hour is another row), or for exactly-once
*delivery*, which is the job of the writer.
Source: "Data Engineering Design Patterns", ch. 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.window import WindowSpec


def deduplicate(frame: DataFrame, *, key: Sequence[str], order: Sequence[str], payload: Column) -> DataFrame:
    """Keep the first row of each identity, with `occurrences` BIGINT and `conflicts` BIGINT.

    Args:
        order: Columns that decide which row is first; unique together with the key, or the winner is arbitrary.
        payload: Column of the frame that all rows of one identity must agree on.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    together = Window.partitionBy(*key)
    # Computed before the shuffle, so that columns used only by the payload need not be shuffled.
    ranked = _ranked(frame.withColumn("_payload", payload), together.orderBy(*order))
    counted = ranked.withColumns(
        {"occurrences": F.count(F.lit(1)).over(together), "conflicts": F.count_if(~F.col("_same")).over(together)}
    )
    return counted.filter(F.col("_rank") == 1).drop("_rank", "_same", "_payload")


def conflicting(frame: DataFrame, *, key: Sequence[str], order: Sequence[str], payload: Column) -> DataFrame:
    """Find the rows that lost to a winner with another payload, which :func:`deduplicate` counts as `conflicts`."""
    from pyspark.sql import Window

    ranked = _ranked(frame.withColumn("_payload", payload), Window.partitionBy(*key).orderBy(*order))
    return ranked.where("NOT _same").drop("_rank", "_same", "_payload")


def _ranked(rows: DataFrame, in_order: WindowSpec) -> DataFrame:
    from pyspark.sql import functions as F

    winner = F.first("_payload").over(in_order)
    return rows.withColumns({"_rank": F.row_number().over(in_order), "_same": F.col("_payload").eqNullSafe(winner)})


class Verdict(str, Enum):
    FIRST = "first"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"


def first_come(
    batch: DataFrame, published: DataFrame, *, key: Sequence[str], order: Sequence[str], payload: Column
) -> DataFrame:
    """Classify the rows of a batch by `verdict` STRING, a :class:`Verdict`; each is compared with the first one."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    known = published.select(*key, payload.alias("_payload"), F.lit(True).alias("_known"))
    rows = batch.select("*", payload.alias("_payload"), F.lit(False).alias("_known"))
    in_order = Window.partitionBy(*key).orderBy(F.desc("_known"), *order)
    ranked = _ranked(rows.unionByName(known, allowMissingColumns=True), in_order)
    again = F.when(F.col("_same"), F.lit(Verdict.DUPLICATE.value)).otherwise(F.lit(Verdict.CONFLICT.value))
    verdict = F.when(F.col("_rank") == 1, F.lit(Verdict.FIRST.value)).otherwise(again)
    return ranked.where(~F.col("_known")).select(*batch.columns, verdict.alias("verdict"))
