"""A channel takes messages to people or programs; a failure is one error, without secrets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol
from urllib.parse import quote

from blogdata.alerts.alert import Message
from blogdata.errors import PlatformError, shown


class ChannelFailed(PlatformError):
    """A channel did not take a message, or cannot be used.

    Args:
        what: What happened.
        where: The channel and its address, without secrets.
        next_step: What to correct.
        taken: True if the channel took the message for some of its receivers: it is not sent again.
        refused: True if the channel refused this message, and may take others.
    """

    transient = True

    def __init__(self, *, what: str, where: str, next_step: str, taken: bool = False, refused: bool = False) -> None:
        super().__init__(what=shown.message(what, 500), where=where, next_step=next_step)
        self.taken = taken
        self.refused = refused

    def without(self, secrets: Iterable[str]) -> ChannelFailed:
        """Return the failure with every secret in its texts replaced."""
        texts = {"what": self.what, "where": self.where, "next_step": self.next_step}
        for secret in secrets:
            for form in {secret, quote(secret, safe=""), quote(secret)} - {""}:
                texts = {name: text.replace(form, "***") for name, text in texts.items()}
        return ChannelFailed(**texts, taken=self.taken, refused=self.refused)


class Channel(Protocol):
    """A way to send messages."""

    def send(self, message: Message, seconds: float) -> None:
        """Send a message; it returns when the channel has taken it.

        Args:
            message: The message.
            seconds: Time limit, retries included.

        Raises:
            ChannelFailed: The channel did not take it.
        """

    def check(self, seconds: float) -> None:
        """Check that the channel can be used, without sending anything.

        Args:
            seconds: Time limit.

        Raises:
            ChannelFailed: It cannot be used.
        """
