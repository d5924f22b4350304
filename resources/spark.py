"""The Spark session of a step: attached to the deployment's warm server, or a classic one in the process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dagster_pyspark import LazyPySparkResource
from pydantic import Field, PrivateAttr

from blogdata.services import config, spark_attached, spark_conf, spark_launch
from blogdata.services.config import Settings
from blogdata.services.spark_attached import drop

__all__ = ["SparkResource", "drop"]


class SparkResource(LazyPySparkResource):
    """A Spark session on demand, as `spark_session`.

    Args:
        home: `BLOGDATA_HOME` of the deployment; the process's own when empty.
        mode: `local`, `remote` or `classic`; the deployment's own setting when empty.
    """

    spark_config: dict[str, Any] = Field(default_factory=dict)
    home: str = ""
    mode: str = ""
    _settings: Settings | None = PrivateAttr(default=None)

    @property
    def settings(self) -> Settings:
        """Settings of the deployment, read at the first use."""
        if self._settings is None:
            given = {"BLOGDATA_HOME": self.home, "BLOGDATA_SPARK_MODE": self.mode}
            self._settings = config.load(overrides={name: value for name, value in given.items() if value})
        return self._settings

    @property
    def spark_session(self) -> Any:
        """The session; a new one if the server was lost since the last use."""
        if self.settings.spark.mode == "classic":
            return self._classic()
        return spark_attached.session(self.settings, self.spark_config)

    @contextmanager
    def guard(self) -> Iterator[Any]:
        """Yield the session; raise `SparkServerLost` if it was lost inside the context: the next use attaches again."""
        if self.settings.spark.mode == "classic":
            yield self._classic()
        else:
            with spark_attached.guarded(self.settings, self.spark_config) as session:
                yield session

    def _classic(self) -> Any:
        if self._spark_session is None:
            parts = spark_conf.prepare(self.settings)
            # In classic mode PySpark starts Java, and takes its settings from the environment only.
            os.environ.update(spark_launch.environment(self.settings, parts))
            os.environ.pop("SPARK_REMOTE", None)
            os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)
            conf = {**spark_conf.build(self.settings, parts), **self.spark_config}
            self._spark_session = LazyPySparkResource(spark_config=conf).spark_session
        return self._spark_session
