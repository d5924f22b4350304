"""gold.returning_visitors: who of a week came back in a later one, from the sketches of the hours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from blogdata.errors import PlatformError
from blogdata.lake.commit import WHOLE_TABLE, Account, Commit
from blogdata.orchestration import accounts
from blogdata.orchestration.computation import computes
from blogdata.orchestration.step import Step, Upstream
from blogdata.patterns.storage import dataset_materializer
from blogdata.patterns.storage.dataset_materializer import Followed
from blogdata.planning.ended import Ended, Span
from blogdata.publish.partitions import Grain, coarser
from quality.contracts.audience import ALL, AUDIENCE_DIMENSIONS
from quality.contracts.returning import OWN_WEEK

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

AUDIENCE = "gold.audience_hourly"
FOLLOWED = Followed(
    dataset=AUDIENCE, partition="event_hour", columns=("events", "visitors"), where=f"dimension = '{ALL}'"
)


class NoWeekHasEnded(PlatformError):
    """Raised when there is no row to show: no hour of a second week has visitors."""


@computes("gold.returning_visitors")
def returning_visitors(step: Step) -> Mapping[str, Commit]:
    """Compute the view from the hours of the weeks that changed, and from what the table has of the others."""
    (read,) = step.contract.reads
    assert isinstance(read.reach, Ended)
    published = accounts.entries(step, AUDIENCE)
    span = read.reach.span(published)
    if span is None:
        raise NoWeekHasEnded(
            what="no week with visitors has ended",
            where=step.contract.dataset,
            next_step="nothing is wrong: it is computed when an hour of the next week has visitors",
        )
    hours, refreshed = _hours(step, span)
    rows = dataset_materializer.shown(step.spark, step.contract.view, {AUDIENCE: hours})
    views = sum(published[hour].rows_in for hour in span.hours) // len(AUDIENCE_DIMENSIONS)
    return step.publish(rows, Upstream(accounts={WHOLE_TABLE: Account(rows_in=views)}, refreshed=refreshed))


def _hours(step: Step, span: Span) -> tuple[DataFrame, str]:
    """Read the hours that the view needs; of a week that has not changed, one stands for all, with their sketch."""
    hours = step.read(AUDIENCE).where(F.col("event_hour") >= span.first)
    before = step.events.publications(step.contract.dataset).get(WHOLE_TABLE)
    found = dataset_materializer.changes(
        step.spark, step.lake, FOLLOWED, before, until=step.pin(AUDIENCE), code_version=step.run.code_version
    )
    if found.changed is None or before is None:
        return hours, f"all weeks, since {found.why}"
    known = before.measures["newest_week"]
    touched = {_week(hour) for hour in found.changed} | {week for week in map(_week, span.hours) if week > known}
    anew = [hour for hour in sorted(span.hours) if _week(hour) in touched]
    # The newest version, not that of the publication: a compaction may have replaced its files, and not its rows.
    kept = step.lake.read(step.spark, step.contract.dataset).where(OWN_WEEK)
    stand_in = kept.where(~F.col("event_week").isin(*touched) if touched else F.lit(True)).select(
        F.concat("event_week", F.lit("T00")).alias("event_hour"), F.lit(ALL).alias("dimension"), "events", "visitors"
    )
    read = hours.where(F.col("event_hour").isin(*anew, span.open)).select(*stand_in.columns)
    return read.unionByName(stand_in.where(F.col("event_hour") >= span.first)), _in_words(touched, span, found.why)


def _in_words(touched: set[str], span: Span, why: str) -> str:
    weeks = sorted(week for week in touched if span.first <= week <= span.last)
    return f"{', '.join(weeks) or 'no week'}, since {why}"


def _week(hour: str) -> str:
    return coarser(hour, Grain.HOUR, Grain.WEEK)
