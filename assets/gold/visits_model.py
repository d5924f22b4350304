"""gold.visits_snowflake_*, gold.visits_star_hosts: page views of a week, and a table for each thing they are about.

gold.visits_obt: the normalized page views, joined with their hosts and devices when they are written. No row leads to a
person: page views are counted, and have no visitor, visit, address or place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from assets.gold.page_views import gather, named
from assets.referrers import kind_of, site_of
from blogdata.contract.publication import Account, Commit
from blogdata.patterns.data_value import distributed_aggregator
from blogdata.patterns.data_value.distributed_aggregator import Measure
from blogdata.patterns.storage import denormalizer, normalizer
from blogdata.runs import accounts
from blogdata.runs.computation import computes
from blogdata.runs.step import FullDelivery, Step, Upstream
from quality.contracts.columns import UNKNOWN
from quality.contracts.visits_model import DEVICE, DEVICES, KEYS, STAR_HOSTS, VIEWS


@computes("gold.visits_obt")
def visits_obt(step: Step) -> Mapping[str, Commit]:
    """Join the page views of weeks with what is known of their hosts and devices."""
    counted = step.read(VIEWS)
    known = [(step.read(STAR_HOSTS), ["referral_host"]), (step.read(DEVICES), DEVICE)]
    weeks = counted.where(counted["event_week"].isin(*step.partitions))
    return step.publish(
        denormalizer.flatten(weeks, step.contract, known), Upstream(accounts=accounts.same_partition(step, VIEWS))
    )


def views(visits: DataFrame) -> DataFrame:
    """Count the page views of weeks by what they are about."""
    keyed = normalizer.refer(visits, key=DEVICE, known="device_known", unknown=UNKNOWN)
    by = {name: named(F.col(name)) for name in ("page", "referral_host", "browser")}
    dated = keyed.withColumns({**by, "event_date": F.substring("event_hour", 1, 10)})
    return distributed_aggregator.aggregate(dated, ("event_week", *KEYS), [Measure(name="views")])


def devices(counted: DataFrame, reference: DataFrame | None) -> DataFrame:
    """Name the devices of page views as they are called now; None: no devices were ever delivered."""
    seen = normalizer.entity(counted, key=DEVICE)
    if reference is None:
        return seen.withColumn("device_name", F.lit(None).cast("string"))
    newest = reference.groupBy(*DEVICE).agg(F.max_by("full_name", "changed_on").alias("device_name"))
    return seen.join(newest, on=[*DEVICE], how="left")


def hosts(counted: DataFrame) -> DataFrame:
    """Find the sites of the hosts that page views came from, and the kinds of these."""
    names = normalizer.entity(counted, key=["referral_host"])
    sites = {host: site_of(host) for (host,) in sorted(map(tuple, names.collect()))}
    rows = [(host, site, kind_of(site).value) for host, site in sites.items()]
    known = names.sparkSession.createDataFrame(rows, "referral_host STRING, site STRING, kind STRING")
    return names.join(F.broadcast(known), on="referral_host")


@computes("gold.visits_snowflake_views")
def visits_snowflake_views(step: Step) -> Mapping[str, Commit]:
    """Count a week's page views from its 168 hours."""
    period = gather(step)
    return step.publish(views(period.visits), Upstream(accounts=period.accounts))


@computes("gold.visits_snowflake_devices")
def visits_snowflake_devices(step: Step) -> Mapping[str, Commit]:
    """Merge the names that devices have now; a device that was renamed is one row."""
    counted = step.read(VIEWS)
    reference = step.read("silver.devices") if step.exists("silver.devices") else None
    return step.publish(_each(devices(counted, reference), of=counted, key=DEVICE))


@computes("gold.visits_star_hosts")
def visits_star_hosts(step: Step) -> Mapping[str, Commit]:
    """Merge the hosts that page views came from, each with its site and the kind of it."""
    counted = step.read(VIEWS)
    return step.publish(_each(hosts(counted), of=counted, key=["referral_host"]))


def _each(rows: DataFrame, *, of: DataFrame, key: Sequence[str]) -> FullDelivery:
    """Deliver the rows of an entity: one for each key that the rows have which refer to it."""
    return FullDelivery(rows=lambda _: rows, account=Account(rows_in=of.select(*key).distinct().count()))
