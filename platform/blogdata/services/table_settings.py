"""Reads the settings of tables that are sources: the section `[tables]`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from blogdata.errors import ConfigurationError
from blogdata.services import postgres_settings, setting_values
from blogdata.services.setting_values import Values

KEYS = {"url", "secret", "devices", "users", "legacy_visits", "since", "overlap", "provider_visits"}
_NAME = re.compile(r"[^\s.\"]+(\.[^\s.\"]+)?")


@dataclass(frozen=True, kw_only=True)
class TableSettings:
    """Which tables are loaded, of a PostgreSQL database or of a provider's files.

    Args:
        url: Address of the database, `postgresql://user@host/database`; None: that of the deployment's PostgreSQL.
        secret: Name of the password at that address; None: it needs none, or the address has it.
        devices: Table or view of the devices, `name` or `schema.name`; None: devices are delivered as files.
        users: Table or view of the users, of which the changed ones are loaded; None: users are delivered as files.
        legacy_visits: Table or view of visits, loaded hour by hour; None: there is none.
        overlap: Seconds before the newest loaded hour that each load reads again, for rows that are committed late.
        provider_visits: Folder in which a provider delivers visits by hours, as `date=2026-01-05/hour=10`, each with
            `_SUCCESS` when it is complete; None: there is none.
    """

    url: str | None = None
    secret: str | None = None
    devices: str | None = None
    users: str | None = None
    legacy_visits: str | None = None
    since: str = ""
    overlap: float = 21600.0
    provider_visits: Path | None = None

    @property
    def any(self) -> bool:
        """Whether any table is loaded."""
        return bool(self.devices or self.users or self.legacy_visits or self.provider_visits)


def parse(values: Values) -> TableSettings:
    """Read the settings.

    Raises:
        ConfigurationError: A value cannot be used.
    """
    url = setting_values.database(values, "url") if "url" in values else None
    by_time = {key: _table(values, key) for key in ("users", "legacy_visits")}
    since = setting_values.day(values, "since")
    if since is None and (named := [key for key, name in by_time.items() if name is not None]):
        raise ConfigurationError(
            what="the first day to load is missing",
            where=values[named[0]][1],
            next_step='write it beside the table: since = "2026-01-05"',
        )
    return TableSettings(
        url=url,
        secret=postgres_settings.password(values, url, example="tables"),
        devices=_table(values, "devices"),
        **by_time,
        since=since or "",
        overlap=setting_values.duration(values, "overlap", "6h", least=0),
        provider_visits=_folder(values, "provider_visits"),
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


def _folder(values: Values, key: str) -> Path | None:
    text = setting_values.text(values, key)
    if text and not Path(text).is_absolute():
        raise ConfigurationError(
            what=f"{text!r} is not the path of a folder from the root on",
            where=values[key][1],
            next_step=f'write {key} = "/srv/provider/visits"',
        )
    return Path(text) if text else None
