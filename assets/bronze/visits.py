"""bronze.visits: every landed line of an hour of arrival, judged but unchanged."""

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import functions as F

from assets.bronze import judged_again
from assets.transforms import legacy_visits, visit_events
from blogdata.lake.commit import Commit
from blogdata.landing.landed_formats import extension, has_extension
from blogdata.orchestration.computation import computes
from blogdata.orchestration.landing import Landed
from blogdata.orchestration.step import Step
from blogdata.publish.partitions import Grain


@computes("bronze.visits")
def visits(step: Step) -> Mapping[str, Commit]:
    """Replicate every landed line, with its reject reasons in a column; no line is dropped."""
    landed = Landed.of(step, "visits", Grain.HOUR)
    landed.announce_new_fields()
    is_log = has_extension(F.col("source_file"), "log")
    lines = landed.lines().withColumn("format", F.when(is_log, visit_events.LOG).otherwise(visit_events.JSON))
    lines = lines.withColumnRenamed("partition", "arrival_hour")
    logs = step.deployment.settings().logs
    judged = visit_events.judge(lines, _formats(landed), logs)
    if any(legacy_visits.is_of_table(file.name) for part in landed.partitions.values() for file in part.files):
        judged = legacy_visits.judged(judged)
    return step.publish(judged, replace(landed.source(), judged_by=judged_again.versions(logs)))


def _formats(landed: Landed) -> frozenset[str]:
    logs = [extension(file.name) == "log" for part in landed.partitions.values() for file in part.files]
    found = {visit_events.LOG if is_log else visit_events.JSON for is_log in logs}
    return frozenset(found or {visit_events.JSON})
