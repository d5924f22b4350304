"""gold.audience_hourly: page views of an hour and a sketch of the visitors, by one dimension at a time.

Every page view is counted once in each dimension. Combinations of dimensions would have about as many groups as there
are page views, and a sketch of few visitors is larger than their ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import Column
from pyspark.sql import functions as F

from assets.gold.visits_cube import named
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
    values = {name: F.lit(ALL) if name == ALL else named(F.col(name)) for name in AUDIENCE_DIMENSIONS}
    rows = (F.struct(F.lit(name).alias("dimension"), value.alias("value")) for name, value in values.items())
    return F.inline(F.array(*rows))


ENRICHED_VISITS = "silver.visits_enriched"


@computes("gold.audience_hourly")
def audience_hourly(step: Step) -> Mapping[str, Commit]:
    """Aggregate each hour where its rows lie: they are in one partition."""
    visits = accounts.same_partition(step, ENRICHED_VISITS)
    stored = Stored(
        lake=step.lake, dataset=ENRICHED_VISITS, version=step.pin(ENRICHED_VISITS), partitions=step.partitions
    )
    rows = local_aggregator.aggregate(step.spark, stored, BY, MEASURES, computed=[dimensions()])
    counted = {
        hour: replace(account, rows_in=account.rows_in * len(AUDIENCE_DIMENSIONS)) for hour, account in visits.items()
    }
    return step.publish(rows, Upstream(accounts=counted))
