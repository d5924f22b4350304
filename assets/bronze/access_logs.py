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
from patterns.ingestion.landed_links import LinkRefused
from patterns.ingestion.log_splitter import split_by_hour, unsplit_logs

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
    """Split the pending logs, unless the run is restricted to some datasets."""
    fault: Exception | None = None
    if not context.resources.request.datasets and unsplit_logs(access_of(context).landing_path):
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
    reports = []
    try:
        for log in unsplit_logs(landing):
            try:
                reports.append(split_by_hour(log, landing, hour_of_combined, now=now))
            except LinkRefused as error:
                # A link in place of an hour's folder blocks only the logs with lines of that hour.
                context.log.error(f"{log.name} waits: {error}")
    except PlatformError as error:
        raise failure(context, error) from error
    return {
        "logs": len(reports),
        "lines": sum(report.lines for report in reports),
        "bytes": sum(part.bytes for report in reports for part in report.parts),
        "hours": sorted({part.hour for report in reports for part in report.parts}),
        "hours_without_a_line": sorted({hour for report in reports for hour in report.empty_hours}),
        "lines_without_a_time": sum(report.unreadable for report in reports),
    }
