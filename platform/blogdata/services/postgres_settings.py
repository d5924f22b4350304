"""Reads the settings of PostgreSQL: the section `[postgres]`, and the address of Dagster's storage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast, get_args
from urllib.parse import urlsplit

from blogdata.errors import ConfigurationError
from blogdata.services import setting_values
from blogdata.services.setting_values import Values

PostgresLogin = Literal["password", "certificate"]
KEYS = {"url", "port", "secret", "login"}


@dataclass(frozen=True, kw_only=True)
class PostgresSettings:
    """Where PostgreSQL is.

    Args:
        url: Address of an external server, `postgresql://user@host/database`; None for the deployment's own server,
            once it was started.
        port: Port of the deployment's own server; 0 chooses a free one and keeps it.
        secret: Name of the password at the external server; None: it needs none, or the address has it.
    """

    url: str | None = None
    port: int = 0
    secret: str | None = None
    login: PostgresLogin = "password"


def parse(values: Values) -> PostgresSettings:
    """Read the settings.

    Raises:
        ConfigurationError: A value cannot be used.
    """
    url = setting_values.database(values, "url") if "url" in values else None
    return PostgresSettings(
        url=url,
        port=setting_values.port(values, "port"),
        secret=password(values, url, example="postgres"),
        login=cast(PostgresLogin, setting_values.choice(values, "login", "password", get_args(PostgresLogin))),
    )


def storage(values: Values) -> str | None:
    """Read the address of Dagster's storage.

    Returns:
        The address; None: SQLite files.

    Raises:
        ConfigurationError: It is no address.
    """
    if values.get("storage", ("sqlite", ""))[0] == "sqlite":
        return None
    return setting_values.database(values, "storage", otherwise="sqlite, or ")


def password(values: Values, url: str | None, *, example: str) -> str | None:
    """Read `secret`, the name of the password for an address.

    Raises:
        ConfigurationError: The address has a password, too.
    """
    name = setting_values.secret_name(values, of="a database", example=example)
    if name is not None and url is not None and urlsplit(url).password is not None:
        raise ConfigurationError(
            what="the address of the database has a password, and secret names another one",
            where=values["secret"][1],
            next_step="take the password out of the address",
        )
    return name
