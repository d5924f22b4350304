"""bronze.dead_letters: the lines of an hour of arrival that cannot be used, with all their reasons."""

from collections.abc import Mapping

from pyspark.sql import functions as F

from lake.commit import Account, Commit
from orchestration import accounts
from orchestration.computation import computes
from orchestration.step import Source, Step
from patterns.ingestion.landed_lines import is_replay


@computes("bronze.dead_letters")
def dead_letters(step: Step) -> Mapping[str, Commit]:
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
    return step.publish(rejected, Source(accounts=expected))
