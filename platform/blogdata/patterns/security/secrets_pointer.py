"""Secrets Pointer: settings, contracts and code have the names of secrets; values are fetched when they are used.

Problem: a job needs the key of an API or the password of a database. Written into code, settings or the configuration
of a run, it is in repositories, logs, plans and web pages, and replacing it means to find all copies.
How it works: a setting names a secret; a pointer is that name and the folder of the deployment's secrets, with a file
for each, which a person or the agent of a secrets server writes. The value is fetched when it is used (:func:`fetch`),
as a :class:`Secret`, which is `***` wherever it is printed, formatted or logged, and cannot be pickled.

A secret may be replaced while a job runs. A client that sends it many times keeps it (:class:`SecretInUse`), and
fetches it again when the service refuses it: another value is tried once; with the same value the refusal is the error.

A deployment makes its own secrets, such as the keys of its pseudonyms: of two processes that find none, the second one
gets the value of the first.
The trap: to keep the value. A job that fetched a password at its start fails in the hour in which it is replaced; and a
value in a plain text is one `print` away from a log.
When not to use it: where no secret is needed. Who may read the file has the secret; a client certificate in place of a
password leaves nothing to fetch.
Source: Data Engineering Design Patterns, ch. 7.
"""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import NoReturn, TypeVar

from blogdata.errors import ConfigurationError
from blogdata.files import write_atomically


@dataclass(frozen=True, repr=False)
class Secret:
    """The value of a secret; whatever prints, formats or logs it shows `***`, and it cannot be pickled."""

    _value: str

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return "***"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not pickled: pass its name, and fetch it where it is used")


Result = TypeVar("Result")
_OTHERS = 0o077


@dataclass(frozen=True, kw_only=True)
class Pointer:
    """The name of a secret, and its folder: the file `name` is its first version, `name@2` the second, and so on."""

    name: str
    folder: Path

    def read(self, version: int | None = None) -> Secret | None:
        """Read one of its versions, or the current one, which is the highest; None if there is none."""
        file = self.file(version)
        if not file.is_file():
            return None
        if file.stat().st_mode & _OTHERS:
            raise self.unusable("is readable by others", f"run: chmod 600 {file}", version)
        try:
            return Secret(file.read_text(encoding="utf-8").strip())
        except UnicodeDecodeError:
            # Without its cause, which has the bytes.
            raise self.unusable("is no text in UTF-8", "write it there as one line", version) from None

    def unusable(self, fault: str, next_step: str, version: int | None) -> ConfigurationError:
        of = "" if version is None else f"version {version} of "
        return ConfigurationError(
            what=f"{of}the secret {self.name} {fault}", where=str(self.file(version)), next_step=next_step
        )

    def file(self, version: int | None = None) -> Path:
        if version is None:
            version = max(self.versions(), default=1)
        return self.folder / (self.name if version == 1 else f"{self.name}@{version}")

    def versions(self) -> tuple[int, ...]:
        """List the versions that can be read, the current one last."""
        first = [1] if (self.folder / self.name).is_file() else []
        later = (re.fullmatch(r".*@([1-9][0-9]*)", file.name) for file in self.folder.glob(f"{self.name}@*"))
        return tuple(sorted([*first, *(int(match[1]) for match in later if match)]))

    def add(self, secret: Secret, *, after: int) -> bool:
        """Store the version after one (0: the first); False, and nothing is stored, if there is one already."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        staged = self.folder / f".{self.name}.{token_hex(8)}"
        write_atomically(staged, secret.reveal().encode())
        try:
            # Unlike a rename, a link replaces nothing: of two processes, the first one stores its value.
            os.link(staged, self.file(after + 1))
        except FileExistsError:
            return False
        finally:
            staged.unlink()
        return True


def fetch(pointer: Pointer, version: int | None = None) -> Secret:
    """Fetch the value of a secret in one of its versions, or the current one."""
    secret = pointer.read(version)
    if secret is None:
        file = pointer.file(version)
        step = f"write it into that file, readable only by you: (umask 077; cat > {file})"
        raise pointer.unusable("does not exist", step, version)
    if not secret.reveal() or not secret.reveal().isprintable():
        raise pointer.unusable("is empty or has several lines", "write it there as one line", version)
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
