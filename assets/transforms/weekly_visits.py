"""The page views of a week for analysts: all rows, and none leads to a visitor who asked not to be shared."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from blogdata.patterns.security.pseudo_anonymizer import keyed_hash, token
from blogdata.patterns.storage import bucket
from blogdata.publish.privacy import withheld
from blogdata.publish.schema import Buckets

PURPOSE = "bucket of a user"
VISIT = "visit of gold.visits_weekly"


def for_analysts(visits: DataFrame, buckets: Buckets, secret: str) -> DataFrame:
    """Select the columns of enriched visits that an analyst needs.

    Args:
        visits: Rows of silver.visits_enriched with `event_week` STRING.

    Returns:
        Rows of gold.visits_weekly, one per input row, without `hours_present`; `user_id` and `user_bucket` are null
        where `keep_private` is true, and the visit of these rows has a token apart from that of its other rows.
    """
    return visits.select(
        "event_week",
        token(F.concat_ws("\n", "visit_id", F.col("keep_private").cast("string")), secret, VISIT).alias("visit_id"),
        "event_time",
        "keep_private",
        "page",
        "ad_id",
        withheld("user_id", where="keep_private"),
        "referral_host",
        "browser",
        "network_type",
        "device_type",
        "device_name",
        "user_known",
    ).withColumn(buckets.column, user_bucket(F.col(buckets.of), buckets.number, secret))


def user_bucket(user_id: Column, number: int, secret: str) -> Column:
    """Compute the bucket of a user, INT; null for a null.

    Its hash is keyed: after the user id of a row was erased, nobody can test whether the bucket is that of a user.
    """
    return bucket.of(keyed_hash(user_id, secret, PURPOSE), number)
