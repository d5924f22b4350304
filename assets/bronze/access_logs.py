"""landing.hourly_access_logs: whole access logs, split by hour of arrival into the landing zone."""

from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import dagster as dg

from assets import table_loads
from assets.bronze import tables
from assets.sources import LANDING_ACCESS_LOGS
from blogdata.errors import PlatformError
from blogdata.orchestration.computation import Context, access_of
from blogdata.orchestration.refresh_request import Request
from blogdata.orchestration.retries import failure
from blogdata.patterns.ingestion import log_formats
from blogdata.patterns.ingestion.landed_links import LinkRefused
from blogdata.patterns.ingestion.landed_partition import printable
from blogdata.patterns.ingestion.log_splitter import SplitLog, split_all, unsplit_logs
from blogdata.planning import arrivals
from blogdata.planning.snapshot import Snapshot
from blogdata.services.config import Settings
from blogdata.suppression.entry import erase_known, splitting
from quality.contracts import LANDED


def split_pending(settings: Settings, landing: Path) -> list[SplitLog]:
    """Split every log that is not completely split yet; lines of forgotten persons are overwritten before.

    Raises:
        LockTimeout: Others are overwriting or splitting for too long; transient.
    """
    known = log_formats.formats(settings.logs.formats)
    pending = unsplit_logs(landing)
    if not pending:
        return []
    erase_known(settings, landing, pending)
    with splitting(settings):
        return list(split_all(landing, known.hour_of, now=datetime.now(timezone.utc)))


KEY = dg.AssetKey(["landing", "hourly_access_logs"])
READER = "bronze.visits"
"""The dataset that reads the hours."""


@dg.asset(
    key=KEY,
    description="Access logs, byte for byte, split into the hours in which their lines arrived",
    group_name="landing",
    owners=["team:platform"],
    kinds={"file"},
    deps=[LANDING_ACCESS_LOGS],
    required_resource_keys={"lake", "deployment"},
    pool="landing",
)
def hourly_access_logs(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
    """Split every log that is not completely split yet; earlier parts are not touched."""
    return dg.MaterializeResult(metadata=_split(context))


@dg.op(required_resource_keys={"lake", "deployment", "request"}, out=dg.Out(dg.Nothing))
def split_access_logs(context: dg.OpExecutionContext) -> Iterator[dg.Output[None]]:
    """Split pending logs and load due tables, unless the run is for other datasets, and compare touched files."""
    faults: list[Exception] = []
    access, request = access_of(context), context.resources.request
    for dataset, keys in arrivals.compare(Snapshot(access.landing_zone, access.events), LANDED.values()).items():
        context.log.warning(f"{dataset}: landed files have another content than was published: {', '.join(keys)}")
    if _is_wanted(READER, request) and unsplit_logs(access.landing_path):
        try:
            context.log_event(dg.AssetMaterialization(KEY, metadata=_split(context)))
        except dg.Failure as error:
            faults.append(error)
    wanted = [table for table, reader in table_loads.READERS.items() if _is_wanted(reader, request)]
    if wanted:
        try:
            tables.load_due(context, wanted)
        except dg.Failure as error:
            faults.append(error)
    # A log that cannot be split, or a table that cannot be loaded, does not block other deliveries.
    yield dg.Output(None)
    if faults:
        raise faults[0]


def _is_wanted(reader: str, request: Request) -> bool:
    """Return whether a run computes what is new in a dataset, and not only what it was told to compute again."""
    return not request.datasets or (reader in request.datasets and not request.only_again)


def _split(context: Context) -> dict[str, Any]:
    try:
        found = split_pending(context.resources.deployment.settings(), access_of(context).landing_path)
    except PlatformError as error:
        raise failure(context, error) from error
    reports, faults = [one.report for one in found if one.report is not None], []
    for one in found:
        if one.fault is not None:
            context.log.error(f"{printable(one.log.name)} waits: {one.fault}")
            # A link in place of an hour's folder is a finding of the landing zone.
            faults += [] if isinstance(one.fault, LinkRefused) else [one.fault]
    if faults:
        # The other logs are split: one that cannot be is in no other's way.
        raise failure(context, faults[0]) from faults[0]
    return {
        "logs": len(reports),
        "lines": sum(report.lines for report in reports),
        "hours": sorted({hour for report in reports for hour in report.parts.values()}),
        "hours_without_a_line": sorted({hour for report in reports for hour in report.empty_hours}),
        "lines_without_a_time": sum(report.unreadable for report in reports),
    }
