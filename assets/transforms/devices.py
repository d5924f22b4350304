"""The history of device names (SCD2), continued with each delivery.

Decisions: if a device has several rows, the first by position is used and the others are only counted. A version is
valid from the midnight of the delivery that introduced it. Versions of the first delivery have always been valid, as no
earlier delivery could have contained them. A delivery closes the versions that it names differently or not at all. A
device that is delivered again begins a new version.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

DEVICE = ("device_type", "device_version")


def versions(delivered: DataFrame, before: DataFrame, day: str) -> DataFrame:
    """Update the versions of the devices, all rows of silver.devices, with a full delivery.

    Several deliveries of one day have the same result as the last of them alone.
    """
    midnight = F.to_timestamp(F.lit(f"{day}T00:00:00Z"))
    earlier = before.where(F.col("changed_on") < day).withColumn(
        "valid_to", F.when(F.col("valid_to") < midnight, F.col("valid_to"))
    )
    is_first = earlier.agg((F.count(F.lit(1)) == 0).alias("_is_first"))
    was, now = earlier.withColumn("_was", F.lit(True)).alias("was"), _one_each(delivered).alias("now")
    is_open = F.col("was.valid_to").isNull()
    same = [F.col(f"was.{name}") == F.col(f"now.{name}") for name in DEVICE]
    met = was.join(now, reduce(Column.__and__, same, is_open), "full").crossJoin(F.broadcast(is_first))
    is_there, is_named = F.col("_was").isNotNull(), F.col("now.occurrences").isNotNull()
    goes_on = is_there & is_named & F.col("was.full_name").eqNullSafe(F.col("now.full_name"))
    known = F.struct(
        *(f"was.{name}" for name in (*DEVICE, "full_name")),
        F.when(goes_on, F.col("now.occurrences")).otherwise(0).alias("occurrences"),
        "was.changed_on",
        "was.valid_from",
        F.when(is_open & ~goes_on, midnight).otherwise(F.col("was.valid_to")).alias("valid_to"),
    )
    begun = F.struct(
        *(f"now.{name}" for name in (*DEVICE, "full_name", "occurrences")),
        F.lit(day).alias("changed_on"),
        F.when(~F.col("_is_first"), midnight).alias("valid_from"),
        F.lit(None).cast("timestamp").alias("valid_to"),
    )
    found = F.array(F.when(is_there, known), F.when(is_named & ~goes_on, begun))
    return met.select(F.inline(F.array_compact(found)))


def _one_each(delivered: DataFrame) -> DataFrame:
    position = F.struct("source_file", "source_offset")
    usable = delivered.where(F.size("reasons") == 0)
    return usable.groupBy(F.col("type").alias("device_type"), F.col("version").alias("device_version")).agg(
        F.min_by("full_name", position).alias("full_name"), F.count(F.lit(1)).alias("occurrences")
    )
