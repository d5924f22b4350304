"""What lands: the external assets of the landing zone, and the assets that write to it.

Runs of `refresh` split whole logs by hour of arrival first; landing.devices_table is the delivery of the day (Full
Loader); users_table and legacy_visits load by days of change and hours (Incremental Loader).
"""

import warnings
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timezone
from typing import Any

import dagster as dg

from assets import table_loads
from blogdata.errors import PlatformError
from blogdata.landing import log_formats
from blogdata.landing.landed_links import LinkRefused
from blogdata.landing.log_splitter import split_all, unsplit_logs
from blogdata.landing.readiness_marker import printable
from blogdata.landing.suppression_list import erase_known, splitting
from blogdata.operate.config import Settings
from blogdata.runs.computation import Context, access_of, partitions_of
from blogdata.runs.dataset import Calendar
from blogdata.runs.refresh_request import Request
from blogdata.runs.retries import MAX_RETRIES, failure, joined, reported

_LOADED = {
    table_loads.DEVICES: ("devices_table", "The devices as a table of a database has them now, as today's delivery"),
    table_loads.USERS: ("users_table", "New changes of users of a table, by day of change"),
    table_loads.LEGACY_VISITS: ("legacy_visits", "New rows of a table of visits, by hour of ingestion"),
}
"""Table to its asset and the asset's description."""
KEYS = {table: dg.AssetKey(["landing", name]) for table, (name, _) in _LOADED.items()}


def _loaded(table: str, partitions: dg.PartitionsDefinition[str] | None) -> dg.AssetsDefinition:
    """Build the asset of a table; if it has partitions, its runs load the windows of theirs and no other ones."""

    @dg.asset(
        key=KEYS[table],
        description=_LOADED[table][1],
        kinds={"postgres"},
        tags={f"pattern/{'incremental' if partitions else 'full'}-loader": ""},
        partitions_def=partitions,
        backfill_policy=dg.BackfillPolicy.single_run() if partitions else None,
        group_name="landing",
        owners=["team:platform"],
        required_resource_keys={"deployment"},
        pool="landing",
    )
    def asset(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
        with reported(context):
            settings = context.resources.deployment.settings()
            if partitions is None:
                return dg.MaterializeResult(metadata=table_loads.load_devices(settings))
            windows = partitions_of(context, ".".join(KEYS[table].path))
            return dg.MaterializeResult(metadata=table_loads.load_windows(settings, table, windows))

    return asset


def configured(settings: Settings, calendar: Calendar) -> list[dg.AssetsDefinition]:
    # Single-run backfills are marked beta in this Dagster; it is pinned.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)
        return [
            _loaded(table, calendar[table_loads.WINDOWS[table]] if table in table_loads.WINDOWS else None)
            for table in _LOADED
            if getattr(settings.tables, table) is not None
        ]


def load_due(context: Context, tables: Collection[str]) -> None:
    """Load the tables that are due, of some tables; one that cannot be loaded is in no other one's way."""
    settings = context.resources.deployment.settings()
    faults: dict[str, PlatformError] = {}
    with reported(context):
        for table in table_loads.due(settings, context.resources.lake.events.publications):
            if table not in tables:
                continue
            try:
                context.log_event(dg.AssetMaterialization(KEYS[table], metadata=table_loads.load(settings, table)))
            except PlatformError as error:
                faults[table] = error
        if faults:
            retried = [error for error in faults.values() if error.transient and context.retry_number < MAX_RETRIES]
            raise retried[0] if retried else joined(faults, where="[tables]", outcome="were not loaded", parts="tables")


KEY = dg.AssetKey(["landing", "hourly_access_logs"])
ACCESS_LOGS = dg.AssetKey(["landing", "access_logs"])
_FLAGGED = "by hour of arrival, with _SUCCESS when an hour is complete"
SOURCES = tuple(
    dg.AssetSpec(["landing", name], deps=deps, description=description, group_name="landing", kinds={kind})
    for name, kind, deps, description in (
        ("visits", "json", [KEY], f"Visit events and access log lines {_FLAGGED}"),
        ("users", "json", [], "Daily full delivery of the users, and changed users of a table"),
        ("devices", "csv", [], "Full delivery of the devices"),
        ("ads", "json", [], f"Displayed ads {_FLAGGED}"),
        (ACCESS_LOGS.path[-1], "file", [], "Access logs of the blog's web servers"),
        (KEY.path[-1], "file", [ACCESS_LOGS], "Access logs, byte for byte, split by the hour of arrival"),
    )
)


def specs(loaded: Sequence[dg.AssetsDefinition]) -> list[dg.AssetSpec]:
    """Return the external assets of a deployment, each with the assets of `loaded` tables that write to it.

    `landing/devices_table` writes to `landing/devices`, `landing/users_table` to `landing/users`, others to visits.
    """
    writers: dict[str, list[dg.AssetsDefinition]] = {}
    for asset in loaded:
        table, dash, _ = asset.key.path[-1].partition("_table")
        writers.setdefault(table if dash else "visits", []).append(asset)
    return [spec.replace_attributes(deps=[*spec.deps, *writers.get(spec.key.path[-1], ())]) for spec in SOURCES]


@dg.op(required_resource_keys={"lake", "deployment", "request"}, out=dg.Out(dg.Nothing))
def split_access_logs(context: dg.OpExecutionContext) -> Iterator[dg.Output[None]]:
    """Split pending logs and load due tables, unless the run is for other datasets."""
    faults: list[Exception] = []
    access, request = access_of(context), context.resources.request
    if _is_wanted("bronze.visits", request) and unsplit_logs(access.landing_path):
        try:
            context.log_event(dg.AssetMaterialization(KEY, metadata=_split(context)))
        except dg.Failure as error:
            faults.append(error)
    wanted = [table for table, reader in table_loads.READERS.items() if _is_wanted(reader, request)]
    if wanted:
        try:
            load_due(context, wanted)
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
    """Split every log that is not completely split yet; lines of forgotten persons are overwritten before."""
    settings, landing = context.resources.deployment.settings(), access_of(context).landing_path
    try:
        known = log_formats.formats(settings.logs.formats, settings.logs.zone)
        erase_known(settings, landing, unsplit_logs(landing))
        with splitting(settings):
            results = list(split_all(landing, known, now=datetime.now(timezone.utc)))
    except PlatformError as error:
        raise failure(context, error) from error
    reports, faults = [], list[PlatformError]()
    for log, result in results:
        if isinstance(result, PlatformError):
            context.log.error(f"{printable(log.name)} waits: {result}")
            # A link in place of an hour's folder is a finding of the landing zone.
            faults += [] if isinstance(result, LinkRefused) else [result]
        else:
            reports.append(result)
    if faults:
        # The other logs are split: one that cannot be is in no other's way.
        raise failure(context, faults[0]) from faults[0]
    return {
        "logs": len(reports),
        "lines": sum(report.lines for report in reports),
        "hours": sorted({hour for report in reports for hour in report.parts.values()}),
        "hours_without_a_line": sorted({hour for report in reports for hour in report.empty_hours}),
    }
