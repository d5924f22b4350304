"""Reads the settings of tables that are sources: the section `[tables]`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from blogdata.errors import ConfigurationError
from blogdata.services import postgres_settings, setting_values
from blogdata.services.setting_values import Values

KEYS = {"url", "secret", "devices"}
_NAME = re.compile(r"[^\s.\"]+(\.[^\s.\"]+)?")


@dataclass(frozen=True, kw_only=True)
class TableSettings:
    """Which tables of a PostgreSQL database are loaded.

    Args:
        url: Address of the database, `postgresql://user@host/database`; None: that of the deployment's PostgreSQL.
        secret: Name of the password at that address; None: it needs none, or the address has it.
        devices: Table or view of the devices, `name` or `schema.name`; None: devices are delivered as files.
    """

    url: str | None = None
    secret: str | None = None
    devices: str | None = None


def parse(values: Values) -> TableSettings:
    """Read the settings.

    Args:
        values: The section `[tables]`.

    Raises:
        ConfigurationError: A value cannot be used.
    """
    url = setting_values.database(values, "url") if "url" in values else None
    return TableSettings(
        url=url,
        secret=postgres_settings.password(values, url, example="tables"),
        devices=_table(values, "devices"),
    )


def _table(values: Values, key: str) -> str | None:
    name = setting_values.text(values, key) or None
    if name is not None and not _NAME.fullmatch(name):
        raise ConfigurationError(
            what=f"{name!r} is not the name of a table",
            where=values[key][1],
            next_step=f'write {key} = "table" or {key} = "schema.table"; a view may stand for a query',
        )
    return name
