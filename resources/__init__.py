"""Connections: Spark, the lake, the services."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dagster import ConfigurableResource

    from blogdata.operate.config import Settings


def connections(settings: Settings) -> Mapping[str, ConfigurableResource[Any]]:
    # Imported here: a command that only needs the landing zone does without Dagster and Spark's client.
    from blogdata.runs.lake_resource import DeploymentResource, LakeResource
    from resources.postgres_resource import PostgresResource
    from resources.spark import SparkResource

    return {
        "spark": SparkResource(home=str(settings.home)),
        "deployment": DeploymentResource(home=str(settings.home)),
        "postgres": PostgresResource(home=str(settings.home)),
        "lake": LakeResource(
            root=str(settings.lake),
            landing=str(settings.landing),
            ready=settings.ready,
            checkpoints=str(settings.checkpoints),
        ),
    }
