"""Opens and closes sessions on a Spark Connect server, with short retries if the server is gone."""

from __future__ import annotations

import logging
import os
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

# A local server that does not answer is gone; a remote one may be behind a network that recovers.
# The waits are 0.05 s, 0.2 s, 0.8 s, 3.2 s, ...: in total about 4 s for a local and 85 s for a remote server.
_LOCAL_RETRIES = 4
_REMOTE_RETRIES = 9
_LONGEST_WAIT_MILLISECONDS = 20_000


def attach(url: str) -> SparkSession:
    """Open a new session on a server.

    By default Spark's client retries a dead server for ten minutes. This session gives up after about 4 s on a local
    server and 85 s on a remote one.

    Returns:
        A new session; it becomes the process's default session if there is none.
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
    """Close a session and free its resources on the server.

    Args:
        session: A session from :func:`attach`; closing it twice does nothing.
    """
    from pyspark.sql.connect.client.retries import DefaultPolicy

    session.client.set_retry_policies([DefaultPolicy(max_retries=0)])
    session.release_session_on_close = not lost
    session.stop()
