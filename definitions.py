"""Everything Dagster needs to know, composed: assets, checks, jobs, schedules, sensors and resources."""

from __future__ import annotations

import dagster as dg

from assets import bronze, gold, live, ops, serving, silver, sources
from orchestration import dead_runs
from quality.data_docs import data_docs
from resources import connections
from sensors import JOBS, SCHEDULES, SENSORS
from services import postgres
from services.config import Settings, load


def build(settings: Settings) -> dg.Definitions:
    """Compose the platform for one deployment.

    Args:
        settings: Where it lives and what it runs on.

    Returns:
        The definitions.
    """
    served = serving.ASSETS if postgres.configured(settings) else ()
    return dg.Definitions(
        assets=[
            *sources.SOURCES,
            *bronze.ASSETS,
            *silver.ASSETS,
            *gold.ASSETS,
            *live.ASSETS,
            *served,
            ops.lineage,
            ops.retired_copies,
            data_docs,
        ],
        jobs=JOBS,
        schedules=SCHEDULES,
        sensors=SENSORS,
        resources=connections(settings),
        # One process, one session: a step costs what its work costs.
        executor=dead_runs.in_process,
    )


@dg.definitions
def defs() -> dg.Definitions:
    """The definitions of the deployment this process belongs to."""
    return build(load())
