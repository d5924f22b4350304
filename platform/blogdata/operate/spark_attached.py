"""Sessions on a Spark Connect server; this process has one, attached at first use, and again when it is lost."""

from __future__ import annotations

import atexit
import logging
import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from blogdata.operate import spark_connect
from blogdata.operate.config import Settings, SparkSettings
from blogdata.operate.spark_connect import SparkServer
from blogdata.operate.spark_launch import TABLE_FILES

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

# A local server that does not answer is gone; a remote one may be behind a network that recovers.
# The waits are 0.05 s, 0.2 s, 0.8 s, 3.2 s, ...: in total about 4 s for a local and 85 s for a remote server.
_LOCAL_RETRIES = 4
_REMOTE_RETRIES = 9
_LONGEST_WAIT_MILLISECONDS = 20_000


# The steps of a run in this process share a session, and so do deployments on the same server of somebody else.
_attached: dict[Settings | SparkSettings, tuple[SparkSession, SparkServer]] = {}
_lock = threading.RLock()


def _key(settings: Settings) -> Settings | SparkSettings:
    return settings if settings.spark.remote is None else settings.spark


def session(settings: Settings) -> Any:
    with _lock:
        held = _attached.get(_key(settings))
        if held is None or held[0].is_stopped or not held[1].may_answer:
            drop(settings)
            held = _attached[_key(settings)] = _attach(settings)
        return held[0]


@contextmanager
def guarded(settings: Settings) -> Iterator[Any]:
    """Provide the session; if it is lost inside the context, SparkServerLost is raised, and the next use attaches."""
    held = session(settings)
    try:
        yield held
    except Exception as error:
        if not spark_connect.is_lost(error):
            raise
        session_of_now, server = _attached.get(_key(settings), (None, None))
        if session_of_now is held:
            drop(settings)
        raise spark_connect.lost(error, server.url if server else "the Spark server") from error


def drop(settings: Settings) -> None:
    with _lock:
        if attached := _attached.pop(_key(settings), None):
            held, server = attached
            release(held, lost=not server.may_answer)


def _attach(settings: Settings) -> tuple[SparkSession, SparkServer]:
    if not _attached:
        atexit.unregister(_release_all)
        atexit.register(_release_all)
    server = spark_connect.running_server(settings)
    attached = attach(server.url)
    if settings.spark.remote is not None:
        # An external server was not started with the platform's configuration.
        configured = dict(settings.spark.conf)
        for key, value in TABLE_FILES.items():
            attached.conf.set(key, configured.get(key, value))
    return attached, server


def _release_all() -> None:
    for held, server in _attached.values():
        release(held, lost=not server.may_answer)
    _attached.clear()


def attach(url: str) -> SparkSession:
    """Open a new session on a server; the first one is the process's default.

    Spark's client would retry a dead server for ten minutes; this one gives up after 4 s, on a remote server 85 s.
    """
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession

    # As PySpark's own entry point does: `pyspark.sql.functions` then builds columns without a local JVM.
    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
    # These loggers print every failed query with the server's stack trace; the code that handles the error reports it.
    loud = ["SQLQueryContextLogger", "DataFrameQueryContextLogger"]
    if "SPARK_CONNECT_LOG_LEVEL" not in os.environ:
        # Off by default, but Dagster's logging configuration switches it on as a side effect.
        loud.append("pyspark.sql.connect.logging")
    for name in loud:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    # Spark's client warns that it gives up, and then raises the error.
    warnings.filterwarnings("ignore", message=r"\[RETRIES_EXCEEDED\]")
    session = SparkSession.builder.remote(url).create()
    near = url.startswith(("sc://localhost", "sc://127.0.0.1", "sc://[::1]"))
    retries = _LOCAL_RETRIES if near else _REMOTE_RETRIES
    policy = DefaultPolicy(max_retries=retries, max_backoff=_LONGEST_WAIT_MILLISECONDS)
    session.client.set_retry_policies([policy])
    return session


def release(session: SparkSession, *, lost: bool = False) -> None:
    """Close a session, once or twice, and free its resources on the server."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    session.client.set_retry_policies([DefaultPolicy(max_retries=0)])
    session.release_session_on_close = not lost
    session.stop()
