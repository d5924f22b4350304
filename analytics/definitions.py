"""The definitions of the analytics team's code location.

The forecast follows the data: a sensor starts it when the platform has materialized the daily report, whoever made it
do so. The newsletter follows a call: the platform launches the job `newsletter` when the days of a week are there.
"""

from __future__ import annotations

import os

import dagster as dg

from analytics import assets, gold
from analytics.gold import DAILY_REPORT, FoldersResource

forecast_job = dg.define_asset_job(
    "forecast", dg.AssetSelection.assets(assets.VIEWS_FORECAST), description="Forecast tomorrow's page views"
)
newsletter_job = dg.define_asset_job(
    "newsletter",
    dg.AssetSelection.assets(assets.NEWSLETTER),
    description="Write the newsletter of a week; called by the platform, which knows it by this name",
)


def report_materialized(status: dg.DefaultSensorStatus) -> dg.SensorDefinition:
    """Build the sensor on the platform's daily report; of several new days, the newest event stands for all."""

    @dg.asset_sensor(
        asset_key=assets.key_of(DAILY_REPORT),
        job=forecast_job,
        name="report_materialized",
        minimum_interval_seconds=10,
        default_status=status,
        description="Starts the forecast when the platform has published the daily report",
    )
    def sensor(context: dg.SensorEvaluationContext, event: dg.EventLogEntry) -> dg.RunRequest:
        # Not the run alone: it may publish the report again.
        return dg.RunRequest(run_key=f"{event.run_id} {event.timestamp}")

    return sensor


@dg.definitions
def defs() -> dg.Definitions:
    """The definitions; `ANALYTICS_AUTOMATIC=true` has the sensor on from the start."""
    automatic = os.environ.get("ANALYTICS_AUTOMATIC") == "true"
    sensing = dg.DefaultSensorStatus.RUNNING if automatic else dg.DefaultSensorStatus.STOPPED
    # As known when the location is loaded. Each run loads it, so that weeks of earlier days can be called for at once.
    weeks = assets.weeks_since(gold.first_day(FoldersResource().gold_folder))
    return dg.Definitions(
        assets=[assets.views_forecast, assets.weekly_newsletter(weeks)],
        jobs=[forecast_job, newsletter_job],
        sensors=[report_materialized(sensing)],
        resources=_fixed(FoldersResource()),
        executor=dg.in_process_executor.configured({"retries": {"enabled": {}}}),
    )


def _fixed(places: FoldersResource) -> dict[str, dg.ResourceDefinition]:
    """Define the resources so that the configuration of a run can replace none of their folders."""
    resource = places.get_resource_definition()
    return {
        "places": dg.ResourceDefinition(resource.resource_fn, config_schema={}, description=resource.description),
        "io_manager": dg.IOManagerDefinition(
            lambda context: dg.FilesystemIOManager().create_io_manager(context), config_schema={}
        ),
    }
