"""Secrets Pointer: settings, contracts and code have the names of secrets; values are fetched when they are used.

Problem: a job needs the key of an API or the password of a database. Written into code, settings or the configuration
of a run, it is in repositories, logs, plans and web pages, and replacing it means to find all copies.

How it works: a setting names a secret, and a pointer is that name and the provider of the deployment: its own files,
variables of the environment, or an OpenBao or Vault server. The value is fetched when it is used (:func:`fetch`). It
is a :mod:`blogdata.secrets.secret`, which shows itself as `***` wherever it is printed, formatted or logged, and
cannot be pickled.

A secret may be replaced while a job runs. A client that sends it many times keeps it (:class:`SecretInUse`), and
fetches it once more when the service refuses it: with another value the request is tried again, and with the same
value the refusal is the error.

The secrets that a deployment makes for itself, such as the keys of its pseudonyms, are made in the provider by the
first process that finds none; of two processes at once, the second one gets the value of the first.

The trap: to keep the value and believe in it. A job that fetched a password at its start fails in the hour in which
it is replaced; and a value in a plain text is one `print` away from a log.

When not to use it: where no secret is needed. The provider itself asks for one (the file's permissions, the token of a
server), which is known to the machine only; a client certificate in place of a password leaves nothing to fetch.

Source: Data Engineering Design Patterns, ch. 7.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from blogdata.errors import ConfigurationError
from blogdata.secrets.secret import Secret

Result = TypeVar("Result")


class Provider(Protocol):
    """A place that has secrets by their names, each in versions that are counted from 1; the highest is current."""

    def read(self, name: str, version: int | None = None) -> Secret | None:
        """Read a secret in one of its versions, or the current one; None if there is none."""

    def versions(self, name: str) -> tuple[int, ...]:
        """List the versions that can be read, the current one last."""

    def add(self, name: str, secret: Secret, *, after: int) -> bool:
        """Store the version after one (0: the first); False, and nothing is stored, if that is not current any more."""

    def place(self, name: str) -> str:
        """Return where a secret is, for messages."""

    def remedy(self, name: str) -> str:
        """Return what a person does to store a secret there, for messages."""


@dataclass(frozen=True, kw_only=True)
class Pointer:
    name: str
    provider: Provider

    @property
    def place(self) -> str:
        return self.provider.place(self.name)


def fetch(pointer: Pointer, version: int | None = None) -> Secret:
    """Fetch the value of a secret in one of its versions, or the current one."""
    secret = pointer.provider.read(pointer.name, version)
    if secret is None:
        of = "" if version is None else f"version {version} of "
        raise ConfigurationError(
            what=f"{of}the secret {pointer.name} does not exist",
            where=pointer.place,
            next_step=pointer.provider.remedy(pointer.name),
        )
    if not secret.reveal() or not secret.reveal().isprintable():
        raise ConfigurationError(
            what=f"the secret {pointer.name} is empty or has several lines",
            where=pointer.place,
            next_step="write it there as one line",
        )
    return secret


class SecretInUse:
    """A secret in the hands of a client: fetched once, and again when the service refuses it."""

    def __init__(self, pointer: Pointer) -> None:
        self.pointer = pointer
        self._secret = fetch(pointer)

    def use(self, action: Callable[[Secret], Result], *, refused: type[Exception]) -> Result:
        """Do something with the secret; if it is refused and was replaced meanwhile, once more with the new value."""
        secret = self._secret
        try:
            return action(secret)
        except refused:
            self._secret = fetch(self.pointer)
            if self._secret == secret:
                raise
        return action(self._secret)
