"""Models of page views: counted by what they are about, and what these things are.

No row leads to a person: page views are counted, and have no visitor, visit, address or place.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from assets.report.referrers import known
from assets.transforms.cubes import named
from blogdata.patterns.data_value import distributed_aggregator
from blogdata.patterns.data_value.distributed_aggregator import Measure
from blogdata.patterns.storage import normalizer
from quality.contracts.columns import UNKNOWN
from quality.contracts.visits_model import DEVICE, KEYS


def views(visits: DataFrame) -> DataFrame:
    """Count the page views of weeks by what they are about.

    Args:
        visits: Rows of silver.visits_enriched with `event_week` STRING.

    Returns:
        Rows of gold.visits_snowflake_views.
    """
    keyed = normalizer.refer(visits, key=DEVICE, known="device_known", unknown=UNKNOWN)
    by = {name: named(F.col(name)) for name in ("page", "referral_host", "browser")}
    dated = keyed.withColumns({**by, "event_date": F.substring("event_hour", 1, 10)})
    return distributed_aggregator.aggregate(dated, ("event_week", *KEYS), [Measure(name="views")])


def devices(counted: DataFrame, reference: DataFrame | None) -> DataFrame:
    """Name the devices of page views as they are called now.

    Args:
        reference: Rows of silver.devices; None when no devices were ever delivered.

    Returns:
        Rows of gold.visits_snowflake_devices.
    """
    seen = normalizer.entity(counted, key=DEVICE)
    if reference is None:
        return seen.withColumn("device_name", F.lit(None).cast("string"))
    newest = reference.groupBy(*DEVICE).agg(F.max_by("full_name", "changed_on").alias("device_name"))
    return seen.join(newest, on=[*DEVICE], how="left")


def hosts(counted: DataFrame) -> DataFrame:
    """Find the sites of the hosts that page views came from, and the kinds of these.

    Returns:
        Rows of gold.visits_star_hosts.
    """
    names, listed = normalizer.entity(counted, key=["referral_host"]), known()
    sites = {host: listed.site_of(host) for (host,) in sorted(map(tuple, names.collect()))}
    rows = [(host, site, listed.kind_of(site).value) for host, site in sites.items()]
    told = names.sparkSession.createDataFrame(rows, "referral_host STRING, site STRING, kind STRING")
    return names.join(F.broadcast(told), on="referral_host")
