"""The jobs that sensors and schedules start: selections of the lineage that share their partitions."""

from __future__ import annotations

import dagster as dg

from orchestration import concurrent_runner
from orchestration.dataset import key_of
from quality.contracts import STREAMED


def _selection(*datasets: str) -> dg.AssetSelection:
    return dg.AssetSelection.assets(*[key_of(dataset) for dataset in datasets])


ARRIVAL = ("bronze.visits", "bronze.dead_letters", "silver.late_visits")
DAILY = ("gold.visits_cube_daily", "gold.page_stats")
WEEKLY = ("gold.visits_cube_weekly",)
EVENT_HOUR = ("silver.visits", "silver.visit_conflicts", "silver.visits_enriched")

hour_of_arrival = dg.define_asset_job(
    "hour_of_arrival",
    selection=_selection(*ARRIVAL, *EVENT_HOUR),
    description="Everything of one hour, from its landed files to enriched visits",
    tags=concurrent_runner.ARRIVING,
)
event_hour = dg.define_asset_job(
    "event_hour",
    selection=_selection(*EVENT_HOUR),
    description="An event hour again, with the rows that arrived late for it",
    tags=concurrent_runner.LATE,
)
late_rows = dg.define_asset_job(
    "late_rows",
    selection=_selection("silver.late_visits"),
    description="The late rows of an hour of arrival, judged by the watermark it has now",
    tags=concurrent_runner.LATE,
)
daily = dg.define_asset_job(
    "daily",
    selection=_selection(*DAILY),
    description="The gold datasets of a day",
)
referrals = dg.define_asset_job(
    "referrals",
    selection=_selection("gold.referral_stats"),
    description="The referral statistics of a day that is not final",
)
weekly = dg.define_asset_job(
    "weekly",
    selection=_selection(*WEEKLY),
    description="The gold datasets of a week",
)
visits_weekly = dg.define_asset_job(
    "visits_weekly",
    selection=_selection("gold.visits_weekly"),
    description="The page views of a week that is not final",
)
freeze = dg.define_asset_job(
    "freeze",
    selection=dg.AssetSelection.assets(["ops", "frozen_years"]),
    description="Turn the weeks of each past year, once they are final, into one immutable table",
)
retention = dg.define_asset_job(
    "retention",
    selection=dg.AssetSelection.assets(["ops", "retired_copies"]),
    description="Remove the copies and replaced tables whose time is over; never what is visible",
)
users_of_a_day = dg.define_asset_job(
    "users_of_a_day",
    selection=_selection("bronze.users"),
    description="One day's delivery of the users",
)
devices = dg.define_asset_job(
    "devices",
    selection=_selection("bronze.devices", "silver.devices"),
    description="The newest delivery of the devices",
)
access_logs = dg.define_asset_job(
    "access_logs",
    selection=dg.AssetSelection.assets(["landing", "hourly_access_logs"]),
    description="Split landed access logs by hour of arrival",
)
live = dg.define_asset_job(
    "live",
    selection=_selection(*STREAMED),
    description="A tick of the stream of visits: what has landed since the last one",
    tags=concurrent_runner.ARRIVING,
)
data_docs = dg.define_asset_job(
    "data_docs",
    selection=dg.AssetSelection.assets(["ops", "data_docs"]),
    description="Validate the newest partitions with Great Expectations and render the Data Docs",
)
lineage = dg.define_asset_job(
    "lineage",
    selection=dg.AssetSelection.assets(["ops", "lineage"]),
    description="Export what was published as OpenLineage events",
)
WRITES = {
    hour_of_arrival.name: frozenset(key_of(name) for name in (*ARRIVAL, *EVENT_HOUR)),
    event_hour.name: frozenset(key_of(name) for name in EVENT_HOUR),
    late_rows.name: frozenset({key_of("silver.late_visits")}),
}
"""The hourly datasets each job writes."""
JOBS = (
    hour_of_arrival,
    event_hour,
    late_rows,
    daily,
    referrals,
    weekly,
    visits_weekly,
    freeze,
    retention,
    users_of_a_day,
    devices,
    access_logs,
    live,
    data_docs,
    lineage,
)
