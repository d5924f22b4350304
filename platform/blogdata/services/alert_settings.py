"""Reads the settings of the alerts: the tables `[[alerts]]`, one a channel, and the section `[alerting]`.

An error names the table and the key, and never shows an address or a secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from blogdata.errors import ConfigurationError
from blogdata.errors.severity import Severity
from blogdata.services import setting_values
from blogdata.services.setting_values import Values

SECRET = "{secret}"
"""Placeholder in an address for the channel's secret."""
KEYS = {"name", "address", "secret", "least_severity", "owners"}
ALERTING_KEYS = {"repeat_after", "name"}
_EXAMPLE = 'address = "slack://{secret}/#data", secret = "slack"'
_PLAIN = {"json", "form", "xml", "mailto"}
"""Schemes without TLS; with an s at their end they have it."""


@dataclass(frozen=True, kw_only=True)
class ChannelSettings:
    """A channel of the alerts.

    Args:
        address: One of Apprise; `{secret}` in it stands for the secret.
        owners: Owners whose alerts it gets; empty: all.
    """

    name: str
    address: str
    secret: str | None = None
    least_severity: Severity = Severity.WARNING
    owners: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class AlertSettings:
    """Who is told, and how often.

    Args:
        repeat_after: Pause before what stands is sent again, in seconds.
    """

    channels: tuple[ChannelSettings, ...] = ()
    repeat_after: float = 86_400.0
    name: str = ""


def parse(tables: object, alerting: Values, *, file: Path) -> AlertSettings:
    """Read the value of `alerts` in a file, and its section `[alerting]`.

    Raises:
        ConfigurationError: A value cannot be used.
    """
    if tables is not None and not (isinstance(tables, list) and all(isinstance(table, dict) for table in tables)):
        raise ConfigurationError(
            what="channels of the alerts are tables of their own",
            where=f"{file}, alerts",
            next_step="write each one under a line [[alerts]], with two brackets",
        )
    channels: dict[str, ChannelSettings] = {}
    for number, table in enumerate(tables or [], 1):
        where = f"{file}, [[alerts]] number {number}"
        channel = _channel(table, where)
        if channel.name in channels:
            raise ConfigurationError(
                what=f"two channels are called {channel.name}", where=where, next_step="name one of them otherwise"
            )
        channels[channel.name] = channel
    return AlertSettings(
        channels=tuple(channels.values()),
        repeat_after=setting_values.duration(alerting, "repeat_after", "1d", least=60),
        name=setting_values.text(alerting, "name"),
    )


def _channel(table: Mapping[str, Any], where: str) -> ChannelSettings:
    values: Values = {key: (value, f"{where}, {key}") for key, value in table.items()}
    if unknown := sorted(set(table) - KEYS):
        raise ConfigurationError(
            what=f"a channel has no setting {', '.join(unknown)}",
            where=where,
            next_step=f"use {', '.join(sorted(KEYS))}; each channel is an address of Apprise: {_EXAMPLE}",
        )
    severities = tuple(one.value for one in Severity)
    channel = ChannelSettings(
        name=setting_values.text(values, "name"),
        address=setting_values.text(values, "address"),
        secret=setting_values.secret_name(values, of="a channel", example="slack"),
        least_severity=Severity(setting_values.choice(values, "least_severity", "warning", severities)),
        owners=setting_values.texts(values, "owners"),
    )
    setting_values.check_name(channel.name, "name", of="a channel", where=where, example="on-call")
    if wrong := _wrong(channel):
        raise ConfigurationError(what=wrong, where=f"{where}, address", next_step=f"write it like: {_EXAMPLE}")
    return channel


def _wrong(channel: ChannelSettings) -> str | None:
    """Return what is wrong about an address, without showing it: it may contain a secret."""
    if channel.address == SECRET and channel.secret:
        return None
    try:
        parts = urlsplit(channel.address)
    except ValueError:
        return "that is not an address of Apprise"
    if not parts.scheme or "://" not in channel.address:
        return "that is not an address of Apprise"
    if parts.password not in (None, SECRET):
        return "the address has a password"
    if (SECRET in channel.address) != (channel.secret is not None):
        return f"a channel with a secret has {SECRET} in its address, where it belongs, and no other has"
    if channel.secret and parts.scheme in _PLAIN and not setting_values.is_local(channel.address):
        return f"a secret is not sent without TLS: {parts.scheme}s:// has it"
    return None
