"""The jobs that sensors, schedules and people start, beside the materialization of single assets."""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg

from assets import ops
from assets.bronze.access_logs import split_access_logs
from assets.code import code
from assets.gold.visits_weekly import frozen_years
from assets.streams import STREAMS
from orchestration.feeds import PartnerFeed
from orchestration.names import asset_key
from orchestration.refresh import JOB, refresh_job
from orchestration.sinks import Sink
from patterns.data_flow.concurrent_runner import ARRIVING
from quality.data_docs import data_docs as data_docs_of_newest
from quality.profiles import profiles as profiles_of_new


def refresh(sinks: Sequence[Sink | PartnerFeed]) -> dg.JobDefinition:
    """Build the job over the whole lineage.

    Args:
        sinks: Datasets served outside the lake.
    """
    return refresh_job(code(), first=split_access_logs, served=[(sink.contract, sink.step()) for sink in sinks])


def _tick(name: str, stream: str, what: str) -> dg.UnresolvedAssetJobDefinition:
    return dg.define_asset_job(
        name,
        selection=dg.AssetSelection.assets(*[asset_key(dataset) for dataset in STREAMS[stream].datasets]),
        description=f"A tick of the stream {what}: what has landed since the last one",
        tags=ARRIVING,
    )


live = _tick("live", "visits", "of visits")
live_enriched = _tick("live_enriched", "enriched", "that joins visits with users, devices and places")
live_ads = _tick("live_ads", "ads", "that joins visits and ads")
live_sessions = _tick("live_sessions", "sessions", "of sessions")
freeze = dg.define_asset_job(
    "freeze",
    selection=dg.AssetSelection.assets(frozen_years),
    description="Turn the weeks of each past year, once they are final, into one immutable table",
)
retention = dg.define_asset_job(
    "retention",
    selection=dg.AssetSelection.assets(ops.retired_copies),
    description="Remove the copies and replaced tables whose time is over; never what is visible",
)
data_docs = dg.define_asset_job(
    "data_docs",
    selection=dg.AssetSelection.assets(data_docs_of_newest),
    description="Validate the newest partitions with Great Expectations and render the Data Docs",
)
profiles = dg.define_asset_job(
    "profiles",
    selection=dg.AssetSelection.assets(profiles_of_new),
    description="Profile what was published since the last look, and compare it with what was usual",
)
lineage = dg.define_asset_job(
    "lineage",
    selection=dg.AssetSelection.assets(ops.lineage),
    description="Export what was published as OpenLineage events",
)
report = dg.define_asset_job(
    "report",
    selection=dg.AssetSelection.assets(ops.report),
    description="Write the page about the blog and its data",
)
JOBS = (live, live_enriched, live_ads, live_sessions, freeze, retention, data_docs, profiles, lineage, report)
__all__ = [
    "JOB",
    "JOBS",
    "data_docs",
    "freeze",
    "lineage",
    "live",
    "live_ads",
    "live_enriched",
    "live_sessions",
    "profiles",
    "refresh",
    "report",
    "retention",
]
