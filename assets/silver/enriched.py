"""silver.visits_enriched: visit events with the user, the device and the place as of the event."""

from collections.abc import Mapping

from assets.transforms.enrichment import enrich
from blogdata.lake.commit import Commit
from blogdata.orchestration import accounts, slices
from blogdata.orchestration.computation import computes
from blogdata.orchestration.step import Step, Upstream


@computes("silver.visits_enriched")
def visits_enriched(step: Step) -> Mapping[str, Commit]:
    """Join user, device and place as of the event, not as of now: a backfill next year gives the same rows."""
    additions = slices.additions(step)  # late events are added to an hour whose others would be joined alike
    events = step.read("silver.visits").where(slices.rows_to_read(additions, step.contract, step.partitions))
    return step.publish(
        enrich(
            events,
            users=step.read("silver.users") if step.exists("silver.users") else None,
            devices=step.read("silver.devices") if step.exists("silver.devices") else None,
            places=step.read("silver.places") if step.exists("silver.places") else None,
        ),
        Upstream(accounts=accounts.same_partition(step, "silver.visits"), additions=additions),
    )
