"""The Dagster definitions of a deployment: assets, checks, jobs, schedules, sensors and resources."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import dagster as dg

from assets import checks, landing, ops, serving
from assets.code import code
from assets.gold.visits_weekly import frozen_years
from assets.ops import maintained_tables
from assets.serving.page_files import page_files
from assets.streams import STREAMS
from blogdata.cli.pipeline import Pipeline
from blogdata.operations.job import RUNS
from blogdata.orchestration.dataset import assets, calendar
from blogdata.orchestration.refresh_request import Request
from blogdata.orchestration.run_values import values_only
from blogdata.orchestration.streamed_dataset import streamed
from blogdata.publish.partitions import Grain
from blogdata.services.config import Settings, load
from quality.data_docs import data_docs
from quality.profiles import profiles
from resources import connections
from resources.zone import days_of
from sensors import JOBS, instigators, jobs


def fixed(found: Mapping[str, dg.ConfigurableResource[Any]]) -> Mapping[str, dg.ResourceDefinition]:
    """Define resources whose values the configuration of a run cannot replace, and where steps keep their outputs.

    Whoever may launch a run would otherwise choose the home whose `blogdata.toml` names the options of the JVM.
    """
    definitions = {name: resource.get_resource_definition() for name, resource in found.items()}
    return {
        **{
            name: dg.ResourceDefinition(one.resource_fn, config_schema={}, description=one.description)
            for name, one in definitions.items()
        },
        # Dagster's own default, whose folder a run could replace: files in it are unpickled.
        "io_manager": dg.IOManagerDefinition(dg.FilesystemIOManager().create_io_manager, config_schema={}),
    }


def build(settings: Settings) -> dg.Definitions:
    """Build the definitions for one deployment.

    Returns:
        The definitions; partitions begin and end where the deployment's data do.
    """
    sinks, lineage = serving.configured(settings), code()
    requested = dg.ResourceDefinition(
        Request().get_resource_definition().resource_fn, config_schema=values_only(Request)
    )
    runs = dg.ResourceDefinition.hardcoded_resource(partial(Pipeline, settings, quiet=True))
    days = days_of(settings)
    partitions = calendar(days.first, days.last)
    loaded = landing.configured(settings, partitions)
    resources = {**fixed(connections(settings)), "request": requested, RUNS: runs}
    sensors, schedules = instigators(automatic=settings.run_automatically)
    return dg.Definitions(
        assets=[
            *landing.specs(loaded),
            *loaded,
            *assets(lineage, partitions),
            *[sink.asset(partitions, lineage.version) for sink in sinks],
            *(streamed(stream, version=lineage.version) for stream in STREAMS.values()),
            page_files(partitions[Grain.DAY]),
            frozen_years,
            ops.lineage,
            ops.report,
            maintained_tables,
            data_docs,
            profiles,
        ],
        asset_checks=checks.CHECKS,
        jobs=[jobs.refresh(lineage, sinks), *JOBS],
        schedules=schedules,
        sensors=sensors,
        resources=resources,
        # All steps share one process and one Spark session: a step has no startup cost.
        executor=dg.in_process_executor.configured({"retries": {"enabled": {}}}),
    )


@dg.definitions
def defs() -> dg.Definitions:
    """The definitions of the deployment this process belongs to."""
    return build(load())
