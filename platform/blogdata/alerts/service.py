"""All other channels: Slack, Teams, ntfy and a hundred more, by the library Apprise."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import StringIO
from typing import TYPE_CHECKING

from blogdata.alerts import addresses
from blogdata.alerts.alert import Message
from blogdata.alerts.channel import ChannelFailed
from blogdata.errors.severity import Severity

if TYPE_CHECKING:
    from apprise import Apprise


_LOG = logging.getLogger("apprise")


@dataclass(frozen=True, kw_only=True)
class Service:
    """Sends messages to a service that Apprise knows.

    Args:
        address: Apprise's address of the service, such as `slack://...`; it may hold a secret.
    """

    address: str = field(repr=False)

    def send(self, message: Message, seconds: float) -> None:
        """Send a message; Apprise has time limits of its own.

        Raises:
            ChannelFailed: The service did not take it.
        """
        from apprise import NotifyFormat, NotifyType

        kind = {None: NotifyType.SUCCESS, Severity.WARNING: NotifyType.WARNING, Severity.CRITICAL: NotifyType.FAILURE}
        with _captured() as log:
            taken = self._opened().notify(
                title=_without_mentions(message.subject),
                body=_without_mentions(message.text),
                notify_type=kind[message.severity],
                # Without it, services that render HTML or Markdown would render what a producer has written.
                body_format=NotifyFormat.TEXT,
            )
            if not taken:
                raise self._failed(f"the service did not take it: {log.getvalue().strip() or 'no reason was given'}")

    def check(self, seconds: float) -> None:
        """Check that Apprise knows the address.

        Raises:
            ChannelFailed: It does not.
        """
        self._opened()

    def _opened(self) -> Apprise:
        from apprise import Apprise, OverflowMode

        with _captured():
            plugin = Apprise.instantiate(self.address)
        if plugin is None:
            raise self._failed("that is not an address Apprise knows")
        if plugin.overflow_mode is OverflowMode.UPSTREAM:
            # A service refuses a longer text than it takes, at every try.
            plugin.overflow_mode = OverflowMode.TRUNCATE
        opened = Apprise()
        opened.add(plugin)
        return opened

    def _failed(self, what: str) -> ChannelFailed:
        return ChannelFailed(
            what=what,
            where=f"service {addresses.shown(self.address)}",
            next_step="check its address and secret, as Apprise's documentation describes them for this service",
        )


def _without_mentions(text: str) -> str:
    """Return a text that notifies nobody by a mention: a producer may have written it into a file's name."""
    return re.sub(r"<(?=[@!#])|@(?=(?:everyone|here|channel|all)\b)", r"\g<0> ", text)


@contextmanager
def _captured() -> Iterator[StringIO]:
    """Collect what Apprise logs, and keep it out of all other logs: an address in it may hold a secret."""
    lines = StringIO()
    handler = logging.StreamHandler(lines)
    propagates, _LOG.propagate = _LOG.propagate, False
    _LOG.addHandler(handler)
    try:
        yield lines
    finally:
        _LOG.removeHandler(handler)
        _LOG.propagate = propagates
