"""silver.sessions: sessions of visitors by hour, with those that the hour leaves open in a companion table."""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame

from blogdata.contract.partitions import Grain, previous
from blogdata.contract.publication import Commit
from blogdata.landing.lines import is_replay
from blogdata.patterns.data_value.incremental_sessionizer import SessionSpec, sessionize
from blogdata.runs import accounts
from blogdata.runs.computation import computes
from blogdata.runs.step import Step, Upstream
from blogdata.table import kept_rows
from blogdata.table.target import Companion
from quality.contracts import CONTRACTS
from quality.contracts.sessions import CARRIED
from quality.session_timeout import INACTIVITY

PENDING = "silver.sessions_pending"
SPEC = SessionSpec(
    visitor="user_id",
    time="event_time",
    ties=("visit_id", "page"),
    position=("arrival_hour", "replayed", "source_file", "source_offset"),
    partition="event_hour",
    inactivity=INACTIVITY,
    count="pages",
    first={"entry_page": "page", "referral": "referral"},
    last={"exit_page": "page"},
    ever=("keep_private",),
    path={"first_pages": "page"},
)


def page_views(visits: DataFrame, *more: Column) -> DataFrame:
    columns = ("user_id", "event_time", "visit_id", "page", "referral", "keep_private")
    # A correction arrived later than the rows of its hour, as in silver.visits.
    return visits.select(*columns, "arrival_hour", is_replay().alias("replayed"), "source_file", "source_offset", *more)


@computes("silver.sessions")
def sessions(step: Step) -> Mapping[str, Commit]:
    """Continue the sessions that the hours before have left open; a range of hours is computed at once."""
    hours = frozenset(step.partitions)
    before = sorted({previous(hour, Grain.HOUR) for hour in hours} - hours)
    known = accounts.entries(step, step.contract.dataset, before) if step.exists(step.contract.dataset) else {}
    open_before = {hour: int(entry.measures["open"]) for hour, entry in known.items()}
    pending = step.read(PENDING, before) if any(open_before.values()) else None
    visits = step.read("silver.visits", step.partitions)
    rows = sessionize(page_views(visits), pending, SPEC, partitions=step.partitions)
    source = Upstream(
        accounts=accounts.same_partition(step, "silver.visits"),
        # Every session that was open has a row again: open, or completed.
        expected={
            hour: {"carried": open_before.get(previous(hour, Grain.HOUR), 0)}
            for hour in hours
            if previous(hour, Grain.HOUR) in before
        },
        landed=CARRIED.read(known, hours, Grain.HOUR),
    )
    of = sum(account.rows_in for account in source.accounts.values()) + sum(open_before.values())
    with kept_rows.computed(rows, of=of) as kept:
        companion = Companion(
            contract=CONTRACTS[PENDING],
            frame=kept.where("NOT is_completed"),
            counted_measure="rows",
            kept_measure="open",
            dropped_reason="completed",
        )
        return step.publish(kept, source, companions=[companion])
