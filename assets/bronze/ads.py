"""bronze.ads: every landed line of an hour of arrival that should be a displayed ad, judged but unchanged."""

from collections.abc import Mapping

from assets.transforms.ad_lines import AdLines
from blogdata.lake.commit import Commit
from blogdata.orchestration.computation import computes
from blogdata.orchestration.landing import Landed
from blogdata.orchestration.step import Step
from blogdata.publish.partitions import Grain


@computes("bronze.ads")
def ads(step: Step) -> Mapping[str, Commit]:
    """Replicate every landed line, with its reject reasons in a column; no line is dropped."""
    landed = Landed.of(step, "ads", Grain.HOUR)
    return step.publish(landed.rows(AdLines()).withColumnRenamed("partition", "arrival_hour"), landed.source())
