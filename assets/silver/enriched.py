"""silver.visits_enriched: visit events with the user, the device and the place as of the event."""

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from blogdata.contract.publication import Commit
from blogdata.patterns.data_value import static_joiner
from blogdata.runs import accounts, slices
from blogdata.runs.computation import computes
from blogdata.runs.step import Step, Upstream
from quality.contracts.columns import DIRECT
from quality.contracts.enriched import WAITING


def enrich(
    events: DataFrame, *, users: DataFrame | None, devices: DataFrame | None, places: DataFrame | None
) -> DataFrame:
    """Add the versions of user, device and place that were valid at the event, and the referring host, to each event.

    A table that was never published is None.
    """
    spark = events.sparkSession
    versions = users if users is not None else spark.createDataFrame([], USER_COLUMNS)
    reference = devices if devices is not None else spark.createDataFrame([], DEVICE_COLUMNS)
    with_user = static_joiner.join_as_of(
        events,
        versions.select("user_id", "registered_datetime", "valid_from", "valid_to"),
        on=("user_id",),
        at="event_time",
        valid_from="valid_from",
        valid_to="valid_to",
        matched="user_known",
    )
    with_device = static_joiner.join_as_of(
        with_user,
        reference.select(
            "device_type",
            "device_version",
            "full_name",
            F.col("valid_from").alias("device_from"),
            F.col("valid_to").alias("device_to"),
        ),
        on=("device_type", "device_version"),
        at="event_time",
        valid_from="device_from",
        valid_to="device_to",
        matched="device_known",
    )
    known = places if places is not None else spark.createDataFrame([], PLACE_COLUMNS)
    with_place = with_device.join(known.select("ip", "country", "outcome"), on="ip", how="left")
    host = F.regexp_extract(F.col("referral"), r"^(?:[a-zA-Z][a-zA-Z0-9+.-]*://)?([^/:?#]+)", 1)
    return with_place.withColumns(
        {
            "referral_host": F.when(F.length(host) > 0, F.lower(host)).otherwise(DIRECT),
            "device_name": F.col("full_name"),
            "user_registered": F.col("registered_datetime"),
            "user_version_from": F.col("valid_from"),
            "place_outcome": F.when(F.col("ip").isNotNull(), F.coalesce("outcome", F.lit(WAITING))),
        }
    )


USER_COLUMNS = "user_id STRING, registered_datetime TIMESTAMP, valid_from TIMESTAMP, valid_to TIMESTAMP"
DEVICE_COLUMNS = "device_type STRING, device_version STRING, full_name STRING, valid_from TIMESTAMP, valid_to TIMESTAMP"
PLACE_COLUMNS = "ip STRING, country STRING, outcome STRING"


@computes("silver.visits_enriched")
def visits_enriched(step: Step) -> Mapping[str, Commit]:
    """Join user, device and place as of the event, not as of now: a backfill next year gives the same rows."""
    additions = slices.additions(step)  # late events are added to an hour whose others would be joined alike
    events = step.read("silver.visits", step.partitions).where(
        slices.rows_to_read(additions, step.contract, step.partitions)
    )
    return step.publish(
        enrich(
            events,
            users=step.read("silver.users") if step.exists("silver.users") else None,
            devices=step.read("silver.devices") if step.exists("silver.devices") else None,
            places=step.read("silver.places") if step.exists("silver.places") else None,
        ),
        Upstream(accounts=accounts.same_partition(step, "silver.visits"), additions=additions),
    )
