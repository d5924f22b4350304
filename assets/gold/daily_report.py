"""gold.daily_report: the figures of a day from the sources that are there, each with its completeness."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import functions as F

from assets.gold.fan_in import not_taken_in
from assets.transforms import daily_figures as transform
from assets.transforms.daily_figures import DEAD_LETTERS
from blogdata.lake.commit import Account, Commit
from blogdata.orchestration import accounts
from blogdata.orchestration.computation import computes
from blogdata.orchestration.step import Step, Upstream
from blogdata.patterns.data_flow import unaligned_fan_in
from blogdata.planning.available import Available
from blogdata.publish.partitions import Grain, finer
from quality.contracts import CONTRACTS


@computes("gold.daily_report")
def daily_report(step: Step) -> Mapping[str, Commit]:
    """Count each day from what is there of its sources (Unaligned Fan-In)."""
    hours = {day: finer(day, Grain.DAY, Grain.HOUR) for day in step.partitions}
    within = [hour for keys in hours.values() for hour in keys]
    frames, there, rows = {}, {}, dict.fromkeys(step.partitions, 0)
    for read in step.contract.reads:
        assert isinstance(read.reach, Available)
        # Never read itself: a delivery arrives through the source.
        delivered = step.events.publications(read.reach.delivered)
        published = accounts.entries(step, read.dataset, within) if step.exists(read.dataset) else {}
        # Dead letters are those of the hour of arrival: they are there when it was delivered, held or not.
        held = () if read.dataset == DEAD_LETTERS else not_taken_in(step.events, read.reach.delivered, within)
        there[read.dataset] = unaligned_fan_in.PeriodSource(published=published, delivered=delivered, held=held)
        if published:
            column = CONTRACTS[read.dataset].partition_column
            assert column is not None
            frame = step.read(read.dataset).where(F.col(column).isin(*sorted(published)))
            frames[read.dataset] = frame.withColumn("period", F.substring(column, 1, 10))
        for hour, entry in published.items():
            rows[hour[:10]] += entry.rows_out
    gathered = unaligned_fan_in.gather(step.partitions, Grain.DAY, Grain.HOUR, there)
    return step.publish(
        transform.report(step.spark, frames, gathered),
        Upstream(accounts={day: Account(rows_in=count) for day, count in rows.items()}),
    )
