"""bronze.visits: every landed line of an hour of arrival, judged but unchanged.

bronze.ads: every landed line of an hour of arrival that should be a displayed ad, judged but unchanged.

Dead letters of visits and of ads: the lines of an hour of arrival that cannot be used, with all their reasons.
"""

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from assets.bronze import judged_again
from assets.transforms import ad_displays, legacy_visits, visit_events
from blogdata.lake.commit import Account, Commit
from blogdata.orchestration import accounts
from blogdata.orchestration.computation import computes
from blogdata.orchestration.landing import Landed
from blogdata.orchestration.step import Step, Upstream
from blogdata.patterns.error_management import dead_letter
from blogdata.patterns.ingestion.landed_formats import extension, has_extension
from blogdata.patterns.ingestion.landed_lines import is_replay
from blogdata.publish.partitions import Grain


@computes("bronze.dead_letters")
def dead_letters(step: Step) -> Mapping[str, Commit]:
    """Keep the rejected rows of each hour of arrival, as received."""
    rejected = _rejected(step, "bronze.visits").withColumn("replay", is_replay())
    return step.publish(rejected, _all_but(step, "bronze.visits", "visits", "filtered"))


@computes("bronze.ad_dead_letters")
def ad_dead_letters(step: Step) -> Mapping[str, Commit]:
    """Keep the rejected rows of each hour of arrival, as received."""
    return step.publish(_rejected(step, "bronze.ads"), _all_but(step, "bronze.ads", "displays"))


def _rejected(step: Step, judged: str) -> DataFrame:
    return step.read(judged).where(F.col("arrival_hour").isin(*step.partitions) & dead_letter.is_rejected())


def _all_but(step: Step, judged: str, *usable: str) -> Upstream:
    """Account for all judged rows but those that some measures count as usable."""
    return Upstream(
        accounts={
            key: Account(
                rows_in=entry.rows_out,
                reasons={"usable": sum(int(entry.measures[name]) for name in usable)},
            )
            for key, entry in accounts.entries(step, judged, step.partitions).items()
        }
    )


@computes("bronze.ads")
def ads(step: Step) -> Mapping[str, Commit]:
    """Replicate every landed line, with its reject reasons in a column; no line is dropped."""
    landed = Landed.of(step, "ads", Grain.HOUR)
    landed.announce_new_fields()
    lines = landed.lines().withColumnRenamed("partition", "arrival_hour")
    return step.publish(ad_displays.judge(lines), landed.source())


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
