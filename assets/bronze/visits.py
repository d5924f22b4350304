"""bronze.visits and bronze.ads: every landed line of an hour, judged but unchanged; and the dead letters of both."""

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import DataFrame

from assets.bronze import crawlers
from assets.bronze.ad_lines import AdLines
from assets.bronze.request_lines import with_acting_crawlers
from assets.bronze.visit_lines import ReceivedLines
from blogdata.contract.partitions import Grain
from blogdata.contract.publication import Account, Commit
from blogdata.landing import dead_letter
from blogdata.landing.landed_formats import extension
from blogdata.landing.lines import is_replay
from blogdata.runs import accounts
from blogdata.runs.computation import computes
from blogdata.runs.landed_inputs import Landed
from blogdata.runs.step import Step, Upstream


@computes("bronze.visits")
def visits(step: Step) -> Mapping[str, Commit]:
    """Replicate every landed line beside what it was read into, with its reject reasons; no line is dropped."""
    landed, logs = Landed.of(step, "visits", Grain.HOUR), step.deployment.settings().logs
    has_logs = any(extension(file.name) == "log" for part in landed.partitions.values() for file in part.files)
    rows = landed.rows(ReceivedLines(logs if has_logs else None)).withColumnRenamed("partition", "arrival_hour")
    if has_logs:
        rows = with_acting_crawlers(rows, logs.crawlers)
    judged_by = {**crawlers.versions(), "settings": logs.filters_version}
    return step.publish(rows, replace(landed.source(), judged_by=judged_by))


@computes("bronze.ads")
def ads(step: Step) -> Mapping[str, Commit]:
    """Replicate every landed line, with its reject reasons in a column; no line is dropped."""
    landed = Landed.of(step, "ads", Grain.HOUR)
    return step.publish(landed.rows(AdLines()).withColumnRenamed("partition", "arrival_hour"), landed.source())


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
    return step.read(judged, step.partitions).where(dead_letter.is_rejected())


def _all_but(step: Step, judged: str, *usable: str) -> Upstream:
    return Upstream(
        accounts={
            key: Account(rows_in=entry.rows_out, reasons={"usable": sum(int(entry.measures[name]) for name in usable)})
            for key, entry in accounts.entries(step, judged, step.partitions).items()
        }
    )
