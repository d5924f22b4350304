"""landing.hourly_access_logs: whole access logs, split by hour of arrival into the landing zone."""

from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import dagster as dg

from assets.sources import LANDING_ACCESS_LOGS
from errors import PlatformError
from orchestration.computation import Context, access_of
from orchestration.retries import failure
from patterns.ingestion.combined_log import hour_of_combined
from patterns.ingestion.landed_entries import printable
from patterns.ingestion.landed_links import LinkRefused
from patterns.ingestion.log_splitter import split_by_hour, unsplit_logs
from planning import touched
from planning.look import Snapshot
from quality.contracts import LANDED

KEY = dg.AssetKey(["landing", "hourly_access_logs"])


@dg.asset(
    key=KEY,
    description="Access logs, byte for byte, split into the hours in which their lines arrived",
    group_name="landing",
    owners=["team:platform"],
    kinds={"file"},
    deps=[LANDING_ACCESS_LOGS],
    required_resource_keys={"lake"},
    pool="landing",
)
def hourly_access_logs(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
    """Split every log that is not completely split yet; earlier parts are not touched."""
    return dg.MaterializeResult(metadata=_split(context))


@dg.op(required_resource_keys={"lake", "request"}, out=dg.Out(dg.Nothing))
def split_access_logs(context: dg.OpExecutionContext) -> Iterator[dg.Output[None]]:
    """Split the pending logs, unless the run is restricted to some datasets, and compare files that were touched."""
    fault: Exception | None = None
    access = access_of(context)
    for dataset, keys in touched.compare(Snapshot(access.landing_zone, access.events), LANDED.values()).items():
        context.log.warning(f"{dataset}: landed files have another content than was published: {', '.join(keys)}")
    if not context.resources.request.datasets and unsplit_logs(access.landing_path):
        try:
            context.log_event(dg.AssetMaterialization(KEY, metadata=_split(context)))
        except dg.Failure as error:
            fault = error
    # A log that cannot be split does not block other deliveries.
    yield dg.Output(None)
    if fault is not None:
        raise fault


def _split(context: Context) -> dict[str, Any]:
    landing = access_of(context).landing_path
    now = datetime.now(timezone.utc)
    reports, faults = [], []
    for log in unsplit_logs(landing):
        try:
            reports.append(split_by_hour(log, landing, hour_of_combined, now=now))
        except PlatformError as error:
            context.log.error(f"{printable(log.name)} waits: {error}")
            # A link in place of an hour's folder is a finding of the landing zone.
            faults += [] if isinstance(error, LinkRefused) else [error]
    if faults:
        # The other logs are split: one that cannot be is in no other's way.
        raise failure(context, faults[0]) from faults[0]
    return {
        "logs": len(reports),
        "lines": sum(report.lines for report in reports),
        "bytes": sum(part.bytes for report in reports for part in report.parts),
        "hours": sorted({part.hour for report in reports for part in report.parts}),
        "hours_without_a_line": sorted({hour for report in reports for hour in report.empty_hours}),
        "lines_without_a_time": sum(report.unreadable for report in reports),
    }
