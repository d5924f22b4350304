"""The geolocation service, or the embedded country table, as a Dagster resource."""

from __future__ import annotations

from pathlib import Path

import dagster as dg

from services import config, locations
from services.locations import Locator


class LocationsResource(dg.ConfigurableResource["LocationsResource"]):
    """Who knows the places of addresses, as the settings say when a run asks.

    Args:
        home: `BLOGDATA_HOME` of the deployment.
    """

    home: str

    @property
    def journal(self) -> Path:
        """The file of answers that were paid for and may not be published yet."""
        return config.load(overrides={"BLOGDATA_HOME": self.home}).service_folder("geolocation") / "answers.jsonl"

    def locator(self) -> Locator:
        """Return who is asked.

        Raises:
            ConfigurationError: The settings or the service's key cannot be used.
        """
        return locations.locator_of(config.load(overrides={"BLOGDATA_HOME": self.home}))
