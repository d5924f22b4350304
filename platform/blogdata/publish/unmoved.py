"""Makes a rewrite fail if the table's rows have changed since they were read, where no engine holds the transaction.

A plain Delta write cannot name the version of the table it is for: its transaction begins long after the rows were
computed. But if a write reads the table it writes, Delta reads the version at which the transaction began, and later
commits conflict. So the write itself compares the rows of that version with those of the expected one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from blogdata.publish.write_faults import ROWS_MOVED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def onto(rows: DataFrame, path: str, at: int) -> DataFrame:
    """Add a check to rows: writing them fails if the table has other rows than at a version.

    Returns:
        The same rows. Writing them fails unless each row of the table is in the same file, at the same position, as at
        that version. A commit in between that moves no row is harmless.
    """
    from pyspark.sql import functions as F

    spark = rows.sparkSession
    # Without a version: a named version would be read as it is, not as of the transaction.
    now = spark.read.format("delta").load(path)
    then = spark.read.format("delta").option("versionAsOf", at).load(path)
    # Delta has row positions only for tables with deletion vectors; for others the file alone identifies its rows.
    place = sorted({"file_path", "row_index"} & set(then.select("_metadata.*").columns))
    moved = _places(now, place).join(_places(then, place), on="places", how="left_anti")
    why = F.raise_error(F.lit(f"[{ROWS_MOVED}] the rows were computed from version {at}, the table has others now"))
    refusal = moved.select(*[why.cast(field.dataType).alias(field.name) for field in rows.schema])
    # A union, because Spark cannot skip one side of it on account of the other.
    return rows.unionByName(refusal)


def _places(table: DataFrame, place: Sequence[str]) -> DataFrame:
    """Compute one row that fingerprints where the rows of a table are, without any of their values."""
    from pyspark.sql import functions as F

    each = F.xxhash64(*[F.col(f"_metadata.{name}") for name in place])
    return table.agg(F.struct(F.count(F.lit(1)), F.coalesce(F.bit_xor(each), F.lit(0))).alias("places"))
