"""bronze.visits: every landed line of an hour of arrival, judged but untouched."""

from assets.partitions import HOURS
from assets.policy import blog_dataset
from assets.sources import LANDING_VISITS
from assets.transforms.visit_events import judge
from orchestration.landing import Landed
from orchestration.step import Step
from patterns.core.commit import Commit
from patterns.core.partitions import Grain
from pyspark.sql import functions as F


@blog_dataset("bronze.visits", deps=[LANDING_VISITS], partitions_def=HOURS)
def visits(step: Step) -> Commit:
    """Replicate the landed lines; what is wrong with a line is said beside it, and nothing is dropped."""
    landed = Landed.of(step, "visits", Grain.HOUR)
    lines = landed.lines().withColumn(
        "format", F.when(F.col("source_file").rlike(r"\.log(\.gz)?$"), "combined").otherwise("json")
    )
    return step.overwrite(
        judge(lines.withColumnRenamed("partition", "arrival_hour")),
        accounts=landed.accounts(),
        expected=landed.expected_bytes(),
        landed=landed.fingerprints(),
    )
