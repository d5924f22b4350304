"""gold.visits_weekly: individual page views, one table per week; past years are frozen into one table each.

No row leads to a visitor who asked not to be shared. The visitors of a year, and those who had come before, are counted
without a shuffle (Bucket).
"""

from collections.abc import Mapping, Sequence
from functools import partial

import dagster as dg
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from assets.code_version import version
from assets.gold.page_views import ENRICHED_VISITS, gather
from blogdata.contract.partitions import Grain, coarser, start_of
from blogdata.contract.partitions import key_of as partition_of
from blogdata.contract.publication import Commit
from blogdata.patterns.data_flow.concurrent_runner import pool_of
from blogdata.patterns.idempotency import fast_metadata_cleaner
from blogdata.patterns.security.pseudo_anonymizer import keyed_hash, token
from blogdata.patterns.storage import bucket, sorter
from blogdata.patterns.storage.bucket import Together, UsersNotTogether
from blogdata.planning.clock import lookback_of, newest_ended
from blogdata.runs import slices
from blogdata.runs.computation import computes, ops_asset, run_context
from blogdata.runs.lake_resource import LakeResource
from blogdata.runs.names import asset_key, table
from blogdata.runs.retries import reported
from blogdata.runs.step import Step, Upstream
from blogdata.table.lake import Lake, Stored
from blogdata.table.members import Member
from blogdata.table.target import Target
from quality.contracts import CONTRACTS
from quality.contracts.visits_weekly import USER_BUCKETS
from quality.keys import VISITOR_KEY

_YEAR = len("2026")


def visitors_of(spark: SparkSession, lake: Lake, year: Member, visible: Sequence[Member]) -> str:
    """Count the visitors of a frozen year who may be shared, and those of them who had come in the year before."""
    before = str(int(year.partitions[0][:_YEAR]) - 1)
    weeks = [week for member in visible for week in member.partitions if week.startswith(before)]
    try:
        visitors = _visitors(spark, lake, year.since_version, year.partitions)
        if not weeks:
            return f"{visitors.frame().count():,}, of whom 0 had come in the year before"
        earlier = _visitors(spark, lake, year.since_version, weeks)
        joined = visitors.join(earlier.map(lambda part: part.withColumnRenamed("views", "before")), "left").frame()
        (counts,) = joined.agg(F.count(F.lit(1)), F.count("before")).collect()
    except UsersNotTogether as error:
        return f"visitors not counted, {error.what}"
    return f"{counts[0]:,}, of whom {counts[1]:,} had come in the year before"


def _visitors(spark: SparkSession, lake: Lake, version: int, weeks: Sequence[str]) -> Together:
    stored = Stored(lake=lake, dataset=DATASET, version=version, partitions=weeks)
    visits = bucket.read(spark, stored).map(lambda part: part.where(F.col("user_id").isNotNull()))
    return visits.aggregate(("user_id",), F.count(F.lit(1)).alias("views"))


PURPOSE = "bucket of a user"
VISIT = "visit of gold.visits_weekly"


def for_analysts(visits: DataFrame, secret: str) -> DataFrame:
    """Select the columns of gold.visits_weekly from rows of silver.visits_enriched with `event_week` STRING.

    `user_id` and `user_bucket` are null where `keep_private` is true, and the visit of these rows has a token apart
    from that of its other rows.
    """
    return visits.select(
        "event_week",
        token(F.concat_ws("\n", "visit_id", F.col("keep_private").cast("string")), secret, VISIT).alias("visit_id"),
        "event_time",
        "keep_private",
        "page",
        "ad_id",
        F.when(~F.col("keep_private"), F.col("user_id")).alias("user_id"),
        "referral_host",
        "browser",
        "network_type",
        "device_type",
        "device_name",
        "user_known",
    ).withColumn(USER_BUCKETS.column, user_bucket(F.col(USER_BUCKETS.of), USER_BUCKETS.number, secret))


def user_bucket(user_id: Column, number: int, secret: str) -> Column:
    """Compute the bucket of a user, INT; null for a null.

    Its hash is keyed: after the user id of a row was erased, nobody can test whether the bucket is that of a user.
    """
    return bucket.of(keyed_hash(user_id, secret, PURPOSE), number)


DATASET = "gold.visits_weekly"


@computes(DATASET)
def visits_weekly(step: Step) -> Mapping[str, Commit]:
    """Write each week's page views to a table of their own, or add those it lacks; and make the view show it."""
    key = step.token_key(VISITOR_KEY)
    additions = slices.additions(step)
    period = gather(step, additions=additions)
    rows = for_analysts(period.visits, key)
    return step.publish(period.with_hours(rows), Upstream(accounts=period.accounts, additions=additions))


@ops_asset(
    description=f"The weeks of {DATASET} that are final, one immutable table for each past year",
    kinds={"spark", "deltalake"},
    tags={"pattern/fast-metadata-cleaner": "", "pattern/sorter": "", "pattern/bucket": ""},
    deps=[dg.AssetDep(asset_key(DATASET))],
    pool=pool_of(DATASET),
    required_resource_keys={"spark", "lake"},
)
def frozen_years(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
    """Freeze every year whose weeks are all final: late rows no longer change them."""
    access: LakeResource = context.resources.lake
    contract = CONTRACTS[DATASET]
    run = run_context(context, version())
    target = Target(lake=access.lake, contract=contract, run=run)
    with reported(context), context.resources.spark.guard() as spark:
        frozen = fast_metadata_cleaner.freeze(
            spark, target, final_before=first_open_week(access), arrange=partial(sorter.sort, spark)
        )
        visible = fast_metadata_cleaner.visible(access.lake, DATASET)
        visitors = [f"{year.name}: {visitors_of(spark, access.lake, year, visible)}" for year in frozen]
    view = [
        {
            "table": member.name,
            "weeks": len(member.partitions),
            "rows": member.rows,
            "frozen": member.frozen,
            "visible_from": member.visible_from.isoformat(timespec="seconds"),
        }
        for member in visible
    ]
    return dg.MaterializeResult(
        metadata={
            "frozen_now": ", ".join(f"{year.name}: {len(year.partitions)} weeks" for year in frozen) or "nothing",
            "rows_frozen_now": sum(year.rows for year in frozen),
            "visitors_frozen_now": "; ".join(visitors) or "nothing",
            "tables_in_the_view": len(visible),
            **table("view", view),
        }
    )


def first_open_week(access: LakeResource) -> str:
    """Return the oldest week that late rows still change; an empty string if nothing is published."""
    lookback = lookback_of(CONTRACTS[DATASET])
    assert lookback is not None
    newest = max(access.events.publications(ENRICHED_VISITS), default=None)
    if newest is None:
        return ""
    week = newest_ended(coarser(newest, Grain.HOUR, Grain.WEEK), Grain.WEEK)
    return partition_of(start_of(week, Grain.WEEK) - lookback.length * Grain.WEEK.length, Grain.WEEK)
