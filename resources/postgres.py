"""PostgreSQL as a Dagster resource: the deployment's own server, or the one at its address."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg
import psycopg

from services import config, postgres


class PostgresResource(dg.ConfigurableResource["PostgresResource"]):
    """Connections to the deployment's PostgreSQL; run configuration and logs never hold its password.

    Args:
        home: `BLOGDATA_HOME` of the deployment.
    """

    home: str

    @contextmanager
    def connection(self) -> Iterator[psycopg.Connection]:
        """Connect; a server of the deployment's own that ended is started again.

        Yields:
            A connection in autocommit mode: transactions are begun by those who need them.

        Raises:
            ConfigurationError: The deployment has no PostgreSQL.
            PostgresUnreachable: It does not answer, or went away inside; transient.
        """
        url = postgres.ensure(config.load(overrides={"BLOGDATA_HOME": self.home}))
        with postgres.connected(url) as connection:
            connection.autocommit = True
            yield connection
