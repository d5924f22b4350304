"""The secrets of a deployment, by their names; its own ones are generated once.

Pattern: Secrets Pointer (:mod:`blogdata.patterns.security.secrets_pointer`).
"""

from __future__ import annotations

import secrets

from blogdata.errors import ConfigurationError
from blogdata.operate.config import Settings
from blogdata.patterns.security.secrets_pointer import Pointer, Secret, fetch

SHORTEST = 32


def pointer(settings: Settings, name: str) -> Pointer:
    return Pointer(name=name, folder=settings.home / "secrets")


def read(settings: Settings, name: str, version: int | None = None) -> Secret:
    """Read a secret of the deployment's own, in a version or the current one, which is generated if there is none."""
    stored = pointer(settings, name)
    if version is None and stored.read() is None:
        # What is derived from a secret is permanent: of two processes the first generates it, the second reads it.
        stored.add(random(), after=0)
    secret = fetch(stored, version)
    if len(secret.reveal()) < SHORTEST:
        raise ConfigurationError(
            what=f"the secret {name} is shorter than {SHORTEST} characters",
            where=str(stored.file()),
            next_step="put a longer one there, or remove it to have one made (ids derived from it change)",
        )
    return secret


def random() -> Secret:
    return Secret(secrets.token_hex(SHORTEST))


def given(settings: Settings, name: str) -> Secret:
    """Read a secret of somebody else, such as a password, that a person has stored."""
    return fetch(pointer(settings, name))


def own(settings: Settings, name: str) -> Pointer:
    """Point Spark's workers to a secret of the deployment's own, generated if there is none."""
    read(settings, name)
    return pointer(settings, name)
