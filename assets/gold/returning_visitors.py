"""gold.returning_visitors: who of a week came back in a later one, from the sketches of the hours."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import functions as F

from blogdata.errors import PlatformError
from blogdata.lake.commit import WHOLE_TABLE, Account, Commit, Entry, kept
from blogdata.orchestration import accounts
from blogdata.orchestration.computation import computes
from blogdata.orchestration.step import Step, Upstream
from blogdata.patterns.storage import dataset_materializer
from blogdata.planning.reaches import Ended, Span
from quality.contracts.audience import AUDIENCE_DIMENSIONS

AUDIENCE = "gold.audience_hourly"


@computes("gold.returning_visitors")
def returning_visitors(step: Step) -> Mapping[str, Commit]:
    """Compute the view from the hours of its weeks."""
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
    hours = step.read(AUDIENCE).where(F.col("event_hour") >= span.first)
    rows = dataset_materializer.shown(step.spark, step.contract.view, {AUDIENCE: hours})
    return step.publish(rows, Upstream(accounts={WHOLE_TABLE: Account(rows_in=page_views(published, span))}))


def page_views(published: Mapping[str, Entry], span: Span) -> int:
    """Count the page views of the weeks, without those of hours that have expired."""
    there = kept(published)
    return sum(there[hour].rows_in for hour in span.hours & there.keys()) // len(AUDIENCE_DIMENSIONS)
