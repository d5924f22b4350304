"""Events from outside as a Dagster resource: which deployment's settings say who may send some."""

from __future__ import annotations

import dagster as dg

from services import config
from services.config import Settings


class EventsResource(dg.ConfigurableResource["EventsResource"]):
    """The deployment whose events start runs.

    Args:
        home: `BLOGDATA_HOME` of the deployment.
    """

    home: str

    def settings(self) -> Settings:
        """Read the settings as they are now, so that a new sender needs no restart.

        Raises:
            ConfigurationError: A setting cannot be used.
        """
        return config.load(overrides={"BLOGDATA_HOME": self.home})
