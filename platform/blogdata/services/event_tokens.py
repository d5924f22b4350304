"""The tokens of the senders of events."""

from __future__ import annotations

import threading
import time

from blogdata.errors import ConfigurationError
from blogdata.secrets.secrets_pointer import fetch
from blogdata.services import secrets
from blogdata.services.config import Settings

_SECONDS = 1.0


class Tokens:
    """The tokens of all senders, read once a second at most: who has none cannot keep a server of secrets busy.

    Args:
        settings: Settings of the deployment.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._known: dict[str, str] = {}
        self._until = 0.0

    def __call__(self) -> dict[str, str]:
        """Return the tokens, by the name of the sender.

        Raises:
            ConfigurationError: As :func:`read`.
        """
        with self._lock:
            if time.monotonic() >= self._until:
                self._known = read(self._settings)
                self._until = time.monotonic() + _SECONDS
            return self._known


def read(settings: Settings) -> dict[str, str]:
    """Read the tokens of all senders, by the name of the sender.

    Raises:
        ConfigurationError: A token is missing, readable by others, too short, or that of two senders.
    """
    found: dict[str, str] = {}
    for sender in settings.events.senders:
        if sender.secret is None:
            continue
        pointer = secrets.pointer(settings, sender.secret)
        token = fetch(pointer).reveal()
        if len(token) < secrets.SHORTEST or not token.isascii():
            raise ConfigurationError(
                what=f"the token has fewer than {secrets.SHORTEST} characters, or others than those of ASCII",
                where=pointer.place,
                next_step="store a random one there: openssl rand -hex 32",
            )
        if token in found.values():
            raise ConfigurationError(
                what=f"{sender.name} has the token of another sender",
                where=pointer.place,
                next_step="give each sender a token of its own",
            )
        found[sender.name] = token
    return found
