"""bronze.dead_letters and bronze.ad_dead_letters: lines of an hour of arrival that cannot be used, with all reasons."""

from collections.abc import Mapping

from pyspark.sql import DataFrame

from blogdata.lake.commit import Account, Commit
from blogdata.landing.lines import is_replay
from blogdata.orchestration import accounts
from blogdata.orchestration.computation import computes
from blogdata.orchestration.step import Step, Upstream
from blogdata.patterns.error_management import dead_letter


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
            key: Account(
                rows_in=entry.rows_out,
                reasons={"usable": sum(int(entry.measures[name]) for name in usable)},
            )
            for key, entry in accounts.entries(step, judged, step.partitions).items()
        }
    )
