"""The jobs that sensors, schedules and people start, beside the materialization of single assets."""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg

from assets.gold.visits_weekly import frozen_years
from assets.sources import split_access_logs
from blogdata.deliver import share, staging
from blogdata.deliver.feeds import PartnerFeed
from blogdata.deliver.sinks import Sink
from blogdata.privacy import retention, rotate
from blogdata.runs.computation import LineageCode
from blogdata.runs.refresh_job import refresh_job
from blogdata.watch import ops
from blogdata.watch.data_docs import data_docs as data_docs_of_newest
from blogdata.watch.ops import maintained_tables
from blogdata.watch.profiles import profiles as profiles_of_new
from sensors import replay


def refresh(code: LineageCode, sinks: Sequence[Sink | PartnerFeed]) -> dg.JobDefinition:
    served = [(sink.contract, sink.step()) for sink in sinks]
    return refresh_job(code, first=split_access_logs, served=served)


def _over(name: str, asset: dg.AssetsDefinition, what: str) -> dg.UnresolvedAssetJobDefinition:
    return dg.define_asset_job(name, selection=dg.AssetSelection.assets(asset), description=what)


freeze = _over("freeze", frozen_years, "Turn the weeks of each past year, once final, into one immutable table")
maintain = _over("maintain", maintained_tables, "Compact tables with too many small files, remove unneeded files")
data_docs = _over("data_docs", data_docs_of_newest, "Validate the newest partitions and render the Data Docs")
profiles = _over("profiles", profiles_of_new, "Profile what is new, and compare it with what was usual")
lineage = _over("lineage", ops.lineage, "Export what was published as OpenLineage events")
report = _over("report", ops.report, "Write the page about the blog and its data")
ASSETS = (frozen_years, ops.lineage, ops.report, maintained_tables, data_docs_of_newest, profiles_of_new)
_OF_ASSETS = (freeze, maintain, data_docs, profiles, lineage, report)
JOBS = (*_OF_ASSETS, replay.job, retention.job, share.job, staging.job, rotate.job)
"""The jobs that a person starts, too, for what they do to the data."""
