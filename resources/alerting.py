"""Alerts as a Dagster resource: which deployment's settings say who is told."""

from __future__ import annotations

import dagster as dg

from services import config
from services.config import Settings


class AlertingResource(dg.ConfigurableResource["AlertingResource"]):
    """The deployment whose alerts are sent.

    Args:
        home: `BLOGDATA_HOME` of the deployment.
    """

    home: str

    def settings(self) -> Settings:
        """Read the settings as they are now, so that a changed channel needs no restart.

        Raises:
            ConfigurationError: A setting cannot be used.
        """
        return config.load(overrides={"BLOGDATA_HOME": self.home})
