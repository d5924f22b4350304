"""What tables land: `landing.devices_table` as the delivery of the day (Full Loader), `landing.users_table` by days of
change, `landing.legacy_visits` by hours of ingestion and `landing.provider_visits` by hours of files (Incremental
Loader)."""

import warnings
from collections.abc import Collection

import dagster as dg

from assets import table_loads
from blogdata.errors import PlatformError
from blogdata.orchestration.calendar import Calendar
from blogdata.orchestration.computation import Context, partitions_of
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


_BY_WINDOW = (
    (table_loads.USERS, Grain.DAY, "Changed users of a table that had not landed yet, by the day of their change"),
    (table_loads.LEGACY_VISITS, Grain.HOUR, "Rows of a table of visits that had not landed yet, by hour of ingestion"),
    (table_loads.PROVIDER_VISITS, Grain.HOUR, "A provider's files of visits, byte for byte, by their hour"),
)


def _by_window(table: str, partitions: dg.PartitionsDefinition[str], description: str) -> dg.AssetsDefinition:
    """Build the asset of a table whose runs load the windows of their partitions and no other ones."""
    in_files = table == table_loads.PROVIDER_VISITS

    @dg.asset(
        key=KEYS[table],
        description=description,
        kinds={"file" if in_files else "postgres"},
        tags={} if in_files else {"pattern/incremental-loader": ""},
        partitions_def=partitions,
        backfill_policy=dg.BackfillPolicy.single_run(),
        group_name="landing",
        owners=["team:platform"],
        required_resource_keys={"deployment"},
        pool="landing",
    )
    def asset(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
        with reported(context):
            windows = partitions_of(context, ".".join(KEYS[table].path))
            found = table_loads.load_windows(context.resources.deployment.settings(), table, windows)
            return dg.MaterializeResult(metadata=found)

    return asset


def configured(settings: Settings, calendar: Calendar) -> list[dg.AssetsDefinition]:
    """List the assets of the tables that a deployment loads."""
    # Single-run backfills are marked beta in this Dagster; it is pinned.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)
        loaded = [
            _by_window(table, calendar[grain], description)
            for table, grain, description in _BY_WINDOW
            if getattr(settings.tables, table) is not None
        ]
    return [*([devices_table] if settings.tables.devices is not None else []), *loaded]


def load_due(context: Context, tables: Collection[str]) -> None:
    """Load the tables that are due, of some tables; one that cannot be loaded is in no other one's way."""
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
