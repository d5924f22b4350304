"""The Dagster definitions of a deployment: assets, checks, jobs, schedules, sensors and resources."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pkgutil import resolve_name
from typing import Any

import dagster as dg

import sensors
from assets import sources, streams
from assets.code import code
from blogdata.operate.config import Settings, load
from blogdata.runs.dataset import assets, calendar
from blogdata.runs.job import RUNS
from blogdata.runs.names import values_only
from blogdata.runs.refresh_request import Request
from blogdata.runs.zone import days_of
from resources import connections

RUNNER = "blogdata.cli.pipeline:Pipeline"
"""What runs the lineage in this process."""


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
    """Build the definitions for one deployment; partitions begin and end where its data do."""
    lineage = code()
    requested = dg.ResourceDefinition(
        Request().get_resource_definition().resource_fn, config_schema=values_only(Request)
    )
    # By its name, when a job runs the lineage: the command line is built on these definitions.
    runs = dg.ResourceDefinition(lambda _: partial(resolve_name(RUNNER), settings, quiet=True))
    partitions = calendar(*days_of(settings))
    loaded = sources.configured(settings, partitions)
    resources = {**fixed(connections(settings)), "request": requested, RUNS: runs}
    landed = [*sources.specs(loaded), *loaded]
    datasets = dg.Definitions(
        assets=[*landed, *assets(lineage, partitions), *streams.configured(lineage.version)],
        resources=resources,
        # All steps share one process and one Spark session: a step has no startup cost.
        executor=dg.in_process_executor.configured({"retries": {"enabled": {}}}),
    )
    return dg.Definitions.merge(datasets, sensors.configured(settings, lineage, partitions))


@dg.definitions
def defs() -> dg.Definitions:
    """The definitions of the deployment this process belongs to."""
    return build(load())
