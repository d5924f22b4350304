"""Secrets of a deployment: named, stored in files that only their owner can read; its own ones are generated once."""

from __future__ import annotations

import secrets
from pathlib import Path

from blogdata.errors import ConfigurationError
from blogdata.services.config import Settings
from blogdata.services.files import locked, write_atomically

SHORTEST = 32


def read(settings: Settings, name: str) -> str:
    """Read a secret; if it does not exist yet, a random one is generated.

    Args:
        settings: Settings of the deployment.
        name: File name under `<home>/secrets`.

    Returns:
        The secret, at least 32 characters.

    Raises:
        ConfigurationError: The file is readable by others, or the secret is shorter than 32 characters.
    """
    file = settings.home / "secrets" / name
    if not file.exists():
        _make(file)
    secret = _content(file)
    if len(secret) < SHORTEST:
        raise ConfigurationError(
            what=f"the secret is shorter than {SHORTEST} characters",
            where=str(file),
            next_step="put a longer one there, or remove the file to have one made (ids derived from it change)",
        )
    return secret


def given(settings: Settings, name: str) -> str:
    """Read a secret of somebody else, such as a password, that a person has stored.

    Args:
        settings: Settings of the deployment.
        name: File name under `<home>/secrets`.

    Raises:
        ConfigurationError: The file does not exist, is empty, or is readable by others.
    """
    file = settings.home / "secrets" / name
    if not file.is_file():
        raise ConfigurationError(
            what=f"the secret {name} does not exist",
            where=str(file),
            next_step=f"write it into that file, readable only by you: (umask 077; cat > {file})",
        )
    secret = _content(file)
    if not secret or not secret.isprintable():
        raise ConfigurationError(
            what="the secret is empty or has several lines", where=str(file), next_step="write it there as one line"
        )
    return secret


def _content(file: Path) -> str:
    if file.stat().st_mode & 0o077:
        raise ConfigurationError(
            what="a secret is readable by others", where=str(file), next_step=f"run: chmod 600 {file}"
        )
    return file.read_text(encoding="utf-8").strip()


def _make(file: Path) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(file.parent / ".lock"):
        # Ids derived from a secret are permanent: of two processes the first generates it, the second reads it.
        if not file.exists():
            write_atomically(file, secrets.token_hex(SHORTEST).encode(), mode=0o600)
