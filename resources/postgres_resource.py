"""PostgreSQL as a Dagster resource: the deployment's own server, or the one at its address."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg
import psycopg

from blogdata.operate import config, postgres, postgres_connection


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
