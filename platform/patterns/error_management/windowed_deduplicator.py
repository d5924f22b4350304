"""Windowed Deduplicator: of all rows with one identity the first counts, and the others are accounted for.

Problem: producers retry, so a row arrives more than once; what arrives again may even differ.
How it works: within the window that the caller passes as one frame (an event hour over all its arrivals),
rows are brought together by key, sorted once by key and order, and the first is kept. It carries how many
rows it stands for (`occurrences`) and how many of those said something else (`conflicts`), so no second pass
counts them: the sum of `occurrences` is the number of input rows. One shuffle, one sort. In a stream the window
is what the watermark leaves open: :func:`first_come` holds a batch against the identities published since, read
from the published table, so there is no second state that could disagree with it or outgrow the watermark.
The trap: `dropDuplicates` (in streams: `dropDuplicatesWithinWatermark`) keeps any of the rows, so a re-run may
publish another one; and an order that does not end in something unique does the same. Nulls in the key are equal to
each other here, as in GROUP BY.
When not to use it: across windows (a row that returns in another event hour is another row), or for
exactly-once *delivery*, which is a matter of the writer.
Source: "Data Engineering Design Patterns", ch. 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING

from errors import PlatformError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


class MissingKeyColumn(PlatformError):
    """The frame to deduplicate does not have the columns of its identity or order."""


def deduplicate(frame: DataFrame, *, key: Sequence[str], order: Sequence[str], payload: Column) -> DataFrame:
    """Keep the first row of each identity, with the number of rows it stands for.

    Args:
        frame: One window of rows.
        key: Columns of the identity.
        order: Columns that decide who is first; together with the key unique, or the winner is arbitrary.
        payload: What two rows of one identity must agree on, as a Column of the frame.

    Returns:
        The winners with the input's columns and occurrences BIGINT (rows of the identity, itself included)
        and conflicts BIGINT (rows of the identity with another payload than the winner's).

    Raises:
        MissingKeyColumn: A column of the key or order is not in the frame.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    _require(frame, [*key, *order])
    together = Window.partitionBy(*key)
    in_order = together.orderBy(*order)
    # Computed before the rows are shuffled: what only the payload is made of need not travel.
    held = frame.withColumn("_payload", payload)
    ranked = held.withColumns({"_rank": F.row_number().over(in_order), "_winner": F.first("_payload").over(in_order)})
    counted = ranked.withColumns(
        {
            "occurrences": F.count(F.lit(1)).over(together),
            "conflicts": F.count_if(~F.col("_payload").eqNullSafe(F.col("_winner"))).over(together),
        }
    )
    return counted.filter(F.col("_rank") == 1).drop("_rank", "_winner", "_payload")


def conflicting(frame: DataFrame, *, key: Sequence[str], order: Sequence[str], payload: Column) -> DataFrame:
    """Find the rows that lost to a winner with another payload.

    Args:
        frame: The window given to :func:`deduplicate`.
        key: As given to :func:`deduplicate`.
        order: As given to :func:`deduplicate`.
        payload: As given to :func:`deduplicate`.

    Returns:
        The losing rows, with the input's columns; as many as the sum of `conflicts`.

    Raises:
        MissingKeyColumn: A column of the key or order is not in the frame.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    _require(frame, [*key, *order])
    in_order = Window.partitionBy(*key).orderBy(*order)
    judged = frame.withColumn("_winner", F.first(payload).over(in_order))
    return judged.filter(~payload.eqNullSafe(F.col("_winner"))).drop("_winner")


class Verdict(str, Enum):
    """What a row of a batch is, held against all that came before it."""

    FIRST = "first"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"


def first_come(
    batch: DataFrame, published: DataFrame, *, key: Sequence[str], order: Sequence[str], payload: Column
) -> DataFrame:
    """Tell which rows of a batch are the first of their identity, and what the others are.

    Args:
        batch: The rows of one batch of a stream.
        published: The first rows of earlier batches whose identity may come again; one per identity.
        key: Columns of the identity.
        order: Columns that decide who of the batch is first; together with the key unique.
        payload: What two rows of one identity must agree on, as a Column of both frames.

    Returns:
        Every row of the batch, once, with verdict STRING: one of :class:`Verdict`. Of two rows that are not first,
        each is held against the first one.

    Raises:
        MissingKeyColumn: A column of the key or order is not in the frame.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    _require(batch, [*key, *order])
    _require(published, key)
    known = published.select(*key, payload.alias("_payload"), F.lit(True).alias("_known"))
    rows = batch.select("*", payload.alias("_payload"), F.lit(False).alias("_known"))
    in_order = Window.partitionBy(*key).orderBy(F.desc("_known"), *order)
    held = rows.unionByName(known, allowMissingColumns=True).withColumns(
        {"_rank": F.row_number().over(in_order), "_winner": F.first("_payload").over(in_order)}
    )
    same = F.col("_payload").eqNullSafe(F.col("_winner"))
    verdict = (
        F.when(F.col("_rank") == 1, F.lit(Verdict.FIRST.value))
        .when(same, F.lit(Verdict.DUPLICATE.value))
        .otherwise(F.lit(Verdict.CONFLICT.value))
    )
    return held.where(~F.col("_known")).select(*batch.columns, verdict.alias("verdict"))


def _require(frame: DataFrame, names: Sequence[str]) -> None:
    missing = sorted(set(names) - set(frame.columns))
    if missing:
        raise MissingKeyColumn(
            what=f"the frame has no column {', '.join(missing)}",
            where=f"a frame of {', '.join(frame.columns)}",
            next_step="name columns of the frame in key and order",
        )
