"""Resources as Dagster gets them: their values are those of the deployment, whatever a run asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dagster import (
    ConfigurableResource,
    FilesystemIOManager,
    InitResourceContext,
    IOManager,
    IOManagerDefinition,
    ResourceDefinition,
)


def fixed(found: Mapping[str, ConfigurableResource[Any]]) -> Mapping[str, ResourceDefinition]:
    """Define resources whose values the configuration of a run cannot replace, and where steps keep their outputs.

    Whoever may launch a run would otherwise choose the home whose `blogdata.toml` names the options of the JVM.
    """
    definitions = {name: resource.get_resource_definition() for name, resource in found.items()}
    return {
        **{
            name: ResourceDefinition(one.resource_fn, config_schema={}, description=one.description)
            for name, one in definitions.items()
        },
        "io_manager": IOManagerDefinition(_outputs, config_schema={}),
    }


def _outputs(context: InitResourceContext) -> IOManager:
    # Dagster's own default, whose folder a run could replace: files in it are unpickled.
    return FilesystemIOManager().create_io_manager(context)
