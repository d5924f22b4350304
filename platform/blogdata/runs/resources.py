"""The resources of a deployment: Spark, PostgreSQL, the lake and the settings; run configuration holds no secret."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import dagster as dg
import psycopg
from dagster_pyspark import LazyPySparkResource
from pydantic import Field, PrivateAttr

from blogdata.operate import config, postgres, postgres_connection, spark_attached
from blogdata.operate.config import Settings
from blogdata.runs.lake_resource import DeploymentResource, LakeResource


def connections(settings: Settings) -> Mapping[str, dg.ConfigurableResource[Any]]:
    home = str(settings.home)
    return {
        "spark": SparkResource(home=home),
        "deployment": DeploymentResource(home=home),
        "postgres": PostgresResource(home=home),
        "lake": LakeResource(
            root=str(settings.lake),
            landing=str(settings.landing),
            ready=settings.ready,
            checkpoints=str(settings.checkpoints),
        ),
    }


class SparkResource(LazyPySparkResource):
    """A Spark session on demand, as `spark_session`; without a home, of the process's own deployment."""

    spark_config: dict[str, Any] = Field(default_factory=dict)
    home: str = ""
    _settings: Settings | None = PrivateAttr(default=None)

    @property
    def settings(self) -> Settings:
        """Settings of the deployment, read at the first use."""
        if self._settings is None:
            self._settings = config.load(overrides={"BLOGDATA_HOME": self.home} if self.home else {})
        return self._settings

    @property
    def spark_session(self) -> Any:
        """The session; a new one if the server was lost since the last use."""
        return spark_attached.session(self.settings)

    def guard(self) -> AbstractContextManager[Any]:
        """Provide the session; `SparkServerLost` is raised if it was lost inside: the next use attaches again."""
        return spark_attached.guarded(self.settings)


class PostgresResource(dg.ConfigurableResource["PostgresResource"]):
    """Connections to the deployment's PostgreSQL; run configuration and logs never hold its password."""

    home: str

    @contextmanager
    def connection(self) -> Iterator[psycopg.Connection]:
        """Connect in autocommit mode; the deployment's own server is restarted if it ended.

        Raises:
            PostgresUnreachable: The server does not answer, or was lost inside the context; transient.
        """
        address = postgres.running_address(config.load(overrides={"BLOGDATA_HOME": self.home}))
        with postgres_connection.connected(address) as connection:
            connection.autocommit = True
            yield connection
