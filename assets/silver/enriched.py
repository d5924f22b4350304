"""silver.visits_enriched: visit events with the user as of the event, and the device."""

from pyspark.sql import functions as F

from assets.partitions import HOURS
from assets.policy import blog_dataset, newly_updated
from assets.silver.reference import devices, users
from assets.transforms.enrichment import enrich
from orchestration import accounts
from orchestration.step import Step
from patterns.core.commit import Commit


@blog_dataset(
    "silver.visits_enriched",
    deps=["silver.visits", users, devices],
    partitions_def=HOURS,
    # A newer history of the users says the same of an old event.
    automation=newly_updated(ignoring=["silver.users", "silver.devices"]),
)
def visits_enriched(step: Step) -> Commit:
    """Join the user as of the event, not as of now, and the device by the newest list, which has no past."""
    events = step.read("silver.visits").where(F.col("event_hour").isin(*step.partitions))
    return step.overwrite(
        enrich(
            events,
            users=step.read("silver.users") if step.exists("silver.users") else None,
            devices=step.read("silver.devices") if step.exists("silver.devices") else None,
        ),
        accounts=accounts.same_partition(step, "silver.visits"),
    )
