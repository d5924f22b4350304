"""landing.devices_table: the table of devices of a database, landed as the delivery of the day (Full Loader)."""

import dagster as dg

from assets import table_loads
from blogdata.orchestration.computation import Context
from blogdata.orchestration.retries import reported
from blogdata.services.config import Settings

KEY = dg.AssetKey(["landing", "devices_table"])


@dg.asset(
    key=KEY,
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
        return dg.MaterializeResult(metadata=table_loads.load(context.resources.deployment.settings()))


def configured(settings: Settings) -> list[dg.AssetsDefinition]:
    """List the assets of the tables that a deployment loads."""
    return [devices_table] if settings.tables.devices is not None else []


def load_due(context: Context) -> None:
    """Load the tables that are due.

    Raises:
        Failure: A table cannot be loaded; a retry if the fault is transient.
    """
    settings = context.resources.deployment.settings()
    with reported(context):
        if table_loads.is_due(settings, context.resources.lake.events):
            context.log_event(dg.AssetMaterialization(KEY, metadata=table_loads.load(settings)))
