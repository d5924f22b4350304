"""bronze.dead_letters: the lines of an hour of arrival that cannot be used, with all their reasons."""

from pyspark.sql import functions as F

from assets.bronze.visits import visits
from assets.partitions import HOURS
from assets.policy import blog_dataset, newly_updated
from orchestration import accounts
from orchestration.step import Step
from patterns.core.commit import Account, Commit
from patterns.ingestion.landed_lines import is_replay


@blog_dataset("bronze.dead_letters", deps=[visits], partitions_def=HOURS, automation=newly_updated())
def dead_letters(step: Step) -> Commit:
    """Keep the rejected rows of each hour of arrival, as received."""
    above = accounts.entries(step, "bronze.visits", step.partitions)
    rows = step.read("bronze.visits").where(F.col("arrival_hour").isin(*step.partitions))
    rejected = rows.where(F.size("reasons") > 0).withColumn("replay", is_replay())
    expected = {
        key: Account(
            rows_in=entry.rows_out,
            reasons={"usable": int(entry.measures["visits"]) + int(entry.measures["filtered"])},
        )
        for key, entry in above.items()
    }
    return step.overwrite(rejected, accounts=expected)
