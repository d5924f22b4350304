"""gold.audience_hourly: sketches of the visitors of an hour, from which those of any longer time follow."""

from collections.abc import Mapping
from dataclasses import replace

from assets.transforms import audience
from lake.commit import Commit
from orchestration import accounts
from orchestration.computation import computes
from orchestration.step import Source, Step
from patterns.data_value import local_aggregator
from patterns.data_value.local_aggregator import Stored
from quality.contracts.gold import AUDIENCE_DIMENSIONS

ENRICHED_VISITS = "silver.visits_enriched"


@computes("gold.audience_hourly")
def audience_hourly(step: Step) -> Mapping[str, Commit]:
    """Aggregate each hour where its rows lie: they are in one partition."""
    visits = accounts.same_partition(step, ENRICHED_VISITS)
    stored = Stored(
        lake=step.lake, dataset=ENRICHED_VISITS, version=step.pin(ENRICHED_VISITS), partitions=step.partitions
    )
    rows = local_aggregator.aggregate(
        step.spark, stored, audience.BY, audience.MEASURES, computed=[audience.dimensions()]
    )
    counted = {
        hour: replace(account, rows_in=account.rows_in * len(AUDIENCE_DIMENSIONS)) for hour, account in visits.items()
    }
    return step.publish(rows, Source(accounts=counted))
