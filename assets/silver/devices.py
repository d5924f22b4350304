"""silver.devices: the names of devices with their history (SCD2), continued with each delivery.

If a device has several rows, the first by position is used and the others are only counted. A version is valid from the
midnight of the delivery that introduced it; those of the first delivery have always been valid, as no earlier one could
have contained them. A delivery closes the versions that it names differently or not at all. A device that is delivered
again begins a new version.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from assets.silver.users import require_usable
from blogdata.contract.publication import WHOLE_TABLE, Commit, Entry
from blogdata.patterns.idempotency import proxy
from blogdata.planning.reach import delivered_on
from blogdata.runs import accounts
from blogdata.runs.computation import computes
from blogdata.runs.step import FullDelivery, Step

DEVICE = ("device_type", "device_version")


@computes("silver.devices")
def devices(step: Step) -> Mapping[str, Commit]:
    """Update the history of device names to the newest delivery; only versions that differ are written.

    A delivery that landed after a newer one, or that was refused and not accepted, is not part of the history.
    """
    known = step.events.publications("silver.devices").get(WHOLE_TABLE)
    delivery = accounts.entries(step, "bronze.devices")[WHOLE_TABLE]
    current = known.measures["current"] if known else 0
    require_usable(step, "bronze.devices", delivery, int(current))
    account = accounts.whole(step, "bronze.devices", "dead_lettered", "dead")[WHOLE_TABLE]
    delivered, taken_in = step.read("bronze.devices"), _taken_in(step)

    def rows(before: DataFrame) -> DataFrame:
        if taken_in and before.isEmpty():
            # The rows of the table are lost: rebuild them from the kept copies.
            before = _taken_in_again(step, taken_in, before)
        return versions(delivered, before, delivered_on(delivery))

    return step.publish(FullDelivery(rows=rows, account=account))


def _taken_in(step: Step) -> Sequence[Entry]:
    """List the deliveries of devices that silver.devices has read, in the order of reading."""
    copies = {entry.version: entry for entry in step.events.history("bronze.devices")}
    versions = sorted(copies)
    read = [entry.inputs["bronze.devices"] for entry in step.events.history("silver.devices")]
    known = dict.fromkeys(versions[at - 1] for version in read if (at := bisect_right(versions, version)))
    return [copies[version] for version in known]


def _taken_in_again(step: Step, loads: Sequence[Entry], nothing: DataFrame) -> DataFrame:
    """Recompute the versions of the devices from the copies of their deliveries that are still kept."""
    kept = {copy.since_version: copy for copy in proxy.history(step.lake, "bronze.devices") if copy.removed_at is None}
    rows = nothing
    for entry in loads:
        if entry.version in kept:
            delivered = step.lake.read_members(step.spark, "bronze.devices", [kept[entry.version]])
            rows = versions(delivered, rows, delivered_on(entry))
            # Materialize: a query plan that grows with each delivery would be refused when there are many.
            rows = step.spark.createDataFrame(rows.toArrow())
    return rows


def versions(delivered: DataFrame, before: DataFrame, day: str) -> DataFrame:
    """Update the versions of the devices, all rows of silver.devices, with a full delivery.

    Several deliveries of one day have the same result as the last of them alone.
    """
    midnight = F.to_timestamp(F.lit(f"{day}T00:00:00Z"))
    earlier = before.where(F.col("changed_on") < day).withColumn(
        "valid_to", F.when(F.col("valid_to") < midnight, F.col("valid_to"))
    )
    is_first = earlier.agg((F.count(F.lit(1)) == 0).alias("_is_first"))
    was, now = earlier.withColumn("_was", F.lit(True)).alias("was"), _distinct(delivered).alias("now")
    is_open = F.col("was.valid_to").isNull()
    same = [F.col(f"was.{name}") == F.col(f"now.{name}") for name in DEVICE]
    met = was.join(now, reduce(Column.__and__, same, is_open), "full").crossJoin(F.broadcast(is_first))
    is_known, is_named = F.col("_was").isNotNull(), F.col("now.occurrences").isNotNull()
    goes_on = is_known & is_named & F.col("was.full_name").eqNullSafe(F.col("now.full_name"))
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
    rows = F.array(F.when(is_known, known), F.when(is_named & ~goes_on, begun))
    return met.select(F.inline(F.array_compact(rows)))


def _distinct(delivered: DataFrame) -> DataFrame:
    position = F.struct("source_file", "source_offset")
    usable = delivered.where(F.size("reasons") == 0)
    return usable.groupBy(F.col("type").alias("device_type"), F.col("version").alias("device_version")).agg(
        F.min_by("full_name", position).alias("full_name"), F.count(F.lit(1)).alias("occurrences")
    )
