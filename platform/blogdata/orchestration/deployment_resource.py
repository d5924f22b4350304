"""The deployment as a Dagster resource: its settings, read when they are needed; run configuration holds no secret."""

from __future__ import annotations

import dagster as dg

from blogdata.services import config
from blogdata.services.config import Settings


class DeploymentResource(dg.ConfigurableResource["DeploymentResource"]):
    """The deployment that a step or a sensor works for."""

    home: str

    def settings(self) -> Settings:
        """Read the settings as they are now, so that a change of them needs no restart.

        Raises:
            ConfigurationError: A setting cannot be used.
        """
        return config.load(overrides={"BLOGDATA_HOME": self.home})
