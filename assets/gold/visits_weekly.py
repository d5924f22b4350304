"""gold.visits_weekly: individual page views, one table per week; past years are frozen into one table each."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import dagster as dg

from assets.code_version import version
from assets.gold import frozen_visitors
from assets.gold.fan_in import ENRICHED_VISITS, gather
from assets.transforms import weekly_visits
from blogdata.errors import PlatformError
from blogdata.lake.commit import Commit
from blogdata.orchestration.computation import computes, run_context
from blogdata.orchestration.lake_resource import LakeResource
from blogdata.orchestration.names import asset_key
from blogdata.orchestration.retries import failure
from blogdata.orchestration.step import Step, Upstream
from blogdata.patterns.data_flow.concurrent_runner import pool_of
from blogdata.patterns.idempotency import fast_metadata_cleaner
from blogdata.patterns.storage import sorter
from blogdata.planning.finality import lookback_of, newest_ended
from blogdata.publish.partitions import Grain, coarser, start_of
from blogdata.publish.partitions import key_of as partition_of
from blogdata.publish.target import Target
from quality.contracts import CONTRACTS
from quality.contracts.keys import VISITOR_KEY
from quality.contracts.page_views import USER_BUCKETS

DATASET = "gold.visits_weekly"
FROZEN_YEARS = dg.AssetKey(["ops", "frozen_years"])


@computes(DATASET)
def visits_weekly(step: Step) -> Mapping[str, Commit]:
    """Write each week's page views to a table of their own, and make the view show it."""
    period = gather(step)
    rows = weekly_visits.for_analysts(period.visits, USER_BUCKETS, step.token_key(VISITOR_KEY))
    return step.publish(period.with_hours(rows), Upstream(accounts=period.accounts))


@dg.asset(
    key=FROZEN_YEARS,
    description=f"The weeks of {DATASET} that are final, one immutable table for each past year",
    group_name="ops",
    owners=["team:platform"],
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
    target = Target(lake=access.lake, contract=contract, run=run, engine=access.engine, probe=access.probe)
    try:
        with context.resources.spark.guard() as spark:
            frozen = fast_metadata_cleaner.freeze(
                spark, target, final_before=first_open_week(access), arrange=partial(sorter.sort, spark)
            )
            visible = fast_metadata_cleaner.visible(access.lake, DATASET)
            visitors = [f"{year.member}: {frozen_visitors.of(spark, access.lake, year, visible)}" for year in frozen]
    except PlatformError as error:
        raise failure(context, error) from error
    metadata: dict[str, Any] = {
        "frozen_now": ", ".join(f"{year.member}: {len(year.partitions)} weeks" for year in frozen) or "nothing",
        "rows_frozen_now": sum(year.rows for year in frozen),
        "visitors_frozen_now": "; ".join(visitors) or "nothing",
        "tables_in_the_view": len(visible),
        "view": dg.MetadataValue.table(
            [
                dg.TableRecord(
                    {
                        "table": member.name,
                        "weeks": len(member.partitions),
                        "rows": member.rows,
                        "frozen": member.frozen,
                        "visible_from": member.visible_from.isoformat(timespec="seconds"),
                    }
                )
                for member in visible
            ]
        ),
    }
    return dg.MaterializeResult(metadata=metadata)


def first_open_week(access: LakeResource) -> str:
    """Return the oldest week that late rows still change; an empty string if nothing is published."""
    lookback = lookback_of(CONTRACTS[DATASET])
    assert lookback is not None
    newest = max(access.events.publications(ENRICHED_VISITS), default=None)
    if newest is None:
        return ""
    week = newest_ended(coarser(newest, Grain.HOUR, Grain.WEEK), Grain.WEEK)
    return partition_of(start_of(week, Grain.WEEK) - lookback.length * Grain.WEEK.length, Grain.WEEK)
