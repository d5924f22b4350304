"""gold.returning_visitors: who of a week came back in a later one, from the sketches of the hours."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from blogdata.contract.partitions import Grain, coarser
from blogdata.contract.publication import WHOLE_TABLE, Account, Commit, Entry, kept
from blogdata.errors import PlatformError
from blogdata.patterns.storage import dataset_materializer
from blogdata.patterns.storage.dataset_materializer import Followed
from blogdata.planning.reaches import Ended, Span
from blogdata.runs import accounts
from blogdata.runs.computation import computes
from blogdata.runs.step import Step, Upstream
from quality.contracts.audience import ALL, AUDIENCE_DIMENSIONS
from quality.contracts.returning_visitors import OWN_WEEK

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

AUDIENCE = "gold.audience_hourly"
FOLLOWED = Followed(
    dataset=AUDIENCE, partition="event_hour", columns=("events", "visitors"), where=f"dimension = '{ALL}'"
)


@computes("gold.returning_visitors")
def returning_visitors(step: Step) -> Mapping[str, Commit]:
    """Compute the view from the hours of the weeks that changed, and from what the table has of the others."""
    (read,) = step.contract.reads
    assert isinstance(read.reach, Ended)
    published = accounts.entries(step, AUDIENCE)
    span = read.reach.span(published)
    if span is None:
        raise PlatformError(
            what="no week with visitors has ended",
            where=step.contract.dataset,
            next_step="nothing is wrong: it is computed when an hour of the next week has visitors",
        )
    hours, refreshed = _hours(step, span, published)
    rows = dataset_materializer.evaluate(step.spark, step.contract.view, {AUDIENCE: hours})
    account = Account(rows_in=page_views(published, span))
    return step.publish(rows, Upstream(accounts={WHOLE_TABLE: account}, refreshed=refreshed))


def page_views(published: Mapping[str, Entry], span: Span) -> int:
    """Count the page views of the weeks, without those of hours that have expired."""
    hours = kept(published)
    return sum(hours[hour].rows_in for hour in span.hours & hours.keys()) // len(AUDIENCE_DIMENSIONS)


def recomputed(hours: Collection[str], changed: Collection[str], weeks: Collection[str]) -> set[str]:
    """Find the weeks that a refresh computes from their hours; `weeks` are those of the table.

    A week may be missing although none of its hours changed: one that ended, or an old one, if the week that had not
    ended has lost its rows and the table reaches back to an earlier one again.
    """
    return {_week(hour) for hour in changed} | ({_week(hour) for hour in hours} - {*weeks})


def _hours(step: Step, span: Span, published: Mapping[str, Entry]) -> tuple[DataFrame, str]:
    """Read the hours that the view needs; of a week that has not changed, one stands for all, with their sketch."""
    hours = step.read(AUDIENCE).where(F.col("event_hour") >= span.first)
    before = step.events.publications(step.contract.dataset).get(WHOLE_TABLE)
    changed, why = dataset_materializer.changes(
        step.spark, step.lake, FOLLOWED, before, until=step.pin(AUDIENCE), code_version=step.run.code_version
    )
    if changed is None or before is None:
        return hours, f"all weeks, since {why}"
    # The newest version, not that of the publication: a compaction may have replaced its files, and not its rows.
    kept_rows = step.lake.read(step.spark, step.contract.dataset).where(OWN_WEEK)
    with_rows = [hour for hour in span.hours if published[hour].rows_kept]
    touched = recomputed(with_rows, changed, [row[0] for row in kept_rows.select("event_week").collect()])
    again = [hour for hour in sorted(span.hours) if _week(hour) in touched]
    stand_in = kept_rows.where(~F.col("event_week").isin(*touched) if touched else F.lit(True)).select(
        F.concat("event_week", F.lit("T00")).alias("event_hour"), F.lit(ALL).alias("dimension"), "events", "visitors"
    )
    read = hours.where(F.col("event_hour").isin(*again, span.open)).select(*stand_in.columns)
    return read.unionByName(stand_in.where(F.col("event_hour") >= span.first)), _in_words(touched, span, why)


def _in_words(touched: set[str], span: Span, why: str) -> str:
    weeks = sorted(week for week in touched if span.first <= week <= span.last)
    return f"{', '.join(weeks) or 'no week'}, since {why}"


def _week(hour: str) -> str:
    return coarser(hour, Grain.HOUR, Grain.WEEK)
