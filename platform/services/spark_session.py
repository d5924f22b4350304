"""Sessions on a Spark Connect server: attached quickly, given up quickly when the server is gone."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

# A server on this machine that does not answer is gone; one elsewhere may be behind a network that recovers.
# Waits are 0.05 s, 0.2 s, 0.8 s, 3.2 s, ... each: about 4 s and 85 s in all.
_LOCAL_RETRIES = 4
_REMOTE_RETRIES = 9
_LONGEST_WAIT_MILLISECONDS = 20_000


def attach(url: str) -> SparkSession:
    """Open a session of its own on a server.

    Spark's client would try for ten minutes to reach a server that died; this one gives up in seconds.

    Args:
        url: Address of the server, `sc://...`.

    Returns:
        A new session; also the process's default one if there was none.
    """
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession

    # As PySpark's own entry point does: `pyspark.sql.functions` then builds columns without a JVM here.
    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
    # These print every failed query with the server's stack; whoever handles the error says what matters of it.
    loud = ["SQLQueryContextLogger", "DataFrameQueryContextLogger"]
    if "SPARK_CONNECT_LOG_LEVEL" not in os.environ:
        # Off by default; Dagster's configuration of logging switches it on without knowing.
        loud.append("pyspark.sql.connect.logging")
    for name in loud:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    session = SparkSession.builder.remote(url).create()
    near = url.startswith(("sc://localhost", "sc://127.0.0.1", "sc://[::1]"))
    retries = _LOCAL_RETRIES if near else _REMOTE_RETRIES
    policy = DefaultPolicy(max_retries=retries, max_backoff=_LONGEST_WAIT_MILLISECONDS)
    session.client.set_retry_policies([policy])
    return session


def release(session: SparkSession, *, lost: bool = False) -> None:
    """Close a session and free what the server keeps for it.

    Args:
        session: From :func:`attach`; closing twice does nothing.
        lost: The server or the session is known to be gone, so there is nobody to tell.
    """
    from pyspark.sql.connect.client.retries import DefaultPolicy

    session.client.set_retry_policies([DefaultPolicy(max_retries=0)])
    session.release_session_on_close = not lost
    session.stop()
