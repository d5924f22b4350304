"""Reads the settings of the alerts: the tables `[[alerts]]`, one a channel, and the section `[alerting]`.

An error names the table and the key, and never shows an address or a secret.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast, get_args
from urllib.parse import urlsplit

from blogdata.alerts.addresses import is_local
from blogdata.alerts.sending import Group, Policy
from blogdata.errors import ConfigurationError
from blogdata.errors.severity import Severity
from blogdata.services import setting_values
from blogdata.services.setting_values import Values

ChannelKind = Literal["log", "command", "mail", "webhook", "service"]
SECRET = "{secret}"
"""Placeholder in an address for the channel's secret."""
COMMON_KEYS = {"channel", "name", "least_severity", "owners", "seconds"}
KEYS: Mapping[str, set[str]] = {
    "log": set(),
    "command": {"command"},
    "mail": {"address", "from", "to", "secret", "tls"},
    "webhook": {"address", "secret"},
    "service": {"address", "secret"},
}
"""The keys of each kind of channel, beside the common ones."""
ALERTING_KEYS = {"repeat_after", "group", "name"}
_SCHEMES = {"mail": ("smtp", "smtps"), "webhook": ("http", "https")}
_MOST_SECONDS = 40.0
"""A round of the sensor must end within a minute."""
_MAIL_ADDRESS = re.compile(r"[^@\s<>,;]+@[^@\s<>,;]+")


@dataclass(frozen=True, kw_only=True)
class ChannelSettings:
    """A channel of the alerts.

    Args:
        kind: What it is.
        name: Its name in messages about it, unique.
        least_severity: Least severity of its alerts.
        owners: Owners whose alerts it gets; empty: all.
        seconds: Time limit for the messages of one round.
        command: The program and its arguments, of a `command`.
        address: Address of the server or service; `{secret}` in it stands for the secret.
        secret: File name of its secret under `<home>/secrets`; None: it has none.
        sender: Sender of the mails.
        to: Receivers of the mails.
        tls: False sends mails without TLS.
    """

    kind: ChannelKind
    name: str
    least_severity: Severity = Severity.WARNING
    owners: tuple[str, ...] = ()
    seconds: float = 20.0
    command: tuple[str, ...] = ()
    address: str = ""
    secret: str | None = None
    sender: str = ""
    to: tuple[str, ...] = ()
    tls: bool = True


@dataclass(frozen=True, kw_only=True)
class AlertSettings:
    """Who is told, and how often.

    Args:
        channels: The channels.
        policy: How often and how grouped alerts are sent.
    """

    channels: tuple[ChannelSettings, ...] = ()
    policy: Policy = field(default_factory=Policy)


def parse(tables: object, alerting: Values, *, file: Path) -> AlertSettings:
    """Read the settings.

    Args:
        tables: The value of `alerts` in the file; None if it has none.
        alerting: The section `[alerting]`.
        file: The settings file, for messages.

    Raises:
        ConfigurationError: A value cannot be used.
    """
    if tables is not None and not (isinstance(tables, list) and all(isinstance(table, dict) for table in tables)):
        raise ConfigurationError(
            what="channels of the alerts are tables of their own",
            where=f"{file}, alerts",
            next_step="write each one under a line [[alerts]], with two brackets",
        )
    channels = [_channel(table, f"{file}, [[alerts]] number {number}") for number, table in enumerate(tables or [], 1)]
    names = [channel.name for channel in channels]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise ConfigurationError(
                what=f"two channels are called {name}",
                where=f"{file}, [[alerts]] number {number + 1}",
                next_step='name one of them otherwise: name = "another"',
            )
    return AlertSettings(
        channels=tuple(channels),
        policy=Policy(
            repeat_after=setting_values.duration(alerting, "repeat_after", "1d", least=60),
            group=cast(Group, setting_values.choice(alerting, "group", "owner", get_args(Group))),
            deployment=setting_values.text(alerting, "name"),
        ),
    )


