"""Dagster's storage in PostgreSQL: runs, events, sensors and schedules in a schema of their own.

It is Dagster's own storage. What is added: the address comes from the deployment's settings, so that no file and no
command line contains its password; the tables are in the schema :data:`SCHEMA`, beside whatever the database has; and
processes that open an empty database at once, on several machines, do not create its tables twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import psycopg
from dagster import StringSource
from dagster_postgres import DagsterPostgresStorage
from sqlalchemy.engine import make_url

from blogdata.errors import ConfigurationError
from blogdata.services import config, dagster_home, postgres_connection
from blogdata.services.dagster_internals import ConfigurableClassData

SCHEMA = "dagster"
"""The schema of Dagster's tables."""
_LOCK = 0x626C6F67
"""Key of the advisory lock that is held while a process opens the storage."""


class PostgresStorage(DagsterPostgresStorage):
    """The storage that `dagster.yaml` names."""

    @classmethod
    def config_type(cls) -> Mapping[str, Any]:
        return {"home": StringSource}

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]
    ) -> PostgresStorage:
        """Open the storage; schema and tables are created if they are absent."""
        address = dagster_home.database(config.load(overrides={"BLOGDATA_HOME": config_value["home"]}))
        if address is None:
            raise ConfigurationError(
                what="Dagster's storage is in PostgreSQL, and this process does not know its address",
                where=str(config_value["home"]),
                next_step="set BLOGDATA_DAGSTER_STORAGE, or [dagster] storage in blogdata.toml, for every process",
            )
        with postgres_connection.connected(address) as connection:
            connection.autocommit = True
            connection.execute("SELECT pg_advisory_lock(%s)", [_LOCK])
            _create_schema(connection, address.url)
            return cls(url(address.complete()), inst_data=inst_data)


def _create_schema(connection: psycopg.Connection, address: str) -> None:
    # Asked first: a user who may not create schemas can use one that an administrator has made.
    if connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [SCHEMA]).fetchone():
        return
    try:
        connection.execute(f"CREATE SCHEMA {SCHEMA}")
    except psycopg.errors.InsufficientPrivilege as error:
        raise ConfigurationError(
            what=f"The user may not create the schema of Dagster's storage: {error}",
            where=postgres_connection.without_password(address),
            next_step=f"have an administrator run: CREATE SCHEMA {SCHEMA} AUTHORIZATION <user>",
        ) from error


def url(address: str) -> str:
    """Return SQLAlchemy's URL for an address: with the driver that Dagster is written for, and the schema."""
    # libpq also takes the scheme postgres://, SQLAlchemy does not.
    parsed = make_url(address.replace("postgres://", "postgresql://", 1))
    given = parsed.query.get("options", "")
    options = " ".join(filter(None, [given if isinstance(given, str) else " ".join(given), f"-csearch_path={SCHEMA}"]))
    # Dagster tells a table that another process has just created from other faults by an attribute of psycopg 2.
    parsed = parsed.set(drivername="postgresql+psycopg2").update_query_dict({"options": options})
    return parsed.render_as_string(hide_password=False)
