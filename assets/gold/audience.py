"""Sketches of the visitors of an hour, from which those of any longer time follow; those of campaigns by themselves.

Audience: page views and a sketch of the visitors, by one dimension at a time.

Every page view is counted once in each dimension. Combinations of dimensions would have about as many groups as there
are page views, and a sketch of few visitors is larger than their ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import Column
from pyspark.sql import functions as F

from assets.transforms import campaign_counts
from assets.transforms.cubes import named
from blogdata.lake.commit import Commit
from blogdata.lake.lake import Stored
from blogdata.orchestration import accounts
from blogdata.orchestration.computation import computes
from blogdata.orchestration.step import Step, Upstream
from blogdata.patterns.data_value import local_aggregator
from blogdata.patterns.data_value.distributed_aggregator import How, Measure
from quality.contracts.audience import ALL, AUDIENCE_DIMENSIONS, LG_K

BY = ("event_hour", "dimension", "value")
MEASURES = (
    Measure(name="events"),
    Measure(name="visitors", how=How.SKETCH, column="user_id", lg_k=LG_K),
)


def dimensions() -> Column:
    """Return a generator of the columns `dimension` and `value`: a row for each dimension of a visit event."""
    return F.inline(F.array(*[_of(name) for name in AUDIENCE_DIMENSIONS]))


def _of(dimension: str) -> Column:
    value = F.lit(ALL) if dimension == ALL else named(F.col(dimension))
    return F.struct(F.lit(dimension).alias("dimension"), value.alias("value"))


ENRICHED_VISITS, JOINED = "silver.visits_enriched", "silver.visits_with_ads"


@computes("gold.audience_hourly")
def audience_hourly(step: Step) -> Mapping[str, Commit]:
    """Aggregate each hour where its rows lie: they are in one partition."""
    visits = accounts.same_partition(step, ENRICHED_VISITS)
    rows = local_aggregator.aggregate(
        step.spark,
        _stored(step, ENRICHED_VISITS),
        BY,
        MEASURES,
        computed=[dimensions()],
    )
    counted = {
        hour: replace(account, rows_in=account.rows_in * len(AUDIENCE_DIMENSIONS)) for hour, account in visits.items()
    }
    return step.publish(rows, Upstream(accounts=counted))


@computes("gold.campaign_audience_hourly")
def campaign_audience_hourly(step: Step) -> Mapping[str, Commit]:
    """Aggregate each hour's page views by the campaigns of the displays they belong to.

    A dataset of its own: a late display makes only campaigns stale, and no other dimension.
    """
    joined = accounts.same_partition(step, JOINED)
    rows = local_aggregator.aggregate(
        step.spark,
        _stored(step, JOINED),
        campaign_counts.AUDIENCE_BY,
        campaign_counts.AUDIENCE,
        computed=campaign_counts.audience_columns(),
    )
    return step.publish(rows.withColumnRenamed(campaign_counts.AUDIENCE_BY[1], "campaign"), Upstream(accounts=joined))


def _stored(step: Step, dataset: str) -> Stored:
    return Stored(lake=step.lake, dataset=dataset, version=step.pin(dataset), partitions=step.partitions)