def _channel(table: Mapping[str, Any], where: str) -> ChannelSettings:
    values: Values = {key: (value, f"{where}, {key}") for key, value in table.items()}
    kinds = get_args(ChannelKind)
    if "channel" not in values:
        raise ConfigurationError(
            what="the table does not say which channel it is",
            where=where,
            next_step=f'add channel = "...", one of: {", ".join(kinds)}',
        )
    kind = setting_values.choice(values, "channel", "", kinds)
    allowed = COMMON_KEYS | KEYS[kind]
    if unknown := sorted(set(table) - allowed):
        raise ConfigurationError(
            what=f"a channel {kind!r} has no setting {', '.join(unknown)}",
            where=where,
            next_step=f"use: {', '.join(sorted(allowed))}",
        )
    channel = ChannelSettings(
        kind=cast(ChannelKind, kind),
        name=setting_values.text(values, "name") or kind,
        least_severity=Severity(
            setting_values.choice(values, "least_severity", "warning", tuple(one.value for one in Severity))
        ),
        owners=setting_values.texts(values, "owners"),
        seconds=setting_values.number(values, "seconds", 20.0, 1.0, _MOST_SECONDS),
        command=setting_values.texts(values, "command"),
        address=setting_values.text(values, "address"),
        secret=setting_values.text(values, "secret") or None,
        sender=setting_values.text(values, "from"),
        to=setting_values.texts(values, "to"),
        tls=setting_values.choice(values, "tls", "required", ("required", "none")) == "required",
    )
    _check(channel, where)
    return channel


def _check(channel: ChannelSettings, where: str) -> None:
    for key, present in (("command", channel.command), ("address", channel.address), ("to", channel.to)):
        if key in KEYS[channel.kind] and not present:
            raise ConfigurationError(
                what=f"a channel {channel.kind!r} needs {key}", where=where, next_step=f"add: {_EXAMPLES[channel.kind]}"
            )
    for key, value in (("name", channel.name), ("secret", channel.secret)):
        setting_values.check_name(value, key, of="a channel", where=f"{where}, {key}", example="analytics-mail")
    if SECRET in channel.address and channel.kind == "mail":
        raise ConfigurationError(
            what="the secret of a channel 'mail' is its password, and no part of the address",
            where=f"{where}, address",
            next_step=f'write it like: {_EXAMPLES["mail"]}, secret = "smtp"',
        )
    if SECRET in channel.address and channel.secret is None:
        raise ConfigurationError(
            what=f"the address has {SECRET}, and the channel no secret",
            where=where,
            next_step='name the file under the home\'s folder secrets that has it: secret = "name"',
        )
    if channel.kind in _SCHEMES:
        _check_address(channel, where)
    if channel.kind == "mail":
        _check_mail(channel, where)


def _check_address(channel: ChannelSettings, where: str) -> None:
    if channel.address == SECRET:
        return
    # The address is not shown: it may contain a secret.
    bad = ConfigurationError(
        what=f"that is not the address of a {channel.kind} server",
        where=f"{where}, address",
        next_step=f"write it like: {_EXAMPLES[channel.kind]}",
    )
    try:
        parts = urlsplit(channel.address)
        port = parts.port
    except ValueError:
        raise bad from None
    spaced = not channel.address.isascii() or any(sign.isspace() for sign in channel.address)
    if parts.scheme not in _SCHEMES[channel.kind] or not parts.hostname or port == 0 or spaced:
        raise bad
    if parts.password is not None:
        raise ConfigurationError(
            what="the address has a password",
            where=f"{where}, address",
            next_step="take it out of the address, write it into a file under the home's folder secrets, and name "
            'that file: secret = "name"',
        )
    secure = parts.scheme in ("https", "smtps") or (parts.scheme == "smtp" and channel.tls)
    if channel.secret is not None and not secure and not is_local(channel.address):
        raise ConfigurationError(
            what="a secret is not sent without TLS",
            where=where,
            next_step="use an address that begins with https://, or take the secret away"
            if channel.kind == "webhook"
            else 'take away tls = "none", or the secret',
        )


def _check_mail(channel: ChannelSettings, where: str) -> None:
    for address in (channel.sender, *channel.to):
        if not _MAIL_ADDRESS.fullmatch(address):
            raise ConfigurationError(
                what=f"{address!r} is not a mail address" if address else "a channel 'mail' needs from",
                where=where,
                next_step=f"write addresses like: {_EXAMPLES['mail']}",
            )
    if channel.secret is not None and not urlsplit(channel.address).username:
        raise ConfigurationError(
            what="the channel has a password and no user",
            where=f"{where}, address",
            next_step='put the user before the host: address = "smtp://robot@mail.example.org:587"',
        )


_EXAMPLES = {
    "command": 'command = ["/usr/local/bin/page-me", "--team", "analytics"]',
    "mail": 'address = "smtp://robot@mail.example.org:587", from = "robot@example.org", to = ["team@example.org"]',
    "webhook": 'address = "https://hooks.example.org/alerts"',
    "service": 'address = "slack://{secret}/#data", secret = "slack"',
}
