"""The alerts of a deployment: their record, their lock, and the channels of its settings with their secrets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from blogdata.alerts.channel import Channel
from blogdata.alerts.command import Command
from blogdata.alerts.log import Log
from blogdata.alerts.mail import Mail
from blogdata.alerts.record import AlertRecord
from blogdata.alerts.sending import Route
from blogdata.alerts.service import Service
from blogdata.alerts.webhook import Webhook
from blogdata.errors import PlatformError
from blogdata.services import secrets
from blogdata.services.alert_settings import SECRET, ChannelSettings
from blogdata.services.config import Settings

_LEAST_SECRET = 6


def record(settings: Settings) -> AlertRecord:
    """Return the record of the deployment's alerts."""
    return AlertRecord(path=settings.home / "alerts.sqlite")


def lock(settings: Settings) -> Path:
    """Return the lock file that a process holds while it sends alerts."""
    return settings.service_folder("alerts") / "lock"


def routes(settings: Settings) -> Sequence[Route]:
    """Build all channels; one whose secret cannot be read becomes the error that its use raises.

    Args:
        settings: Settings of the deployment.
    """
    return [_route(settings, channel) for channel in settings.alerts.channels]


def _route(settings: Settings, channel: ChannelSettings) -> Route:
    built: Channel | PlatformError
    secret = None
    try:
        secret = None if channel.secret is None else secrets.given(settings, channel.secret).reveal()
        built = _built(settings, channel, secret)
    except PlatformError as error:
        built = error
    return Route(
        name=channel.name,
        channel=built,
        least=channel.least_severity,
        owners=channel.owners,
        seconds=channel.seconds,
        secrets=() if secret is None else (secret, unquote(secret), *_parts(secret)),
    )


def _parts(secret: str) -> list[str]:
    """Return what is secret in a secret address, where a message might show only a part of it."""
    parts = urlsplit(secret)
    found = (parts.password, parts.path.strip("/"), *parts.path.split("/"), parts.query)
    # A shorter one is no secret, and is part of ordinary words.
    return [part for part in found if part and len(part) >= _LEAST_SECRET]


def _built(settings: Settings, channel: ChannelSettings, secret: str | None) -> Channel:
    placed = SECRET in channel.address
    address = channel.address.replace(SECRET, secret or "")
    match channel.kind:
        case "log":
            return Log()
        case "command":
            return Command(argv=channel.command, folder=settings.home)
        case "mail":
            return Mail(
                address=channel.address,
                sender=channel.sender,
                to=channel.to,
                password=secret,
                encrypted=channel.tls,
                ca_file=settings.ca_file,
            )
        case "webhook":
            return Webhook(address=address, token=None if placed else secret, ca_file=settings.ca_file)
        case "service":
            return Service(address=address)
