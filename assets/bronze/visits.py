"""bronze.visits: every landed line of an hour of arrival, judged but unchanged."""

from collections.abc import Mapping
from dataclasses import replace

from assets.transforms import crawlers
from assets.transforms.request_lines import with_acting_crawlers
from assets.transforms.visit_lines import ReceivedLines
from blogdata.lake.commit import Commit
from blogdata.landing.landed_formats import extension
from blogdata.orchestration.computation import computes
from blogdata.orchestration.landing import Landed
from blogdata.orchestration.step import Step
from blogdata.publish.partitions import Grain


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
