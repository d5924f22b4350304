"""landing.hourly_access_logs: whole access logs, split by hour of arrival into the landing zone."""

from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import dagster as dg

from assets.sources import LANDING_ACCESS_LOGS
from orchestration.dataset import failure
from patterns.core.errors import PlatformError
from patterns.ingestion.combined_log import hour_of_combined
from patterns.ingestion.log_splitter import pending, split_by_hour


@dg.asset(
    key=["landing", "hourly_access_logs"],
    description="Access logs, byte for byte, split into the hours in which their lines arrived",
    group_name="landing",
    owners=["team:platform"],
    kinds={"file"},
    tags={"pattern/passthrough-replicator": ""},
    deps=[LANDING_ACCESS_LOGS],
    required_resource_keys={"lake"},
    pool="landing",
)
def hourly_access_logs(context: dg.AssetExecutionContext) -> Iterator[Any]:
    """Split every log that is not wholly split yet; what was split before is not touched."""
    landing = context.resources.lake.landing_path
    now = datetime.now(timezone.utc)
    try:
        reports = [split_by_hour(log, landing, hour_of_combined, now=now) for log in pending(landing)]
    except PlatformError as error:
        raise failure(context, error) from error
    yield dg.MaterializeResult(
        metadata={
            "logs": len(reports),
            "lines": sum(report.lines for report in reports),
            "bytes": sum(part.bytes for report in reports for part in report.parts),
            "hours": sorted({part.hour for report in reports for part in report.parts}),
            "lines_without_a_time": sum(report.unreadable for report in reports),
        }
    )
