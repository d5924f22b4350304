"""The Spark session of a step: attached to the deployment's warm server, or to one that somebody else runs."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from dagster_pyspark import LazyPySparkResource
from pydantic import Field, PrivateAttr

from blogdata.operate import config, spark_attached
from blogdata.operate.config import Settings


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
