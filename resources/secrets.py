"""Secrets as a Dagster resource: run configuration and logs hold names, never values."""

from __future__ import annotations

import dagster as dg

from services import config, secrets


class SecretsResource(dg.ConfigurableResource["SecretsResource"]):
    """The secrets of a deployment, read when they are used.

    Args:
        home: `BLOGDATA_HOME` of the deployment.
    """

    home: str

    def read(self, name: str) -> str:
        """Read a secret by its name.

        Raises:
            ConfigurationError: The secret cannot be used.
        """
        return secrets.read(config.load(overrides={"BLOGDATA_HOME": self.home}), name)
