"""The tokens of the senders of events."""

from __future__ import annotations

from blogdata.errors import ConfigurationError
from blogdata.services import secrets
from blogdata.services.config import Settings


def read(settings: Settings) -> dict[str, str]:
    """Read the tokens of all senders, by the name of the sender.

    Raises:
        ConfigurationError: A token is missing, readable by others, too short, or that of two senders.
    """
    found: dict[str, str] = {}
    for sender in settings.events.senders:
        if sender.secret is None:
            continue
        token, file = secrets.given(settings, sender.secret), settings.home / "secrets" / sender.secret
        if len(token) < secrets.SHORTEST or not token.isascii():
            raise ConfigurationError(
                what=f"the token has fewer than {secrets.SHORTEST} characters, or others than those of ASCII",
                where=str(file),
                next_step=f"write a random one there: (umask 077; openssl rand -hex 32 > {file})",
            )
        if token in found.values():
            raise ConfigurationError(
                what=f"{sender.name} has the token of another sender",
                where=str(file),
                next_step="give each sender a token of its own",
            )
        found[sender.name] = token
    return found
