"""The partner as a Dagster resource: run configuration and logs never hold its key."""

from __future__ import annotations

import dagster as dg

from services import config
from services.config import Settings


class PartnerResource(dg.ConfigurableResource["PartnerResource"]):
    """The deployment whose partner gets events.

    Args:
        home: `BLOGDATA_HOME` of the deployment.
    """

    home: str

    def settings(self) -> Settings:
        """Read the settings as they are now.

        Raises:
            ConfigurationError: A setting cannot be used.
        """
        return config.load(overrides={"BLOGDATA_HOME": self.home})
