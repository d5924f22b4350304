"""Rows that are written only onto the rows they were computed from, where no engine holds the transaction.

A plain write of Delta's cannot be told which version of the table it is for: its transaction begins when the rows have
long been computed. But what a write reads of the table it writes, Delta gives it from the version its transaction has
begun with, and later commits conflict. So the write itself looks whether that version has the rows of the expected one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from publish.write_faults import ROWS_MOVED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def onto(rows: DataFrame, path: str, at: int) -> DataFrame:
    """Have rows refuse to be written into a table that has other rows than at a version.

    Args:
        rows: What is written; computed from that version.
        path: Address of the table that the rows are written into.
        at: The version.

    Returns:
        The same rows. Writing them fails unless each row of the table is where it was: in the same file, at the same
        position. A commit in between that left every row there is no matter.
    """
    from pyspark.sql import functions as F

    spark = rows.sparkSession
    # Without a version: one that is named is read as it is, not as the transaction has it.
    now = spark.read.format("delta").load(path)
    then = spark.read.format("delta").option("versionAsOf", at).load(path)
    # Delta tells the position of rows only where some can be marked as removed; elsewhere the file says which they are.
    place = sorted({"file_path", "row_index"} & set(then.select("_metadata.*").columns))
    moved = _places(now, place).join(_places(then, place), on="places", how="left_anti")
    why = F.raise_error(F.lit(f"[{ROWS_MOVED}] the rows were computed from version {at}, the table has others now"))
    refusal = moved.select(*[why.cast(field.dataType).alias(field.name) for field in rows.schema])
    # A union, as neither side of it can be skipped for what the other one has.
    return rows.unionByName(refusal)


def _places(table: DataFrame, place: Sequence[str]) -> DataFrame:
    """Give one row that tells where the rows of a table are, without any of their values."""
    from pyspark.sql import functions as F

    each = F.xxhash64(*[F.col(f"_metadata.{name}") for name in place])
    return table.agg(F.struct(F.count(F.lit(1)), F.coalesce(F.bit_xor(each), F.lit(0))).alias("places"))
