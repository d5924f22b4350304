"""What tables land: `landing.devices_table` as the delivery of the day (Full Loader), `landing.users_table` by days of
change, `landing.legacy_visits` by hours of ingestion and `landing.provider_visits` by hours of files (Incremental
Loader)."""

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import dagster as dg

from assets import table_loads
from blogdata.errors import PlatformError
from blogdata.orchestration.computation import Context, partitions_of
from blogdata.orchestration.dataset import Calendar
from blogdata.orchestration.partition_faults import joined
from blogdata.orchestration.retries import MAX_RETRIES, reported
from blogdata.publish.partitions import Grain
from blogdata.services.config import Settings

KEYS = {
    table_loads.DEVICES: dg.AssetKey(["landing", "devices_table"]),
    table_loads.USERS: dg.AssetKey(["landing", "users_table"]),
    table_loads.LEGACY_VISITS: dg.AssetKey(["landing", "legacy_visits"]),
    table_loads.PROVIDER_VISITS: dg.AssetKey(["landing", "provider_visits"]),
}


@dg.asset(
    key=KEYS[table_loads.DEVICES],
    description="The devices as a table of a database has them now, landed as today's delivery",
    group_name="landing",
    owners=["team:platform"],
    kinds={"postgres"},
    tags={"pattern/full-loader": ""},
    required_resource_keys={"deployment"},
    pool="landing",
)
def devices_table(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
    """Load the table again, whatever has landed today."""
    with reported(context):
        return dg.MaterializeResult(metadata=table_loads.load_devices(context.resources.deployment.settings()))


def _by_window(
    table: str,
    partitions: dg.PartitionsDefinition[str],
    load: Callable[[Settings, Sequence[str]], dict[str, Any]],
    *,
    description: str,
    kind: str,
    tags: Mapping[str, str] = MappingProxyType({}),
) -> dg.AssetsDefinition:
    """Build the asset of a table whose runs load the windows of their partitions and no other ones."""

    @dg.asset(
        key=KEYS[table],
        description=description,
        kinds={kind},
        tags=tags,
        partitions_def=partitions,
        backfill_policy=dg.BackfillPolicy.single_run(),
        group_name="landing",
        owners=["team:platform"],
        required_resource_keys={"deployment"},
        pool="landing",
    )
    def asset(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
        with reported(context):
            settings = context.resources.deployment.settings()
            return dg.MaterializeResult(metadata=load(settings, partitions_of(context, ".".join(KEYS[table].path))))

    return asset


def users_table(calendar: Calendar) -> dg.AssetsDefinition:
    """Build the asset of a table of users; `calendar` has the deployment's partition definitions."""
    return _by_window(
        table_loads.USERS,
        calendar[Grain.DAY],
        lambda settings, days: table_loads.load_windows(settings, table_loads.USERS, days),
        description="Changed users of a table that had not landed yet, by the day of their change",
        kind="postgres",
        tags={"pattern/incremental-loader": ""},
    )


def legacy_visits(calendar: Calendar) -> dg.AssetsDefinition:
    """Build the asset of a table of visits; `calendar` has the deployment's partition definitions."""
    return _by_window(
        table_loads.LEGACY_VISITS,
        calendar[Grain.HOUR],
        lambda settings, hours: table_loads.load_windows(settings, table_loads.LEGACY_VISITS, hours),
        description="Rows of a table of visits that had not landed yet, by their hour of ingestion",
        kind="postgres",
        tags={"pattern/incremental-loader": ""},
    )


def provider_visits(calendar: Calendar) -> dg.AssetsDefinition:
    """Build the asset of a provider's files of visits; `calendar` has the deployment's partition definitions."""
    return _by_window(
        table_loads.PROVIDER_VISITS,
        calendar[Grain.HOUR],
        table_loads.load_provided,
        description="A provider's files of visits, byte for byte, by their hour",
        kind="file",
    )


def configured(settings: Settings, calendar: Calendar) -> list[dg.AssetsDefinition]:
    """List the assets of the tables that a deployment loads."""
    tables = settings.tables
    # Single-run backfills are marked beta in this Dagster; it is pinned.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)
        return [
            *([devices_table] if tables.devices is not None else []),
            *([users_table(calendar)] if tables.users is not None else []),
            *([legacy_visits(calendar)] if tables.legacy_visits is not None else []),
            *([provider_visits(calendar)] if tables.provider_visits is not None else []),
        ]


def load_due(context: Context, tables: Collection[str]) -> None:
    """Load the tables that are due, of some tables.

    Raises:
        Failure: Tables cannot be loaded, the others are; a retry if a fault is transient.
    """
    settings = context.resources.deployment.settings()
    faults: dict[str, PlatformError] = {}
    with reported(context):
        for table in table_loads.due(settings, context.resources.lake.events):
            if table not in tables:
                continue
            try:
                context.log_event(dg.AssetMaterialization(KEYS[table], metadata=table_loads.load(settings, table)))
            except PlatformError as error:
                # It is in no other table's way: a provider's files need no database.
                faults[table] = error
        if faults:
            retried = [error for error in faults.values() if error.transient and context.retry_number < MAX_RETRIES]
            raise retried[0] if retried else joined(faults, where="[tables]", outcome="were not loaded", parts="tables")
