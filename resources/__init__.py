"""Connections: Spark, the lake, the services."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dagster import ConfigurableResource

from resources.alerting import AlertingResource
from resources.events import EventsResource
from resources.lake import LakeResource
from resources.locations import LocationsResource
from resources.partner import PartnerResource
from resources.postgres import PostgresResource
from resources.secrets import SecretsResource
from resources.spark import SparkResource
from services.config import Settings


def connections(settings: Settings) -> Mapping[str, ConfigurableResource[Any]]:
    """Build the resources of a deployment, by the names that steps require.

    Args:
        settings: Settings of the deployment.
    """
    return {
        "spark": SparkResource(home=str(settings.home)),
        "alerting": AlertingResource(home=str(settings.home)),
        "events": EventsResource(home=str(settings.home)),
        "secrets": SecretsResource(home=str(settings.home)),
        "locations": LocationsResource(home=str(settings.home)),
        "partner": PartnerResource(home=str(settings.home)),
        "postgres": PostgresResource(home=str(settings.home)),
        "lake": LakeResource(
            root=str(settings.lake),
            landing=str(settings.landing),
            ready=settings.ready,
            checkpoints=str(settings.checkpoints),
            writes=settings.spark.writes,
        ),
    }
