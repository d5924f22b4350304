"""Channels of the alerts: each is an address of the library Apprise, and its secret."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING
from urllib.parse import quote

from blogdata.errors import PlatformError, shown
from blogdata.errors.finding import Severity
from blogdata.services import secrets
from blogdata.services.config import ChannelSettings, Settings
from blogdata.services.setting_types import SECRET

if TYPE_CHECKING:
    from apprise import Apprise

_LEAST_SECRET = 6


def send(settings: Settings, channel: ChannelSettings, *, title: str, text: str, severity: Severity) -> None:
    """Send a message; it returns when the channel has taken it."""
    from apprise import LogCapture, NotifyFormat, NotifyType

    kind = {Severity.WARNING: NotifyType.WARNING, Severity.CRITICAL: NotifyType.FAILURE}
    secret = _secret(settings, channel)
    service = _opened(channel, secret)
    with LogCapture(level=logging.WARNING, fmt="%(message)s") as log:  # type: ignore[no-untyped-call]
        taken = service.notify(
            title=_without_mentions(title),
            body=_without_mentions(text),
            notify_type=kind[severity],
            # Without it, services that render HTML or Markdown would render what a producer has written.
            body_format=NotifyFormat.TEXT,
        )
    if not taken:
        raise _failed(channel, _hidden(secret, log.getvalue()) or "it did not take the message")


def check(settings: Settings, channel: ChannelSettings) -> None:
    """Check that a channel's secret can be read and that Apprise knows its address, without sending anything."""
    _opened(channel, _secret(settings, channel))


def _secret(settings: Settings, channel: ChannelSettings) -> str:
    return "" if channel.secret is None else secrets.given(settings, channel.secret).reveal()


def _opened(channel: ChannelSettings, secret: str) -> Apprise:
    from apprise import Apprise, AppriseAsset, NotifyBase, OverflowMode

    # An address in a log may hold a secret.
    logging.getLogger("apprise").propagate = False
    address = secret if channel.address == SECRET else channel.address.replace(SECRET, quote(secret, safe=""))
    # A redirect would turn a POST into a GET, and lose the message.
    service = Apprise.instantiate(address, asset=AppriseAsset(http_redirects=False))
    if not isinstance(service, NotifyBase):
        raise _failed(channel, "that is not an address that Apprise knows")
    if service.overflow_mode is OverflowMode.UPSTREAM:
        # A service refuses a longer text than it takes, at every try; what is cut off would count as told.
        service.overflow_mode = OverflowMode.SPLIT
    opened = Apprise()
    opened.add(service)
    return opened


def _failed(channel: ChannelSettings, what: str) -> PlatformError:
    return PlatformError(
        what=shown.message(f"channel {channel.name}: {what}", 500),
        where=f"[[alerts]] {channel.name} in blogdata.toml",
        next_step="check its address and its secret, as Apprise's documentation describes them",
    )


def _hidden(secret: str, text: str) -> str:
    """Return a text with a secret and its parts replaced; a server may repeat them in its answer."""
    parts = {secret, quote(secret, safe=""), *re.split(r"[/@:?&=]", secret)}
    # A shorter part of an address is no secret, and is part of ordinary words.
    for part in sorted((part for part in parts if len(part) >= _LEAST_SECRET), key=len, reverse=True):
        text = text.replace(part, "***")
    return text.strip()


def _without_mentions(text: str) -> str:
    """Return a text that notifies nobody by a mention: a producer may have written it into a file's name."""
    return re.sub(r"<(?=[@!#])|@(?=(?:everyone|here|channel|all)\b)", r"\g<0> ", text)
