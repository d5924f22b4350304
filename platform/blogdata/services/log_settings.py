"""Reads the settings of access logs: the section `[logs]`."""

from __future__ import annotations

from dataclasses import dataclass, field

from blogdata.services import log_filters, setting_values
from blogdata.services.log_filters import LogFilters
from blogdata.services.setting_values import Values

KEYS = {"format", "proxies"} | log_filters.KEYS
UNIX_SOCKET = "unix:"


@dataclass(frozen=True, kw_only=True)
class LogSettings:
    """How access logs are read.

    Args:
        proxies: Addresses and networks of the proxies whose `X-Forwarded-For` or `Forwarded` is believed, in their
            normal form; `unix:` for one that connects through a socket of the machine.
    """

    formats: tuple[str, ...] = ()
    proxies: tuple[str, ...] = ()
    filters: LogFilters = field(default_factory=LogFilters)


def parse(values: Values) -> LogSettings:
    """Read the settings.

    Raises:
        ConfigurationError: A value cannot be used.
    """
    return LogSettings(
        formats=setting_values.text_or_texts(values, "format"),
        proxies=tuple(_proxy(name, values["proxies"][1]) for name in setting_values.texts(values, "proxies")),
        filters=log_filters.parse(values),
    )


def _proxy(name: str, where: str) -> str:
    return name if name == UNIX_SOCKET else setting_values.network(name, where, key="proxies")
