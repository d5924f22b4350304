"""The Spark session of a step: attached to the deployment's warm server, or a classic one in the process."""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dagster_pyspark import LazyPySparkResource
from pydantic import Field, PrivateAttr

from services import config, processes, spark_conf, spark_connect, spark_launch, spark_probe, spark_session
from services.config import Settings

_UNCHECKED_SECONDS = 30.0


@dataclass(kw_only=True)
class _Attached:
    session: Any
    url: str
    process: processes.ProcessIdentity | None
    checked: float


# One session for each deployment a process talks to: steps of a run share what they attached.
_attached: dict[Settings, _Attached] = {}
_lock = threading.RLock()


class SparkResource(LazyPySparkResource):
    """A Spark session on demand, as `spark_session`.

    Args:
        spark_config: Spark configuration of the session, laid over the deployment's.
        home: `BLOGDATA_HOME` of the deployment, for instance `EnvVar("BLOGDATA_HOME")`; the process's own
            when empty.
        mode: `local`, `remote` or `classic`; the deployment's own setting when empty.
        remote: Address of a Spark Connect server; the deployment's own setting when empty.
    """

    spark_config: dict[str, Any] = Field(default_factory=dict)
    home: str = ""
    mode: str = ""
    remote: str = ""
    _settings: Settings | None = PrivateAttr(default=None)

    @property
    def settings(self) -> Settings:
        """Settings of the deployment, read at the first use."""
        if self._settings is None:
            given = {
                "BLOGDATA_HOME": self.home,
                "BLOGDATA_SPARK_MODE": self.mode,
                "SPARK_REMOTE": self.remote,
            }
            self._settings = config.load(overrides={name: value for name, value in given.items() if value})
        return self._settings

    @property
    def spark_session(self) -> Any:
        """The session; a new one when the server went away since the last use.

        Raises:
            SparkServerUnreachable: A remote server does not answer.
            SparkServerFailed: The local server cannot be started.
        """
        if self.settings.spark.mode == "classic":
            return self._classic()
        with _lock:
            attached = _attached.get(self.settings)
            if attached is None or not _usable(attached):
                if attached is not None:
                    drop(self.settings)
                attached = _attach(self.settings)
                _attached[self.settings] = attached
                for key, value in self.spark_config.items():
                    attached.session.conf.set(key, value)
            return attached.session

    @contextmanager
    def guard(self) -> Iterator[Any]:
        """Give the session, and name a lost server for what it is.

        Yields:
            The session.

        Raises:
            SparkServerLost: Server or session went away inside; the next use attaches anew.
        """
        session = self.spark_session
        try:
            yield session
        except Exception as error:
            if self.settings.spark.mode == "classic" or not spark_probe.is_lost(error):
                raise
            attached = _attached.get(self.settings)
            if attached is not None and attached.session is session:
                drop(self.settings)
            url = attached.url if attached is not None else self.settings.spark.remote
            raise spark_probe.lost(error, url or "the local Spark server") from error

    def _classic(self) -> Any:
        if self._spark_session is None:
            parts = spark_conf.prepare(self.settings)
            # A classic Spark's Java is started by PySpark, which looks nowhere but in the environment.
            os.environ.update(spark_launch.environment(self.settings, parts))
            os.environ.pop("SPARK_REMOTE", None)
            os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)
            conf = {**spark_conf.build(self.settings, parts), **self.spark_config}
            self._spark_session = LazyPySparkResource(spark_config=conf).spark_session
        return self._spark_session


def drop(settings: Settings) -> None:
    """Forget the session of a deployment, so that the next use attaches anew.

    Args:
        settings: Of the deployment.
    """
    with _lock:
        attached = _attached.pop(settings, None)
        if attached is not None:
            spark_session.release(attached.session, lost=not _reachable(attached))


def _attach(settings: Settings) -> _Attached:
    if not _attached:
        atexit.unregister(_release_all)
        atexit.register(_release_all)
    server = spark_connect.ensure(settings)
    return _Attached(
        session=spark_session.attach(server.url),
        url=server.url,
        process=server.process,
        checked=time.monotonic(),
    )


def _usable(attached: _Attached) -> bool:
    if attached.session.is_stopped:
        return False
    if attached.process is not None and not processes.is_alive(attached.process):
        return False
    if time.monotonic() - attached.checked < _UNCHECKED_SECONDS:
        return True
    try:
        attached.session.version  # noqa: B018 - asks the server, and fails when it forgot the session
    except Exception as error:
        if not spark_probe.is_lost(error):
            raise
        return False
    attached.checked = time.monotonic()
    return True


def _release_all() -> None:
    with _lock:
        for attached in _attached.values():
            spark_session.release(attached.session, lost=not _reachable(attached))
        _attached.clear()


def _reachable(attached: _Attached) -> bool:
    return attached.process is None or processes.is_alive(attached.process)
